package e2e

// The RBAC permissions that OLM gives the operator: they suffice for all that the tests before this one made it do, and nobody's Secrets
// are the operator's to write.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

func testPermissions(t *testing.T) {
	user := "system:serviceaccount:" + suite.operatorNamespace + ":" + operatorName
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
	files, err := filepath.Glob(strings.TrimSuffix(suite.auditLog, ".log") + "*.log")
	must(t, err)
	requests := 0
	for _, name := range files {
		raw, err := os.ReadFile(name) // #nosec G304 -- the cluster's own
		must(t, err)
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if !bytes.Contains(lines.Bytes(), []byte(user)) {
				continue
			}
			var event struct {
				Verb           string
				User           struct{ Username string }
				RequestURI     string
				ResponseStatus struct {
					Code    int
					Message string
				}
			}
			if json.Unmarshal(lines.Bytes(), &event) != nil || event.User.Username != user {
				continue
			}
			requests++
			// A quota, and a namespace that ends, are refusals of another kind.
			if message := event.ResponseStatus.Message; event.ResponseStatus.Code == 403 && strings.Contains(message, "cannot "+event.Verb) {
				t.Errorf("the operator was refused: %s %s: %s", event.Verb, event.RequestURI, message)
			}
		}
		must(t, lines.Err())
	}
	if requests == 0 {
		t.Error("the audit log has no request of the operator, that shows nothing")
	}
}
