package e2e

// The number of write requests for a new instance, counted in the API server's audit log. Only the
// local cluster has a readable audit log.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writes for an instance with one replica. The children are ConfigMap, Service, NetworkPolicy, and
// Deployment. The status is written when the instance is new and when it is ready. There are no
// Events, unless a Pod is unready again.
const (
	childWrites  = 4
	statusWrites = 2
)

func testRequests(t *testing.T) {
	const instances = 10
	namespace := newNamespace(t, restricted)
	flaps := watchFlaps(t, namespace)
	objects := make([]client.ObjectKey, instances)
	for i := range objects {
		object := newObject(namespace, fmt.Sprintf("web-%d", i), 1)
		objects[i] = client.ObjectKeyFromObject(object)
		must(t, suite.admin.Create(t.Context(), object))
	}
	for _, key := range objects {
		waitForReady(t, newObject(key.Namespace, key.Name, 1))
	}
	writes, err := operatorWrites(namespace)
	must(t, err)
	news := 2 * flaps() // each is reported, and its end too
	kinds := make([]string, 0, len(writes))
	children, status, events := 0, 0, 0
	for kind, count := range writes {
		kinds = append(kinds, fmt.Sprintf("%s: %d", kind, count))
		switch {
		case strings.HasSuffix(kind, " events"):
			events += count
		case kind == "patch nginxoperators/status":
			status += count
		default:
			children += count
		}
	}
	slices.Sort(kinds)
	t.Logf("FIGURE write requests for %d new instances until ready: "+
		"%d for children, %d for status, %d Events (%s); per instance %.1f; Pods were unready again %d times",
		instances, children, status, events, strings.Join(kinds, ", "), float64(children+status+events)/instances, news/2)
	if children != instances*childWrites {
		t.Errorf("%d writes of children for %d instances, want %d each", children, instances, childWrites)
	}
	if events > news {
		t.Errorf("%d Events for %d instances that became ready", events, instances)
	}
	if status < instances || status > instances*statusWrites+news {
		t.Errorf("%d writes of status for %d instances, want at most %d each", status, instances, statusWrites)
	}
}

// operatorWrites counts the operator's write requests in a namespace by verb and resource,
// including failed requests.
func operatorWrites(namespace string) (map[string]int, error) {
	user, out := operatorUser(), map[string]int{}
	return out, auditLines(func(line []byte) error {
		var event struct {
			Verb string
			User struct{ Username string }
			// ObjectRef is the object of the request.
			ObjectRef struct{ Namespace, Resource, Subresource string }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if event.User.Username != user || event.ObjectRef.Namespace != namespace ||
			!slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb) {
			return nil
		}
		what := event.Verb + " " + event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			what += "/" + event.ObjectRef.Subresource
		}
		out[what]++
		return nil
	}, user, namespace)
}
