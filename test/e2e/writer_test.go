package e2e

// Clients that write during an operator upgrade.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness/repeat"
)

// Each write and each new object causes ten times as many writes by the operator and the control
// plane, so both are infrequent.
const (
	writeInterval  = 400 * time.Millisecond
	createInterval = 2 * time.Second
)

// background repeats an action until it is stopped, and counts the repetitions.
type background struct {
	*repeat.Calls
	what string
}

// startBackground starts the repetition. It ends with finish or with the test.
func startBackground(t *testing.T, what string, pause time.Duration, do func(ctx context.Context, n int) error) *background {
	t.Helper()
	b := &background{repeat.Start(t.Context(), pause, do), what}
	t.Cleanup(func() { b.Stop() })
	return b
}

// finish stops the repetition. It requires that no repetition failed, and that there were at least
// atLeast of them.
func (b *background) finish(t *testing.T, during string, atLeast int) {
	t.Helper()
	counts := b.Stop()
	t.Logf("FIGURE %s %s: %d, %d failed", b.what, during, counts.Total, counts.Failed)
	if counts.Failed > 0 {
		t.Errorf("%s: %d of %d failed, the first: %v", b.what, counts.Failed, counts.Total, counts.First)
	}
	if counts.Total < atLeast {
		t.Errorf("%s: only %d, that shows nothing", b.what, counts.Total)
	}
}

// startWriter changes one object repeatedly at a version, and checks the result of each write. The
// object has no operands.
func startWriter(t *testing.T, namespace, version string) *background {
	t.Helper()
	object := objectOf(v1alpha2.GroupVersion.Group+"/"+version, "NginxOperator", "written-"+version)
	object.SetNamespace(namespace)
	spec := map[string]any{"replicas": int64(0), "port": int64(9999)}
	if version == newer {
		spec = map[string]any{"replicas": int64(0), "ports": []any{map[string]any{"name": "http", "port": int64(9999)}}}
	}
	object.Object["spec"] = spec
	must(t, client.IgnoreAlreadyExists(suite.admin.Create(t.Context(), object)))
	return startBackground(t, "writes at "+version, writeInterval, func(ctx context.Context, n int) error {
		patch := fmt.Appendf(nil, `{"spec":{"forceRedeploy":"%d"}}`, n)
		if err := suite.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		if got := text(object, "spec", "forceRedeploy"); got != fmt.Sprint(n) || portIn(object) != 9999 {
			return fmt.Errorf("after the write of %d the object has %v", n, object.Object["spec"])
		}
		return nil
	})
}

// portIn returns the first port of an object of either version.
func portIn(object *unstructured.Unstructured) int64 {
	if port, found, _ := unstructured.NestedInt64(object.Object, "spec", "port"); found {
		return port
	}
	ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
	if len(ports) == 0 {
		return 0
	}
	port, _, _ := unstructured.NestedInt64(ports[0].(map[string]any), "port")
	return port
}

// creator creates objects, alternately at the two versions. Objects created at v1alpha2 have a
// field that v1alpha1 does not have.
type creator struct {
	*background
	mu    sync.Mutex
	ports map[string]int32
}

const createdDrain int32 = 7

func startCreator(t *testing.T, namespace, prefix string, firstPort int32) *creator {
	t.Helper()
	c := &creator{ports: map[string]int32{}}
	c.background = startBackground(t, "objects created", createInterval, func(ctx context.Context, n int) error {
		name, port := fmt.Sprintf("%s-%d", prefix, n), firstPort+int32(n) // #nosec G115 -- a few
		var object client.Object = newV1alpha1(namespace, name, port, 0)
		if n%2 == 1 {
			made := newObject(namespace, name, 0)
			made.Spec.Ports[0].Port, made.Spec.DrainSeconds = port, ptr.To(createdDrain)
			object = made
		}
		if err := suite.admin.Create(ctx, object); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ports[name] = port
		return nil
	})
	return c
}

// finish stops the creator, requires every object to be as it was created, and adds the objects to
// known.
func (c *creator) finish(t *testing.T, namespace, during string, known map[string]int32) {
	t.Helper()
	c.background.finish(t, during, 2)
	list := &v1alpha2.NginxOperatorList{}
	must(t, suite.admin.List(t.Context(), list, client.InNamespace(namespace)))
	found := map[string]*v1alpha2.NginxOperator{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	n := 0
	for name, port := range c.ports {
		object := found[name]
		if object == nil || len(object.Spec.Ports) != 1 || object.Spec.Ports[0].Port != port {
			t.Errorf("%s was created with port %d and is %+v", name, port, object)
			continue
		}
		if ptr.Deref(object.Spec.DrainSeconds, 0) == createdDrain {
			n++
		}
	}
	if want := len(c.ports) / 2; n != want {
		t.Errorf("%d objects have the field that only v1alpha2 has, instead of %d", n, want)
	}
	maps.Copy(known, c.ports)
}

func newV1alpha1(namespace, name string, port, replicas int32) *v1alpha1.NginxOperator {
	return &v1alpha1.NginxOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.NginxOperatorSpec{Port: &port, Replicas: &replicas},
	}
}

// deleteWritten deletes the objects of the writers.
func deleteWritten(t *testing.T, namespace string, versions ...string) {
	t.Helper()
	var errs []error
	for _, version := range versions {
		object := newObject(namespace, "written-"+version, 0)
		errs = append(errs, suite.admin.Delete(t.Context(), object))
	}
	must(t, errors.Join(errs...))
}
