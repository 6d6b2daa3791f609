package e2e

// The RBAC permissions that OLM gives the operator: they suffice for all that the tests before this one made it do, and nobody's Secrets
// are the operator's to write.

import (
	"encoding/json"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

func testPermissions(t *testing.T) {
	user := operatorUser()
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + suite.operatorNamespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Resource: "secrets"},
		}}
		must(t, suite.admin.Create(t.Context(), review))
		if review.Status.Allowed {
			t.Errorf("the operator may %s Secrets in other namespaces: %s", verb, review.Status.Reason)
		}
	}
	if suite.local {
		refusedNothing(t, user)
	}
}

// refusedNothing requires the API server not to have refused the operator anything for want of a permission.
func refusedNothing(t *testing.T, user string) {
	t.Helper()
	requests := 0
	must(t, auditLines(func(line []byte) error {
		var event struct {
			Verb           string
			User           struct{ Username string }
			RequestURI     string
			ResponseStatus struct {
				Code    int
				Message string
			}
		}
		if decoded := json.Unmarshal(line, &event) == nil; !decoded || event.User.Username != user {
			return nil
		}
		requests++
		// A quota, and a namespace that ends, are refusals of another kind.
		if message := event.ResponseStatus.Message; event.ResponseStatus.Code == 403 && strings.Contains(message, "cannot "+event.Verb) {
			t.Errorf("the operator was refused: %s %s: %s", event.Verb, event.RequestURI, message)
		}
		return nil
	}, user))
	if requests == 0 {
		t.Error("the audit log has no request of the operator, that shows nothing")
	}
}
