package apply

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// labelsOf returns the labels of an owner's children.
func labelsOf(owner string) map[string]string {
	return map[string]string{"instance": owner, "managed-by": "shop-operator"}
}

// labelled returns a Deployment with the labels and the selector of the owner's children.
func labelled() *appsv1.Deployment {
	return deployment(func(d *appsv1.Deployment) {
		d.Labels = labelsOf(owner.Name)
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(owner.Name)}
	})
}

// restored returns a child as a backup without owner references restores it. Its record is that of
// an earlier owner of the same name, unless change changes this owner or the declaration.
func restored[T client.Object](t *testing.T, child T, change ...func(declared T, owner *metav1.OwnerReference)) T {
	t.Helper()
	before := metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	before.UID = "an earlier owner"
	declared := child.DeepCopyObject().(T)
	for _, f := range change {
		f(declared, before)
	}
	declared.SetOwnerReferences([]metav1.OwnerReference{*before})
	record := stored(t, declared).GetAnnotations()[annotation]
	out := child.DeepCopyObject().(T)
	out.SetUID("child-uid")
	out.SetAnnotations(map[string]string{annotation: record})
	return out
}

// TestOrphans verifies which objects without an owner reference are adopted. Adoption is one patch
// of the owner references. After that, the child is applied as usual, and fields of other clients
// stay.
func TestOrphans(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{}, restored(t, labelled()))
	live := labelled()
	applier.read(t, live)
	live.Labels["velero.io/restore-name"] = "monday"
	live.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "theirs", UID: "other"}}
	applier.update(t, live)
	before := live.DeepCopy()
	for i, want := range []writes{{"patch Deployment": 1}, {"patch Deployment": 1}, {}} {
		_, err := applier.Apply(t.Context(), owner, nil, nil, labelled())
		if StartsOver(err) != (i == 0) || err != nil && i > 0 {
			t.Fatalf("call %d: %v", i, err)
		}
		if diff := cmp.Diff(want, counted); diff != "" {
			t.Errorf("call %d: writes (-want +got):\n%s", i, diff)
		}
		clear(counted)
		applier.read(t, live)
		if !metav1.IsControlledBy(live, owner) || len(live.OwnerReferences) != 2 || live.Labels["velero.io/restore-name"] != "monday" {
			t.Errorf("call %d: %+v", i, live.ObjectMeta)
		}
		if diff := cmp.Diff(before.Spec, live.Spec); diff != "" {
			t.Errorf("call %d: spec (-before +after):\n%s", i, diff)
		}
	}
}

// TestForeignObjectsAreNoOrphans verifies that Apply leaves an object alone if anything is missing
// that the operator writes into its children, and that the message has the difference.
func TestForeignObjectsAreNoOrphans(t *testing.T) {
	const unlabelled, unrecorded = "(nothing controls it)", "its annotation example.com/last does not reference"
	for name, test := range map[string]struct {
		live *appsv1.Deployment
		set  func(*appsv1.Deployment)
		want string
	}{
		"no labels":         {restored(t, labelled()), func(d *appsv1.Deployment) { d.Labels = nil }, unlabelled},
		"labels of a chart": {restored(t, labelled()), func(d *appsv1.Deployment) { d.Labels["managed-by"] = "Helm" }, unlabelled},
		"another instance":  {restored(t, labelled()), func(d *appsv1.Deployment) { d.Labels["instance"] = "other" }, unlabelled},
		"no record":         {restored(t, labelled()), func(d *appsv1.Deployment) { d.Annotations = nil }, unrecorded},
		"no valid record":   {restored(t, labelled()), func(d *appsv1.Deployment) { d.Annotations[annotation] = "[]" }, unrecorded},
		"an empty record":   {restored(t, labelled()), func(d *appsv1.Deployment) { d.Annotations[annotation] = "{}" }, unrecorded},
		"a copy of another child": {
			restored(t, labelled(), func(d *appsv1.Deployment, _ *metav1.OwnerReference) { d.Name = "other" }), nil,
			unrecorded,
		},
		"a child of another owner": {
			restored(t, labelled(), func(_ *appsv1.Deployment, o *metav1.OwnerReference) { o.Name = "other" }), nil,
			unrecorded,
		},
		"a child of another kind": {
			restored(t, labelled(), func(_ *appsv1.Deployment, o *metav1.OwnerReference) { o.Kind = "Secret" }), nil,
			unrecorded,
		},
		"a child without a controller": {
			restored(t, labelled(), func(_ *appsv1.Deployment, o *metav1.OwnerReference) { o.Controller = nil }), nil,
			unrecorded,
		},
		"another selector": {
			restored(t, labelled()), func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = "theirs" }, "its selector differs",
		},
		"a controller": {
			restored(t, labelled()), func(d *appsv1.Deployment) {
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "theirs", UID: "other", Controller: ptr.To(true)}}
			}, `(it is controlled by Other "theirs")`,
		},
		"it is being deleted": {
			restored(t, labelled()), func(d *appsv1.Deployment) {
				d.DeletionTimestamp, d.Finalizers = ptr.To(metav1.Now()), []string{"example.com/wait"}
			}, "waiting for the deletion",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.set != nil {
				test.set(test.live)
			}
			requireForeign(t, nil, test.live, labelled(), test.want)
		})
	}
	t.Run("other content", func(t *testing.T) {
		declared := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labelsOf(owner.Name)},
			Immutable:  ptr.To(true),
		}
		live := restored(t, declared)
		live.Data = map[string]string{"k": "theirs"}
		requireForeign(t, testContent{}, live, declared, "its content differs")
	})
}

// requireForeign requires that Apply reports the name of a child as taken, and writes nothing.
func requireForeign(t *testing.T, content Content, live, child client.Object, want string) {
	t.Helper()
	applier, counted := newApplier(interceptor.Funcs{}, live.DeepCopyObject().(client.Object))
	_, err := applier.Apply(t.Context(), owner, nil, content, child)
	if IsNotOurs(err) == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	now := emptyOf(live)
	if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), now); err != nil {
		t.Fatal(err)
	}
	if len(counted) > 0 || metav1.IsControlledBy(now, owner) {
		t.Errorf("writes %v, references %v", counted, now.GetOwnerReferences())
	}
}

// TestOwnerOfOrphans verifies that nothing is adopted for an owner that is being deleted or was
// replaced, although the cache has it as before. The garbage collector would delete the child.
func TestOwnerOfOrphans(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"it is being deleted": func(o *corev1.ConfigMap) {
			o.DeletionTimestamp, o.Finalizers = ptr.To(metav1.Now()), []string{metav1.FinalizerOrphanDependents}
		},
		"it was replaced": func(o *corev1.ConfigMap) { o.UID = "another" },
		"it is gone":      func(o *corev1.ConfigMap) { o.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			now := owner.DeepCopy()
			change(now)
			applier, counted := newApplier(interceptor.Funcs{}, restored(t, labelled()), now)
			applier.ConfirmOwners = true
			if _, err := applier.Apply(t.Context(), owner, nil, nil, labelled()); !StartsOver(err) || len(counted) > 0 {
				t.Errorf("error %v, writes %v", err, counted)
			}
		})
	}
}

// declaredFamily returns the children of the owner: a ConfigMap, a Service, a Deployment, and an
// independent PodDisruptionBudget.
func declaredFamily() (ordered, independent []client.Object) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labelsOf(owner.Name)}
	selector := labelsOf(owner.Name)
	return []client.Object{
			&corev1.ConfigMap{ObjectMeta: *meta.DeepCopy(), Immutable: ptr.To(true)},
			&corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{Selector: selector}},
			labelled(),
		}, []client.Object{
			&policyv1.PodDisruptionBudget{
				ObjectMeta: *meta.DeepCopy(), Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}},
			},
		}
}

// TestOrphansAreAdoptedTogether verifies that one call adopts all children, and that an independent
// child that cannot be adopted does not stop the others.
func TestOrphansAreAdoptedTogether(t *testing.T) {
	ordered, independent := declaredFamily()
	var all []client.Object
	for _, child := range append(ordered, independent...) {
		all = append(all, restored(t, child))
	}
	denied := false
	applier, counted := newApplier(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, isBudget := object.(*policyv1.PodDisruptionBudget); isBudget && denied {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "poddisruptionbudgets"}, "web", errors.New("a policy"))
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	}, all...)
	denied = true
	want := writes{"patch ConfigMap": 1, "patch Service": 1, "patch Deployment": 1}
	for range 2 { // adopted, and with the records of this owner
		ordered, independent = declaredFamily()
		applied, err := applier.ApplyAll(t.Context(), owner, nil, nil, ordered, independent)
		if diff := cmp.Diff(want, counted); diff != "" || err != nil && !StartsOver(err) {
			t.Fatalf("error %v, writes (-want +got):\n%s", err, diff)
		}
		clear(counted)
		if err == nil && (len(applied.Failures) != 1 || !apierrors.IsForbidden(applied.Failures[0].Err)) {
			t.Errorf("failures %v", applied.Failures)
		}
	}
	denied = false
	for range 2 {
		ordered, independent = declaredFamily()
		if _, err := applier.ApplyAll(t.Context(), owner, nil, nil, ordered, independent); err != nil && !StartsOver(err) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(writes{"patch PodDisruptionBudget": 2}, counted); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestTakenNames verifies that one error has all taken names, that nothing is created while the
// last ordered child cannot be, and that no orphan is adopted then. The cache does not have the
// objects, because they do not have the operator's labels.
func TestTakenNames(t *testing.T) {
	for name, test := range map[string]struct {
		// taken has the kinds of the foreign objects.
		taken   []string
		created writes
	}{
		"all":                 {[]string{"Service", "Deployment", "PodDisruptionBudget"}, writes{}},
		"the last":            {[]string{"Deployment"}, writes{}},
		"an earlier one":      {[]string{"Service"}, writes{"create ConfigMap": 1}},
		"with an independent": {[]string{"Service", "PodDisruptionBudget"}, writes{"create ConfigMap": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			ordered, independent := declaredFamily()
			var foreign []client.Object
			for _, child := range append(ordered, independent...) {
				if slices.Contains(test.taken, kindOf(child)) {
					child.SetLabels(map[string]string{"managed-by": "Helm"})
					child.SetUID(types.UID(kindOf(child)))
					foreign = append(foreign, child)
				}
			}
			applier, counted := newApplier(interceptor.Funcs{}, foreign...)
			applier.Client = interceptor.NewClient(applier.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					if slices.Contains(test.taken, kindOf(object)) {
						return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
					}
					return c.Get(ctx, key, object, opts...)
				},
			})
			ordered, independent = declaredFamily()
			_, err := applier.ApplyAll(t.Context(), owner, nil, nil, ordered, independent)
			found := IsNotOurs(err)
			if found == nil {
				t.Fatal(err)
			}
			got := []string{found.Kind}
			for _, other := range found.Others {
				got = append(got, other.Kind)
			}
			if diff := cmp.Diff(test.taken, got); diff != "" {
				t.Errorf("%v: taken names (-want +got):\n%s", err, diff)
			}
			for _, taken := range test.taken {
				if !strings.Contains(err.Error(), taken+` "web"`) {
					t.Errorf("%v does not name the %s", err, taken)
				}
			}
			if diff := cmp.Diff(test.created, counted); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrphansNextToATakenName verifies that orphans stay as they are while another child's name is
// taken by a foreign object.
func TestOrphansNextToATakenName(t *testing.T) {
	ordered, independent := declaredFamily()
	foreign := ordered[1].DeepCopyObject().(client.Object)
	foreign.SetUID("foreign")
	all := []client.Object{restored(t, ordered[0]), foreign, restored(t, ordered[2]), restored(t, independent[0])}
	applier, counted := newApplier(interceptor.Funcs{}, all...)
	_, err := applier.ApplyAll(t.Context(), owner, nil, nil, ordered, independent)
	if found := IsNotOurs(err); found == nil || found.Kind != "Service" || len(found.Others) > 0 || len(counted) > 0 {
		t.Errorf("error %v, writes %v", err, counted)
	}
}

// TestFightOverAnOwnerReference verifies that a client that keeps removing the owner reference does
// not make the operator write without end, whether it waits for the reconcile or not.
func TestFightOverAnOwnerReference(t *testing.T) {
	for name, atOnce := range map[string]bool{"after each reconcile": false, "after each adoption": true} {
		t.Run(name, func(t *testing.T) { fightOverAnOwnerReference(t, atOnce) })
	}
}

func fightOverAnOwnerReference(t *testing.T, atOnce bool) {
	t.Helper()
	applier, counted := newApplier(interceptor.Funcs{}, restored(t, labelled()))
	var err error
	for range 3 * maxLooks {
		if _, err = applier.Apply(t.Context(), owner, nil, nil, labelled()); err != nil && !atOnce {
			continue // adopted, or refused
		}
		live := labelled()
		applier.read(t, live)
		live.OwnerReferences = nil
		applier.update(t, live)
	}
	if IsNotOurs(err) == nil || !strings.Contains(err.Error(), "another client keeps removing its owner reference") {
		t.Errorf("error %v", err)
	}
	if n := counted["patch Deployment"]; n > maxLooks+2 {
		t.Errorf("%d writes", n)
	}
}

// kindOf returns the kind of an object, from its Go type.
func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }
