package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/stranger/attack"
)

// postReview posts a review of an object directly to the operator, as any Pod can, and returns the
// answer.
func postReview(t *testing.T, path, namespace, user, spec string) string {
	t.Helper()
	return post(t, path, attack.Review(namespace, user, spec))
}

// post posts JSON directly to the operator's webhooks.
func post(t *testing.T, path, body string) string {
	t.Helper()
	url := "https://" + suite.operator.Webhooks + path
	_, answer, err := attack.Post(t.Context(), attack.From("127.0.0.1"), url, strings.NewReader(body), int64(len(body)))
	must(t, err)
	return string(answer)
}

// TestAdmissionIsNobodysDeputy verifies that a client that posts reviews directly to the operator
// learns nothing about a namespace. The operator sends the API server no request about that
// namespace. Its answers do not reveal an allocated node port, an existing name, or a quota.
func TestAdmissionIsNobodysDeputy(t *testing.T) {
	namespace := newNamespace(t)
	taken := newNodePort()
	spec := fmt.Sprintf("{ports: [{name: http, port: 80, nodePort: %d}], service: {type: NodePort}}", taken)
	must(t, suite.admin.Create(t.Context(), specManifest(t, v1alpha2.GroupVersion.Version, namespace, "web", spec)))
	waitForChildren(t, namespace, "web")
	waitForMarker(t, namespace)

	audited := len(audit(t))
	specs := []string{
		fmt.Sprintf(`{"ports":[{"name":"http","port":80,"nodePort":%d}],"service":{"type":"NodePort"}}`, taken),
		`{"service":{"ipFamilies":["IPv6"],"loadBalancerSourceRanges":["a"]}}`,
		`{"networkPolicy":{"from":[{}]}}`,
		`{"expose":{"ingress":{"hosts":[{"host":"A.example.com"}]}}}`,
		`{"expose":{"httpRoute":{"parentRefs":[{"name":"A"}]}}}`,
		`{"patches":[{"target":{"kind":"PodDisruptionBudget"},"patch":"spec: {minAvailable: 1}"}]}`,
		`{"patches":[{"target":{"kind":"Deployment"},"patch":"spec: {template: {spec: {hostAliases: [{ip: none}]}}}"}]}`,
		`{"config":{"configMapRef":{"name":"a","key":"b"}},"content":{"configMapRef":{"name":"a"}},"tls":[{"secretName":"a","port":443}]}`,
		`{"image":"registry.example.com/stranger:1","podTemplate":{"tolerations":[{"operator":"Is"}]}}`,
	}
	var last string
	for _, path := range []string{webhook.PathValidate, webhook.PathDefault, webhook.PathV1alpha1} {
		for _, user := range []string{"", harness.OperatorUser, "system:admin"} {
			for _, spec := range specs {
				last = postReview(t, path, namespace, user, spec)
				for _, secret := range []string{"allocated", "already exists", "quota", "spec.ports[", "PodDisruptionBudget: spec"} {
					if strings.Contains(last, secret) {
						t.Errorf("%s: the answer says %q: %s", path, secret, last)
					}
				}
			}
			if path == webhook.PathValidate && !strings.Contains(last, "spec.podTemplate.tolerations[0].operator") {
				t.Errorf("the Pod template is not validated: %s", last)
			}
		}
	}

	questions := 0
	for _, entry := range audit(t)[audited:] {
		switch ref := entry.ObjectRef; {
		case ref.Namespace == namespace && ref.Name != markerName:
			t.Errorf("the operator asks about the namespace: %s %s", entry.Verb, entry.RequestURI)
		case entry.IsDryRun():
			if questions++; ref.Namespace != operatorNamespace || ref.Resource != "deployments" || entry.Verb != "create" {
				t.Errorf("a dry run that is not admission's: %s %s", entry.Verb, entry.RequestURI)
			}
		}
	}
	if want := 3 * 2; questions != want {
		t.Errorf("%d dry runs, want %d: one for each Pod template that a review says something of", questions, want)
	}
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
}

// TestAdmissionTakesNoVerdictOfOthers verifies that a policy for the operator's namespace does not
// affect objects in other namespaces. Only the API server's own validation rejects an object.
func TestAdmissionTakesNoVerdictOfOthers(t *testing.T) {
	namespace := newNamespace(t)
	refuseDeployments(t)
	object := newInstance(namespace, "web")
	object.Spec.PodTemplate = &v1alpha2.PodTemplate{PriorityClassName: "high"}
	create(t, object)
	waitForChildren(t, namespace, "web")
	refused(t, namespace, v1alpha2.GroupVersion.Version, "podTemplate: {tolerations: [{operator: Is}]}",
		"spec.podTemplate.tolerations[0].operator: Unsupported value")
}

// refuseDeployments creates a policy that rejects every new Deployment in the operator's namespace
// with the same status as the API server's own validation. It deletes the policy when the test
// ends.
func refuseDeployments(t *testing.T) {
	t.Helper()
	name := metav1.ObjectMeta{Name: "nginx-operator-test-deployments"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"},
				},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression: fmt.Sprintf("object.metadata.namespace != %q", operatorNamespace), Message: "spec.template.spec.priorityClassName is none",
		}},
	}}
	enforce(t, policy)
	waitFor(t, func() error {
		err := suite.admin.Create(t.Context(), minimalDeployment(operatorNamespace), client.DryRunAll)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "denied request") {
			return fmt.Errorf("a Deployment is answered with: %w", err)
		}
		return nil
	})
}

// minimalDeployment returns a valid Deployment with one container.
func minimalDeployment(namespace string) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "minimal"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
	return deployment
}

// enforce creates a policy that denies, and deletes it when the test ends.
func enforce(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, one := range []client.Object{policy, binding} {
		create(t, one)
		t.Cleanup(func() { must(t, suite.admin.Delete(context.Background(), one)) })
	}
}
