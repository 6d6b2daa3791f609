package e2e

// What a new server costs the API server, counted from its audit log. Only the local cluster has one that can be read.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What an instance of one replica is written for: ConfigMap, Service, NetworkPolicy, Deployment, ControllerRevision; its status, once when
// it is new and once when it is ready.
const (
	childWrites  = 5
	statusWrites = 2
)

func testRequests(t *testing.T) {
	const instances = 10
	namespace := newNamespace(t, restricted)
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
		"%d for children, %d for status, %d Events (%s); per instance %.1f without Events",
		instances, children, status, events, strings.Join(kinds, ", "), float64(children+status)/instances)
	if children != instances*childWrites {
		t.Errorf("%d writes of children for %d instances, want %d each", children, instances, childWrites)
	}
	if status < instances || status > instances*statusWrites {
		t.Errorf("%d writes of status for %d instances, want at most %d each", status, instances, statusWrites)
	}
}

// operatorWrites counts the write requests of the operator in a namespace, by verb and resource, whatever their outcome.
func operatorWrites(namespace string) (map[string]int, error) {
	user, out := operatorUser(), map[string]int{}
	return out, auditLines(func(line []byte) error {
		var event struct {
			Verb string
			User struct{ Username string }
			// ObjectRef is what the request is about.
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
