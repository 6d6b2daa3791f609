package e2e

// A stranger misuses the operator as a deputy: it posts admission reviews of objects in another
// namespace.
//
//   - The operator sends no request about that namespace.
//   - The answers do not reveal the contents of the namespace.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/internal/webhook"
)

// deputySpecs returns specs with errors that the API server would report: in the Service, the
// NetworkPolicy, the Ingress, the patches, and, in the last spec, the Pods.
func deputySpecs(nodePort int32) []string {
	return []string{
		fmt.Sprintf(`{"ports":[{"name":"http","port":80,"nodePort":%d}],"service":{"type":"NodePort"}}`, nodePort),
		`{"service":{"ipFamilies":["IPv6"],"loadBalancerSourceRanges":["a"]}}`,
		`{"networkPolicy":{"from":[{}]}}`,
		`{"expose":{"ingress":{"hosts":[{"host":"A.example.com"}]}}}`,
		`{"patches":[{"target":{"kind":"PodDisruptionBudget"},"patch":"spec: {minAvailable: 1}"}]}`,
		`{"config":{"configMapRef":{"name":"a","key":"b"}},"tls":[{"secretName":"a","port":443}]}`,
		`{"image":"registry.example.com/stranger:1","podTemplate":{"tolerations":[{"operator":"Is"}]}}`,
	}
}

// strangerDeputy posts reviews of objects in another namespace from a Pod without a token, in the
// name of several users.
func strangerDeputy(t *testing.T, from *stranger) {
	t.Helper()
	victim := newNamespace(t, restricted)
	// The namespace has no instance, so only a review can cause a request about it.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "web"}}
	service.Spec.Type, service.Spec.Ports = corev1.ServiceTypeNodePort, []corev1.ServicePort{{Port: 80}}
	must(t, suite.admin.Create(t.Context(), service))

	user := operatorUser()
	poster, last := from.client(), ""
	for _, path := range []string{webhook.PathValidate, webhook.PathDefault, webhook.PathV1alpha1} {
		for _, as := range []string{"", user, "system:admin"} {
			for _, spec := range deputySpecs(service.Spec.Ports[0].NodePort) {
				last = postAdmission(t, poster, path, victim, as, spec)
				for _, secret := range []string{"allocated", "already exists", "quota", "PodDisruptionBudget: spec"} {
					if strings.Contains(last, secret) {
						t.Errorf("%s: the answer says %q: %s", path, secret, last)
					}
				}
			}
		}
		if path == webhook.PathValidate && !strings.Contains(last, "spec.podTemplate.tolerations[0].operator") {
			t.Errorf("the Pod template is not validated, that shows nothing: %s", last)
		}
	}
	if suite.local {
		for _, request := range requestsAbout(t, victim, user) {
			t.Errorf("the operator asks about the namespace of the reviews: %s", request)
		}
	}
}

// postAdmission posts a review of the creation of an object, and returns the answer.
func postAdmission(t *testing.T, poster *http.Client, path, namespace, as, spec string) string {
	t.Helper()
	review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","operation":"CREATE",`+
		`"namespace":%[1]q,"name":"web","userInfo":{"username":%[2]q,"groups":["system:masters"]},`+
		`"kind":{"group":"operator.example.com","version":"v1alpha2","kind":"NginxOperator"},`+
		`"object":{"apiVersion":"operator.example.com/v1alpha2","kind":"NginxOperator",`+
		`"metadata":{"namespace":%[1]q,"name":"web"},"spec":%[3]s}}}`, namespace, as, spec)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, webhookURL(path), strings.NewReader(review))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := poster.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}

// requestsAbout returns the requests of a user about a namespace from the audit log, including dry
// runs and reads. The test fails if the log has no request of the user at all.
func requestsAbout(t *testing.T, namespace, user string) []string {
	t.Helper()
	var out []string
	all := 0
	must(t, auditLines(func(line []byte) error {
		all++
		var event struct {
			Verb, RequestURI string
			User             struct{ Username string }
		}
		if bytes.Contains(line, []byte(namespace)) && json.Unmarshal(line, &event) == nil && event.User.Username == user &&
			strings.Contains(event.RequestURI, "/namespaces/"+namespace+"/") {
			out = append(out, event.Verb+" "+event.RequestURI)
		}
		return nil
	}, user))
	if all == 0 {
		t.Error("the audit log has no request of the operator, that shows nothing")
	}
	return out
}
