package integration

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

var yamlFence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// The examples of the documentation do what they show: each is accepted, without a warning, and nothing in it keeps the
// operator from making its children. Certificates that an example names are made here.
func TestDocumentationExamples(t *testing.T) {
	found := 0
	for _, page := range []string{"../../README.md", "../../docs/user-guide.md"} {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, fence := range yamlFence.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(fence[1], "kind: NginxOperator\n") {
				continue
			}
			found++
			documents := regexp.MustCompile(`(?m)^---$`).Split(fence[1], -1)
			t.Run(fmt.Sprintf("%s/%d", strings.TrimPrefix(page, "../../"), found), func(t *testing.T) {
				t.Parallel()
				exampleWorks(t, documents)
			})
		}
	}
	if found < 15 {
		t.Errorf("found %d examples; the user guide has one of each field", found)
	}
}

func exampleWorks(t *testing.T, documents []string) {
	namespace := newNamespace(t)
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		must(t, yaml.UnmarshalStrict([]byte(document), &object.Object))
		object.SetNamespace(namespace)
		if object.GetKind() != "NginxOperator" {
			create(t, object)
			continue
		}
		declared := &v1alpha2.NginxOperator{}
		must(t, yaml.UnmarshalStrict([]byte(document), declared))
		for _, tls := range declared.Spec.TLS {
			certificate, key, err := cert.GenerateSelfSignedCertKey("www.example.com", nil, nil)
			must(t, err)
			create(t, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tls.SecretName},
				Type:       corev1.SecretTypeTLS,
				Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
			})
		}
		warned := &recordedWarnings{}
		must(t, warningClient(t, warned).Create(t.Context(), object))
		// Whoever pauses an object is reminded of it.
		if warned := warned.list(); len(warned) > 0 && !declared.Spec.Paused {
			t.Errorf("%s is warned of: %q", object.GetName(), warned)
		}
		waitFor(t, func() error { return hasItsChildren(t, declared, namespace) })
	}
}

// hasItsChildren tells whether the operator has made what an object declares; a paused one has nothing made.
func hasItsChildren(t *testing.T, declared *v1alpha2.NginxOperator, namespace string) error {
	object := &v1alpha2.NginxOperator{}
	if err := suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: declared.Name}, object); err != nil {
		return err
	}
	degraded := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionDegraded)
	if degraded == nil || degraded.Status != metav1.ConditionFalse {
		return fmt.Errorf("%s is degraded: %+v", object.Name, degraded)
	}
	children, err := childrenOf(t.Context(), namespace, object.Name)
	if err != nil {
		return err
	}
	if made := children.deployment != nil && children.service != nil; made == declared.Spec.Paused {
		return fmt.Errorf("%s has children: %t; paused: %t", object.Name, made, declared.Spec.Paused)
	}
	return nil
}
