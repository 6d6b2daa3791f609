package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// newCertificate returns a certificate and its key as the data of a Secret of type
// kubernetes.io/tls.
func newCertificate(t *testing.T) map[string][]byte {
	t.Helper()
	return newCertificateOf(t, time.Now(), time.Now().Add(time.Hour))
}

// newCertificateOf is newCertificate with a period of validity.
func newCertificateOf(t *testing.T, begin, end time.Time) map[string][]byte {
	t.Helper()
	key := must1(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"web.example.com"}, Subject: pkix.Name{CommonName: "test CA"},
		NotBefore: begin, NotAfter: end,
	}
	certificate := must1(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	private := must1(x509.MarshalPKCS8PrivateKey(key))(t)
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

func newConfigMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func newSecret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS, Data: data}
}

const servers = "server {\n    listen 8080;\n    return 204;\n}\n"

// named is a kind of reference: a spec that references an object, the object, a change of its
// content, and the content in the children.
type named struct {
	spec   func(*v1alpha2.NginxOperatorSpec)
	object func(t *testing.T, namespace string) client.Object
	change func(t *testing.T, object client.Object)
	field  string
	// seen returns the same text for the same content, and another text for other content.
	seen func(children) string
}

var references = map[string]named{
	"config": {
		spec: func(s *v1alpha2.NginxOperatorSpec) {
			s.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "named", Key: "web.conf"}}
		},
		object: func(_ *testing.T, namespace string) client.Object {
			return newConfigMap(namespace, "named", map[string]string{"web.conf": servers})
		},
		change: func(_ *testing.T, object client.Object) { object.(*corev1.ConfigMap).Data["web.conf"] += "# more\n" },
		field:  "spec.config.configMapRef.name", seen: func(c children) string { return mountedBy(c)["servers.conf"] },
	},
	"content": {
		spec: func(s *v1alpha2.NginxOperatorSpec) {
			s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "named"}}
		},
		object: func(_ *testing.T, namespace string) client.Object {
			object := newConfigMap(namespace, "named", map[string]string{"index.html": "<p>one"})
			object.BinaryData = map[string][]byte{"icon.png": {0x89, 'P', 'N', 'G', 0}}
			return object
		},
		change: func(_ *testing.T, object client.Object) { object.(*corev1.ConfigMap).Data["index.html"] = "<p>two" },
		field:  "spec.content.configMapRef.name",
		seen: func(c children) string {
			for _, volume := range podOf(c).Volumes {
				for _, configMap := range c.configMaps {
					if volume.Name == "content" && configMap.Name == volume.ConfigMap.Name {
						return configMap.Data["index.html"] + string(configMap.BinaryData["icon.png"])
					}
				}
			}
			return ""
		},
	},
	"files": {
		spec: namesFile,
		object: func(_ *testing.T, namespace string) client.Object {
			return newConfigMap(namespace, "named", map[string]string{"a": "# one\n"})
		},
		change: func(_ *testing.T, object client.Object) { object.(*corev1.ConfigMap).Data["a"] = "# two\n" },
		field:  "spec.files[0].configMapRef.name", seen: mountedFile,
	},
	"tls": {
		spec: func(s *v1alpha2.NginxOperatorSpec) { s.TLS = []v1alpha2.TLS{{SecretName: "named"}} },
		object: func(t *testing.T, namespace string) client.Object {
			return newSecret(namespace, "named", newCertificate(t))
		},
		change: func(t *testing.T, object client.Object) { object.(*corev1.Secret).Data = newCertificate(t) },
		field:  "spec.tls[0].secretName",
		seen: func(c children) string {
			return c.deployment.Spec.Template.Annotations[wellknown.AnnotationCertificates]
		},
	},
}

// TestReferences verifies that a referenced object can be created late, change, be deleted, and be
// recreated. The operator creates no children before the referenced object exists. A change of its
// content rolls the Pods once. Without it, the instance keeps running, and all changes except for
// scaling are blocked until it exists again.
func TestReferences(t *testing.T) {
	t.Parallel()
	for name, reference := range references {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			object := newInstance(namespace, "web")
			reference.spec(&object.Spec)
			create(t, object)
			waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, reference.field+": ")
			got := must1(childrenOf(t.Context(), namespace, "web"))(t)
			if got.deployment != nil || got.service != nil || got.policy != nil || len(got.configMaps) != 0 {
				t.Errorf("children were created: %+v", got)
			}

			source := reference.object(t, namespace)
			create(t, source)
			first := waitForChildren(t, namespace, "web")
			waitForNoBlocker(t, namespace)
			if reference.seen(first) == "" {
				t.Errorf("what is named does not reach the Deployment: %+v", first.deployment.Spec.Template)
			}

			update(t, source, func(o client.Object) { reference.change(t, o) })
			second := waitForGeneration(t, namespace, first.deployment.Generation+1)
			if reference.seen(second) == reference.seen(first) || reference.seen(second) == "" {
				t.Error("the new content does not reach the Deployment")
			}
			audited := len(audit(t))
			update(t, source, func(o client.Object) { o.SetLabels(map[string]string{"touched": "yes"}) })
			waitFor(t, func() error {
				if readsOfSources(t, audited, namespace) == 0 {
					return errors.New("the operator has not read what was touched")
				}
				return nil
			})
			waitForMarker(t, namespace)
			second = waitForGeneration(t, namespace, second.deployment.Generation)

			must(t, suite.admin.Delete(t.Context(), source))
			waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, reference.field+": ")
			waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonReferenceNotFound, 2)
			update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
			waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, reference.field+": ")
			blocked := must1(childrenOf(t.Context(), namespace, "web"))(t)
			// The operator may have deleted the ConfigMap of the first content only after the
			// change.
			if *blocked.deployment.Spec.Replicas != 3 || len(blocked.configMaps) > len(second.configMaps) ||
				reference.seen(blocked) != reference.seen(second) {
				t.Errorf("of the change more was written than the replicas: %d ConfigMaps, were %d: %+v",
					len(blocked.configMaps), len(second.configMaps), blocked.deployment)
			}

			again := source.DeepCopyObject().(client.Object)
			again.SetResourceVersion("")
			again.SetUID("")
			create(t, again)
			waitForNoBlocker(t, namespace)
			// The generation has changed once, for the replicas, while changes were blocked.
			third := waitForGeneration(t, namespace, second.deployment.Generation+1)
			if *third.deployment.Spec.Replicas != 3 {
				t.Errorf("%d replicas", *third.deployment.Spec.Replicas)
			}
			if diff := cmp.Diff(second.deployment.Spec.Template, third.deployment.Spec.Template); diff != "" {
				t.Errorf("the same content makes other Pods:\n%s", diff)
			}
			waitForEvent(t, namespace, corev1.EventTypeNormal, "Recovered", 2)
		})
	}
}

// waitForBlocker waits until the status of the current generation reports one blocker, with this
// reason and message.
func waitForBlocker(t *testing.T, namespace, reason, message string) {
	t.Helper()
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, reason)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, reason)
	waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
		if got := object.Status.BlockedBy; len(got) != 1 || got[0].Reason != reason || !strings.Contains(got[0].Message, message) {
			return fmt.Errorf("blocked by %+v, want %s: %s", got, reason, message)
		}
		return nil
	})
}

func waitForNoBlocker(t *testing.T, namespace string) {
	t.Helper()
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	if got := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status.BlockedBy; len(got) != 0 {
		t.Errorf("blocked by %+v", got)
	}
}

// waitForGeneration waits until the Deployment has a generation, and fails if it has a later one.
func waitForGeneration(t *testing.T, namespace string, want int64) children {
	t.Helper()
	var out children
	waitFor(t, func() error {
		var err error
		if out, err = childrenOf(t.Context(), namespace, "web"); err != nil {
			return err
		}
		if out.deployment.Generation < want {
			return fmt.Errorf("the Deployment has generation %d, want %d", out.deployment.Generation, want)
		}
		return nil
	})
	if out.deployment.Generation > want {
		t.Errorf("the Deployment has generation %d, want %d", out.deployment.Generation, want)
	}
	return out
}
