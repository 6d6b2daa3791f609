package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// TestRestrictedEndpoints verifies that a renamed port is bridged on a cluster that refuses
// addresses of Pods in EndpointSlices without a permission, as OpenShift does
// (RestrictedEndpointsAdmission). If the API server refuses the bridge anyway, the operator renames
// the port without it, and logs the reason. It does the same if an EndpointSlice of somebody else
// has the name.
func TestRestrictedEndpoints(t *testing.T) {
	t.Parallel()
	const permitted = "authorizer.group('discovery.k8s.io').resource('endpointslices').subresource('restricted')" +
		".namespace(object.metadata.namespace).check('create').allowed()"
	for name, test := range map[string]struct {
		allowed string
		taken   bool
		reason  string
	}{
		"with the permission": {permitted, false, ""},
		"refused":             {"false", false, endpointsRefusal},
		"name taken":          {permitted, true, "is not controlled by this NginxOperator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}} })
			endpoints := endpointsOf(namespace, "web")
			create(t, endpoints)
			if test.taken {
				create(t, &discoveryv1.EndpointSlice{
					ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: endpoints.Name + "-renamed"},
					AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
				})
			}
			restrictEndpoints(t, namespace, test.allowed)

			update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].Name = "web" })
			waitFor(t, func() error { return portOf(t.Context(), namespace, "web", "web") })
			bridged := test.reason == ""
			if err := bridgeOf(t.Context(), namespace, "web"); (err == nil) != bridged {
				t.Errorf("the renamed port is bridged: %t, want %t: %v", err == nil, bridged, err)
			}
			logged := slices.ContainsFunc(strings.Split(suite.operator.Log(), "\n"), func(line string) bool {
				return strings.Contains(line, "Failed to bridge a renamed port") && strings.Contains(line, namespace) &&
					strings.Contains(line, test.reason)
			})
			if logged == bridged {
				t.Errorf("the operator logs %q: %t, the port is bridged: %t", test.reason, logged, bridged)
			}
		})
	}
}

// endpointsRefusal is the message of OpenShift's admission plugin without the address.
const endpointsRefusal = "endpoint address is not allowed"

// restrictEndpoints creates a policy for the EndpointSlices of a namespace. It returns when the
// policy refuses a user who may only create EndpointSlices. It deletes the policy when the test
// ends.
func restrictEndpoints(t *testing.T, namespace, allowed string) {
	t.Helper()
	name := metav1.ObjectMeta{Name: "restricted-endpoints-" + namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{discoveryv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"endpointslices"},
				},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression: allowed, Message: endpointsRefusal, Reason: ptr.To(metav1.StatusReasonForbidden),
		}},
	}}
	enforce(t, policy)

	other := creatorOfEndpoints(t, namespace)
	waitFor(t, func() error {
		slice := endpointsOf(namespace, "web")
		slice.Name = "other"
		err := other.Create(t.Context(), slice, client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), endpointsRefusal) {
			return fmt.Errorf("an EndpointSlice is answered with: %w", err)
		}
		return nil
	})
}

// creatorOfEndpoints returns a client that may create EndpointSlices in a namespace, and nothing
// else.
func creatorOfEndpoints(t *testing.T, namespace string) client.Client {
	t.Helper()
	const user = "creator-of-endpoints"
	name := metav1.ObjectMeta{Namespace: namespace, Name: user}
	create(t, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: []string{"create"}},
	}})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	must(t, apiserver.AwaitAccess(t.Context(), suite.admin, authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: discoveryv1.GroupName, Resource: "endpointslices",
		},
	}, true))
	config := rest.CopyConfig(suite.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return must1(client.New(config, client.Options{Scheme: scheme.New()}))(t)
}
