package e2e

// The RBAC permissions that OLM grants to the operator. They suffice for everything that the
// preceding tests do, and they do not allow the operator to write Secrets in other namespaces.

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

// refusedNothing requires that the API server rejected no request of the operator for lack of a
// permission.
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
		// Quotas and terminating namespaces also return 403, but with another message.
		if message := event.ResponseStatus.Message; event.ResponseStatus.Code == 403 && strings.Contains(message, "cannot "+event.Verb) {
			t.Errorf("the operator was refused: %s %s: %s", event.Verb, event.RequestURI, message)
		}
		return nil
	}, user))
	if requests == 0 {
		t.Error("the audit log has no request of the operator, that shows nothing")
	}
}
