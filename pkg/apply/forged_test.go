package apply

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// testContent is the content of children in tests: every ConfigMap has the value v.
type testContent struct {
	fill  func(client.Object) error
	looks *int
}

func (c testContent) Fill(_ context.Context, child client.Object) error { return c.fill(child) }

func (c testContent) Holds(_ context.Context, _, live client.Object) (bool, error) {
	if c.looks != nil {
		*c.looks++
	}
	return live.(*corev1.ConfigMap).Data["k"] == "v", nil
}

// TestForgedChild verifies that Apply detects a child that a tenant deleted and created again with
// the same name and owner, but with other data. Apply compares each object once.
func TestForgedChild(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{})
	looks := 0
	genuine := testContent{looks: &looks, fill: func(child client.Object) error {
		child.(*corev1.ConfigMap).Data = map[string]string{"k": "v"}
		return nil
	}}
	declared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Immutable: ptr.To(true)}
	live := declared.DeepCopy()
	apply := func() error {
		_, err := applier.Apply(t.Context(), owner, nil, genuine, declared.DeepCopy())
		return err
	}
	replaceWith := func(uid types.UID, value string) {
		t.Helper()
		if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(declared), live); err != nil {
			t.Fatal(err)
		}
		if err := applier.Client.Delete(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		live.UID, live.ResourceVersion, live.Data = uid, "", map[string]string{"k": value}
		if err := applier.Client.Create(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(); err != nil {
		t.Fatal(err)
	}

	replaceWith("forged", "theirs")
	for range 2 {
		forged := IsForged(apply())
		if forged == nil || forged.Kind != "ConfigMap" || forged.Child.GetUID() != "forged" {
			t.Fatalf("found %+v", forged)
		}
	}
	pending, err := applier.Pending(t.Context(), owner, nil, genuine, []client.Object{declared.DeepCopy()}, false)
	if err != nil || len(pending) != 1 {
		t.Errorf("pending %v: %v", pending, err)
	}
	if applier.IsAsDeclared(live) {
		t.Error("a forged child is as declared, so the event of its creation is dropped")
	}

	replaceWith("restored", "v")
	looks = 0
	for range 3 {
		if err := apply(); err != nil {
			t.Fatal(err)
		}
	}
	if looks != 1 {
		t.Errorf("compared %d times", looks)
	}
	if counted["delete ConfigMap"] != 0 {
		t.Errorf("writes %v", counted)
	}
}
