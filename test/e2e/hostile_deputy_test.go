package e2e

// A stranger misuses the operator as a deputy: it posts admission reviews of objects in another
// namespace.
//
//   - The operator sends no request about that namespace.
//   - The answers are the same as those about an empty namespace.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/test/stranger/attack"
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
// name of several users. The gate posts those to each path in the name of one user.
func strangerDeputy(t *testing.T, from attack.Dial) {
	t.Helper()
	victim, empty := newNamespace(t, restricted), newNamespace(t, restricted)
	// The namespaces have no instance, so only a review can cause a request about them.
	service := func(namespace string) *corev1.Service {
		object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		object.Spec.Type, object.Spec.Ports = corev1.ServiceTypeNodePort, []corev1.ServicePort{{Port: 80}}
		return object
	}
	taken, free := service(victim), service(empty)
	must(t, suite.admin.Create(t.Context(), taken))
	must(t, suite.admin.Create(t.Context(), free))
	must(t, suite.admin.Delete(t.Context(), free))
	if err := suite.admin.Create(t.Context(), service(victim), client.DryRunAll); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the Service can be created again, so the answers show nothing: %v", err)
	}

	user := operatorUser()
	users := []string{user, "", "system:admin"}
	for i, path := range []string{webhook.PathValidate, webhook.PathDefault, webhook.PathV1alpha1} {
		for _, as := range scaled(users[i:i+1], users) {
			var last string
			about := deputySpecs(taken.Spec.Ports[0].NodePort)
			for i, spec := range deputySpecs(free.Spec.Ports[0].NodePort) {
				last = askDeputy(t, from, path, taken, as, about[i])
				if want := askDeputy(t, from, path, free, as, spec); last != want {
					t.Errorf("%s: the answer depends on the namespace: %s, for an empty one: %s", path, last, want)
				}
			}
			if path == webhook.PathValidate && !refusesToleration(t, last) {
				t.Errorf("the Pod template is not validated, that shows nothing: %s", last)
			}
		}
	}
	for _, request := range requestsAbout(t, victim, user) {
		t.Errorf("the operator asks about the namespace of the reviews: %s", request)
	}
}

// askDeputy posts a review of an object next to a Service, and returns the answer without the
// Service's namespace and node port.
func askDeputy(t *testing.T, from attack.Dial, path string, service *corev1.Service, as, spec string) string {
	t.Helper()
	body := attack.Review(service.Namespace, as, spec)
	code, answer, err := attack.Post(t.Context(), from, webhookURL(path), strings.NewReader(body), int64(len(body)))
	if err != nil || code != http.StatusOK {
		t.Fatalf("a review is answered with %d: %v: %s", code, err, answer)
	}
	return strings.NewReplacer(service.Namespace, "NAMESPACE", fmt.Sprint(service.Spec.Ports[0].NodePort), "PORT").Replace(string(answer))
}

// refusesToleration reports whether an answer has the error of the API server about the Pod
// template of the last of deputySpecs.
func refusesToleration(t *testing.T, answer string) bool {
	t.Helper()
	review := admissionv1.AdmissionReview{}
	must(t, json.Unmarshal([]byte(answer), &review))
	result := review.Response.Result
	return result != nil && result.Details != nil && slices.ContainsFunc(result.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "spec.podTemplate.tolerations[0].operator" && cause.Type == metav1.CauseTypeFieldValueNotSupported
	})
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
