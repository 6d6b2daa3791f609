package integration

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// TestUnreadableObjectsFailAlone verifies that an unreadable object does not affect other objects.
// The test stores such objects past the schema, like a release without these bounds would. The
// status and a metric report them, and their children stay. The operator reconciles all other
// objects, also after a restart.
func TestUnreadableObjectsFailAlone(t *testing.T) {
	namespace := newNamespace(t)
	create(t, newInstance(namespace, "before"))
	before := waitForChildren(t, namespace, "before")
	specs := map[string]string{
		"endless":  `{"resources":{"limits":{"cpu":"1e-1000000000"}}}`,
		"fraction": `{"resources":{"requests":{"cpu":"1e1.5"}}}`,
		"overflow": `{"replicas":4294967297}`,
		"a-list":   `{"tls":{"secretName":"a"}}`,
		"deep":     `{"ports":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}",
		"no-spec":  `"text"`,
	}
	// The API server rejects a status update of these objects: it evaluates the rules of the
	// schema, which find other types.
	shapeless := []string{"a-list", "deep", "no-spec"}
	// The first status is not an object. The second has a value of the wrong type.
	statuses := map[string]string{"fraction": `"text"`, "overflow": `{"readyReplicas":"many"}`}
	for name, spec := range specs {
		store(t, namespace, name, map[string]string{"spec": spec, "status": cmp.Or(statuses[name], "{}")})
	}
	// A reconciled object becomes unreadable, and later readable again.
	var reported v1alpha2.NginxOperatorStatus
	waitFor(t, func() error {
		object, err := waitForStatusOnce(t.Context(), namespace, "before")
		if err != nil || object.Status.URL == "" {
			return errors.Join(errors.New("no URL in the status"), err)
		}
		reported = object.Status
		return nil
	})
	storeSpec(t, namespace, "before", specs["endless"])
	for _, name := range append([]string{"before"}, keys(specs)...) {
		waitForUnreadable(t, namespace, name, !slices.Contains(shapeless, name))
	}
	if status := readStored(t, namespace, "overflow").Object["status"].(map[string]any); status["readyReplicas"] != nil {
		t.Errorf("the status that cannot be read stays: %v", status)
	}
	kept, _, err := unstructured.NestedString(readStored(t, namespace, "before").Object, "status", "url")
	if err != nil || kept != reported.URL || kept == "" {
		t.Errorf("the status has the URL %q where it had %q: %v", kept, reported.URL, err)
	}
	create(t, newInstance(namespace, "after"))
	waitForUnstructuredStatus(t, namespace, "after", "Ready", "RolloutInProgress")
	for name, children := range map[string]bool{"before": true, "endless": false} {
		found := must1(childrenOf(t.Context(), namespace, name))(t)
		if (found.deployment != nil) != children {
			t.Errorf("%s has the Deployment %v", name, found.deployment)
		}
		if children && found.deployment.ResourceVersion != before.deployment.ResourceVersion {
			t.Errorf("the Deployment of %s was changed", name)
		}
	}
	waitFor(t, func() error {
		if want := fmt.Sprintf("\nnginx_operator_unreadable_objects %d\n", len(specs)+1); !strings.Contains(scrape(t), want) {
			return fmt.Errorf("no%sin the metrics", want)
		}
		return nil
	})

	suite.operator.Stop()
	startNextOperator(t)
	create(t, newInstance(namespace, "restarted"))
	waitForUnstructuredStatus(t, namespace, "restarted", "Ready", "RolloutInProgress")

	restored := readStored(t, namespace, "before")
	restore := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":null,"replicas":3}}`))
	must(t, suite.admin.Patch(t.Context(), restored, restore))
	waitForUnstructuredStatus(t, namespace, "before", "Degraded", "AsExpected")
	for name := range specs {
		must(t, suite.admin.Delete(t.Context(), readStored(t, namespace, name)))
	}
	waitFor(t, func() error {
		deployment := must1(childrenOf(t.Context(), namespace, "before"))(t).deployment
		if deployment == nil || *deployment.Spec.Replicas != 3 {
			return fmt.Errorf("the restored object has the Deployment %v", deployment)
		}
		return nil
	})
}

func keys(of map[string]string) []string {
	var out []string
	for key := range maps.Keys(of) {
		out = append(out, key)
	}
	return out
}

// storeSpec writes an object with a spec directly into etcd. An existing object keeps all other
// fields.
func storeSpec(t *testing.T, namespace, name, spec string) {
	t.Helper()
	store(t, namespace, name, map[string]string{"spec": spec})
}

// storeChange is storeSpec for a change of the spec, which is a new generation.
func storeChange(t *testing.T, namespace, name, spec string) {
	t.Helper()
	metadata := readStored(t, namespace, name).Object["metadata"].(map[string]any)
	metadata["generation"] = metadata["generation"].(int64) + 1
	store(t, namespace, name, map[string]string{"spec": spec, "metadata": string(must1(json.Marshal(metadata))(t))})
}

// store writes an object with these fields, as JSON, directly into etcd in one write. An existing
// object keeps all other fields.
func store(t *testing.T, namespace, name string, fields map[string]string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
	err := suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	must(t, client.IgnoreNotFound(err))
	if err != nil {
		object.SetNamespace(namespace)
		object.SetName(name)
		object.SetUID(uuid.NewUUID())
		object.SetGeneration(1)
		object.Object["metadata"].(map[string]any)["creationTimestamp"] = "2026-01-01T00:00:00Z"
	}
	object.SetResourceVersion("")
	for field, text := range fields {
		var value any
		must(t, json.Unmarshal([]byte(text), &value))
		object.Object[field] = value
	}
	must(t, harness.Store(t.Context(), suite.etcd, namespace, name, must1(json.Marshal(object.Object))(t)))
}

func readStored(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
	return object
}

func waitForUnreadable(t *testing.T, namespace, name string, inStatus bool) {
	t.Helper()
	if inStatus {
		waitForUnstructuredStatus(t, namespace, name, "Degraded", v1alpha2.ReasonUnreadable)
	}
	waitFor(t, func() error {
		events := &corev1.EventList{}
		if err := suite.admin.List(t.Context(), events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Name == name && event.Reason == v1alpha2.ReasonUnreadable {
				return nil
			}
		}
		return fmt.Errorf("no Event says that %s cannot be read", name)
	})
}

func waitForUnstructuredStatus(t *testing.T, namespace, name, condition, reason string) {
	t.Helper()
	waitFor(t, func() error {
		conditions, _, _ := unstructured.NestedSlice(readStored(t, namespace, name).Object, "status", "conditions")
		for _, one := range conditions {
			if fields := one.(map[string]any); fields["type"] == condition && fields["reason"] == reason {
				return nil
			}
		}
		return fmt.Errorf("%s has the conditions %v, want %s with the reason %s", name, conditions, condition, reason)
	})
}
