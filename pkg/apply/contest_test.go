package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// entryOf returns what a manager wrote last.
func entryOf(manager, subresource, fields string, second int64) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, Time: ptr.To(metav1.Unix(second, 0)), FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// TestContest verifies that a child is contested after the fifth correction, with the field manager
// of the other client, until 15 minutes after the last one. Fewer or rarer corrections, changes
// that need no correction, and changes of the declaration do not count.
func TestContest(t *testing.T) {
	theirs := func(d *appsv1.Deployment) { d.Labels["a"] = "theirs" }
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		// declare is the declaration of a reconcile.
		declare func(d *appsv1.Deployment, reconcile int)
		times   int
		every   time.Duration
		want    bool
	}{
		"every second":       {theirs, nil, 5, time.Second, true},
		"for longer":         {theirs, nil, maxLooks + 50, time.Second, true},
		"every ten minutes":  {theirs, nil, 5, 10 * time.Minute, true},
		"four times":         {theirs, nil, 4, time.Second, false},
		"every hour":         {theirs, nil, 9, time.Hour, false},
		"undeclared":         {func(d *appsv1.Deployment) { d.Labels["theirs"] += "x" }, nil, 9, time.Second, false},
		"other declarations": {nil, func(d *appsv1.Deployment, i int) { d.Labels["a"] = fmt.Sprint(i) }, 9, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				applier, _ := newApplier(interceptor.Funcs{})
				applier.Reader = interceptor.NewClient(applier.Client.(client.WithWatch), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
						err := c.Get(ctx, key, object, opts...)
						object.SetManagedFields([]metav1.ManagedFieldsEntry{entryOf("fighter", "", `{"f:metadata":{"f:labels":{"f:a":{}}}}`, 1)})
						return err
					},
				})
				apply := func(reconcile int) []Contested {
					t.Helper()
					child := deployment()
					if test.declare != nil {
						test.declare(child, reconcile)
					}
					applied, err := applier.ApplyAll(t.Context(), owner, nil, nil, []client.Object{child}, nil)
					if err != nil {
						t.Fatal(err)
					}
					return applied.Contested
				}
				apply(0)
				var contested []Contested
				for i := range test.times {
					time.Sleep(test.every)
					if test.change != nil {
						live := deployment()
						applier.read(t, live)
						test.change(live)
						applier.update(t, live)
					}
					if contested = apply(i + 1); len(contested) > 0 && i+1 < contestedAfter {
						t.Errorf("contested after %d corrections", i+1)
					}
				}
				if !test.want {
					if len(contested) > 0 {
						t.Errorf("contested: %+v", contested)
					}
					return
				}
				if len(contested) != 1 || contested[0].Left <= 0 || contested[0].Manager != "fighter" || contested[0].Child.GetName() != "web" {
					t.Fatalf("contested: %+v", contested)
				}
				time.Sleep(lookEvery) // the last change may wait for its correction
				contested = apply(test.times)
				time.Sleep(contested[0].Left - time.Second)
				if left := apply(test.times); len(left) != 1 || left[0].Left != time.Second {
					t.Errorf("contested a second before the end: %+v", left)
				}
				time.Sleep(time.Second)
				if left := apply(test.times); len(left) > 0 {
					t.Errorf("contested for ever: %+v", left)
				}
			})
		})
	}
}

// TestRival verifies that the client with the restored field counts, and not the last one that
// wrote the object.
func TestRival(t *testing.T) {
	const image, label = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:image":{}}}}}}}`,
		`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`
	const revision = `{"f:metadata":{"f:annotations":{"f:deployment.kubernetes.io/revision":{}}}}`
	ours, controller := entryOf("shop-operator", "", image, 9), entryOf("kube-controller-manager", "", revision, 8)
	status := entryOf("kube-controller-manager", "status", image, 9)
	restoresImage := `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"nginx"}],` +
		`"containers":[{"image":"nginx:1","name":"nginx"}]}}}}`
	restoresLabel := `{"metadata":{"labels":{"a":"1"}}}`
	for name, test := range map[string]struct {
		patch   string
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"of an element": {
			restoresImage, []metav1.ManagedFieldsEntry{entryOf("kubectl-edit", "", image, 7), ours, controller, status}, "kubectl-edit",
		},
		"of a label": {restoresLabel, []metav1.ManagedFieldsEntry{controller, entryOf("flux", "", label, 7), ours}, "flux"},
		"of another label": {
			`{"metadata":{"labels":{"b":"1"}}}`,
			[]metav1.ManagedFieldsEntry{entryOf("flux", "", label, 7), controller},
			"kube-controller-manager",
		},
		"the newest": {
			restoresImage,
			[]metav1.ManagedFieldsEntry{entryOf("first", "", image, 6), entryOf("second", "", image, 7), entryOf("third", "", image, 5)},
			"second",
		},
		"of the scale": {
			`{"spec":{"replicas":2}}`,
			[]metav1.ManagedFieldsEntry{entryOf("autoscaler", "scale", `{"f:spec":{"f:replicas":{}}}`, 7), controller},
			"autoscaler",
		},
		"removed":         {restoresLabel, []metav1.ManagedFieldsEntry{ours, entryOf("remover", "", revision, 8), status}, "remover"},
		"no patch":        {"{}", []metav1.ManagedFieldsEntry{ours, entryOf("breaker", "", image, 8)}, "breaker"},
		"only the status": {restoresImage, []metav1.ManagedFieldsEntry{ours, status}, ""},
		"no fields":       {restoresImage, []metav1.ManagedFieldsEntry{{Manager: "old"}}, ""},
		"none":            {restoresImage, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := deployment(func(d *appsv1.Deployment) { d.ManagedFields = test.entries })
			var patch map[string]any
			if err := json.Unmarshal([]byte(test.patch), &patch); err != nil {
				t.Fatal(err)
			}
			if got := (&Applier{FieldOwner: "shop-operator"}).rivalOf(live, patch); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
