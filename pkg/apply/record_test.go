package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// hostileRecords returns records that a client with write access to a child can store. The longest
// ones fill an object.
func hostileRecords() map[string]string {
	list := func(n int, element string) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	withResources := func(resources string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"a","resources":` + resources + `}]}}}}`
	}
	return map[string]string{
		"no JSON":                   "{",
		"null":                      "null",
		"a list":                    "[]",
		"a number":                  "1",
		"a text":                    `"x"`,
		"a number for the spec":     `{"spec":1}`,
		"null in a list of texts":   `{"metadata":{"finalizers":[null]}}`,
		"null in a list of objects": `{"spec":{"template":{"spec":{"containers":[null]}}}}`,
		"objects without a key":     `{"spec":{"template":{"spec":{"containers":[{}],"imagePullSecrets":[{}]}}}}`,
		"a text for a list":         `{"spec":{"template":{"spec":{"containers":"x"}}}}`,
		"directives": `{"spec":{"$patch":"delete",` +
			`"template":{"$retainKeys":["x"],"spec":{"$setElementOrder/containers":[1]}}}}`,
		"a quantity without end":       withResources(`{"limits":{"cpu":"1e-1000000000"}}`),
		"a quantity given twice":       withResources(`{"limits":{"cpu":"1e-1000000000"},"limits":{}}`),
		"a quantity in other letters":  withResources(`{"LIMITS":{"cpu":"1e-1000000000"}}`),
		"a number without end":         withResources(`{"limits":{"cpu":1e1000000000}}`),
		"many finalizers":              `{"metadata":{"finalizers":[` + list(43_000, `"a/b"`) + `]}}`,
		"many containers":              `{"spec":{"template":{"spec":{"containers":[` + list(12_000, `{"name":"a"}`) + `]}}}}`,
		"many labels":                  `{"metadata":{"labels":{` + list(12_000, `"a":"b"`) + `}}}`,
		"deep":                         strings.Repeat(`{"spec":`, 25_000) + "1" + strings.Repeat("}", 25_000),
		"fields that cannot be erased": `{"metadata":{"uid":"x"},"spec":{"selector":{"matchLabels":{"b":"1"}},"strategy":{"type":"Recreate"}}}`,
		"two objects":                  `{} {}`,
	}
}

// TestHostileRecords verifies that Apply, for any record, writes the declaration and the correct
// record, and does not change the fields of other clients. FuzzRecord verifies the cost.
func TestHostileRecords(t *testing.T) {
	for name, record := range hostileRecords() {
		t.Run(name, func(t *testing.T) {
			applier, _ := newApplier(interceptor.Funcs{})
			live := deployment()
			applier.apply(t, deployment())
			applier.read(t, live)
			want := live.DeepCopy()
			want.Labels["theirs"] = "1"
			live.Labels["theirs"], live.Annotations[annotation] = "1", record
			live.Spec.Template.Spec.Containers[0].Image = "theirs"
			applier.update(t, live)
			applier.apply(t, deployment())
			live = deployment()
			applier.read(t, live)
			live.ResourceVersion, want.ResourceVersion = "", ""
			if diff := cmp.Diff(want, live); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecordWithTextsLikeNumbers verifies that a text that looks like a huge number does not
// invalidate a record if its field is not a quantity.
func TestRecordWithTextsLikeNumbers(t *testing.T) {
	record := `{"metadata":{"labels":{"app":"e2026"},"name":"e2026","ownerReferences":[{"apiVersion":"v1","kind":"a","name":"1e2026",` +
		`"uid":"4e27813f-1111-4111-8111-111111111111"}]},"spec":{"ports":[{"port":80,"targetPort":"e2026"}]}}`
	if got := string(sanitizeRecord(&corev1.Service{}, record)); !strings.Contains(got, `"targetPort":"e2026"`) ||
		!strings.Contains(got, "4e27813f") {
		t.Errorf("the record was changed: %s", got)
	}
}

// TestRecordThatTheAPIServerRefuses verifies that Apply ignores a record that makes every patch
// invalid.
func TestRecordThatTheAPIServerRefuses(t *testing.T) {
	live := stored(t, deployment(func(d *appsv1.Deployment) { d.Spec.Paused, d.Spec.Replicas = true, nil }))
	live.Annotations[annotation] = `{"metadata":{"labels":{"a":"1"}},"spec":{"paused":true}}`
	own(t, live)
	applier, counted := newApplier(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if raw, err := patch.Data(object); err != nil || strings.Contains(string(raw), `"paused":null`) {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", nil)
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	}, live)
	applier.apply(t, deployment())
	applier.read(t, live)
	isRecorded := strings.Contains(live.Annotations[annotation], "paused")
	if ptr.Deref(live.Spec.Replicas, 0) != 2 || isRecorded || counted["patch Deployment"] != 1 {
		t.Errorf("writes %v, stored %+v", counted, live)
	}
}

// hugeObjects returns the most expensive objects that an API server stores.
func hugeObjects() map[string]client.Object {
	labels := map[string]string{}
	for i := range 17_000 {
		labels[fmt.Sprintf("example.com/label-%05d-%030d", i, i)] = "x"
	}
	var finalizers []string
	var ports []corev1.ContainerPort
	var env []corev1.EnvVar
	for i := range 43_000 {
		finalizers = append(finalizers, fmt.Sprintf("example.com/%05d", i))
	}
	for i := range 20_000 {
		ports = append(ports, corev1.ContainerPort{Name: fmt.Sprint("p", i), ContainerPort: int32(i + 1), Protocol: corev1.ProtocolTCP})
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("E%05d", i), Value: "x"})
	}
	return map[string]client.Object{
		"labels":     deployment(func(d *appsv1.Deployment) { d.Labels = labels }),
		"finalizers": deployment(func(d *appsv1.Deployment) { d.Finalizers = finalizers }),
		"ports":      deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports = ports }),
		"env":        deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env = env }),
		"data": &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Data: map[string]string{"k": strings.Repeat("x", 700_000)},
		},
	}
}

// TestCostOfHugeObjects verifies that the fingerprints of the largest objects, and the merges of
// children that other clients changed, are cheap.
func TestCostOfHugeObjects(t *testing.T) {
	for name, object := range hugeObjects() {
		t.Run(name, func(t *testing.T) {
			boundstest.Cheap(t, func() { fingerprint(object) })
			declared, err := declaration(deployment())
			if err != nil {
				t.Fatal(err)
			}
			if live, ok := object.(*appsv1.Deployment); ok {
				boundstest.Cheap(t, func() { requirePatch(t, live, declared, declared) })
			}
		})
	}
}

// requirePatch requires that one kind of patch is possible.
func requirePatch(t *testing.T, live client.Object, last, declared []byte) {
	t.Helper()
	_, err := threeWay(live, last, declared)
	if err != nil {
		_, err = replacing(live, last, declared)
	}
	if err != nil {
		t.Errorf("%v with %s", err, last)
	}
}

func FuzzRecord(f *testing.F) {
	for _, record := range hostileRecords() {
		f.Add(record)
	}
	declared, err := declaration(deployment())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(declared))
	f.Fuzz(func(t *testing.T, record string) {
		live := deployment()
		boundstest.Cheap(t, func() {
			last := sanitizeRecord(live, record)
			if !json.Valid(last) || last[0] != '{' {
				t.Fatalf("the record is %s", last)
			}
			requirePatch(t, live, last, declared)
		})
	})
}

// TestFingerprint verifies that a fingerprint changes with any field that can be declared, and with
// no other field.
func TestFingerprint(t *testing.T) {
	of := func(change func(*appsv1.Deployment)) uint64 { return fingerprint(deployment(change)) }
	same := of(func(*appsv1.Deployment) {})
	for name, change := range map[string]func(*appsv1.Deployment){
		"status":           func(d *appsv1.Deployment) { d.Status.Replicas = 1 },
		"resource version": func(d *appsv1.Deployment) { d.ResourceVersion = "9" },
		"generation":       func(d *appsv1.Deployment) { d.Generation = 9 },
		"managed fields":   func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{{}} },
	} {
		if of(change) != same {
			t.Errorf("%s changes the fingerprint", name)
		}
	}
	for name, change := range map[string]func(*appsv1.Deployment){
		"a label":      func(d *appsv1.Deployment) { d.Labels["b"] = "1" },
		"an owner":     func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} },
		"a finalizer":  func(d *appsv1.Deployment) { d.Finalizers = []string{"f"} },
		"an image":     func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" },
		"the deletion": func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} },
	} {
		if of(change) == same {
			t.Errorf("%s does not change the fingerprint", name)
		}
	}
	child := deployment()
	Stamp(child)
	child.Labels = nil
	Stamp(child)
	if stampOf(child) != same {
		t.Error("the second stamp took the place of the first")
	}
}

// TestFights verifies that Apply restores a child that a client keeps changing immediately for a
// while, and rarely after that. A changed declaration is not delayed.
func TestFights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time, so a slow machine does not matter
		applier, counted := newApplier(interceptor.Funcs{})
		applier.apply(t, deployment())
		clear(counted)
		require := func(wait time.Duration, patches int) {
			t.Helper()
			live := deployment()
			applier.read(t, live)
			live.Labels["a"] = "theirs"
			applier.update(t, live)
			if got := applier.apply(t, deployment()); got != wait || counted["patch Deployment"] != patches {
				t.Fatalf("wait %s, want %s; writes %v, want %d", got, wait, counted, patches)
			}
		}
		for i := range maxLooks {
			require(0, i+1)
		}
		for range 3 {
			require(lookEvery, maxLooks)
		}
		pending, err := applier.Pending(t.Context(), owner, nil, nil, []client.Object{deployment()}, false)
		if err != nil || len(pending) != 1 {
			t.Errorf("pending %v, %v", pending, err)
		}

		time.Sleep(lookEvery)
		require(0, maxLooks+1)
		require(lookEvery, maxLooks+1)
		other := deployment(func(d *appsv1.Deployment) { d.Labels["b"] = "1" })
		if wait := applier.apply(t, other); wait != 0 || counted["patch Deployment"] != maxLooks+2 {
			t.Errorf("another declaration is deferred for %s, writes %v", wait, counted)
		}
	})
}

// TestMemory verifies that the memory is removed with the child and with the owner. Another owner
// with the same name starts with an empty memory.
func TestMemory(t *testing.T) {
	m, name := &Memory{}, client.ObjectKeyFromObject(owner)
	for _, child := range []look{{child: hashOf("a"), declared: 1}, {child: hashOf("b")}, {child: hashOf("a"), declared: 2}} {
		m.Update(owner, func(known *Remembered) { known.note(child) })
	}
	if last, ok := m.find(name, owner.UID, "a"); !ok || last.declared != 2 || len(m.owners[name].children) != 2 {
		t.Errorf("found %+v in %+v", last, m.owners)
	}
	m.Update(owner, func(known *Remembered) {
		known.spend("a", time.Now())
		known.keep([]*candidate{{uid: "b"}})
	})
	if _, ok := m.find(name, owner.UID, "a"); ok || len(m.owners[name].changes) != 0 {
		t.Errorf("a child that is no longer declared is remembered: %+v", m.owners)
	}
	successor := owner.DeepCopy()
	successor.UID = "successor"
	if _, ok := m.find(name, successor.UID, "b"); ok {
		t.Error("an owner knows of another's child")
	}
	m.Update(successor, func(known *Remembered) { known.note(look{child: hashOf("c")}) })
	if _, ok := m.find(name, owner.UID, "b"); ok || len(m.owners) != 1 {
		t.Errorf("the earlier owner's child is remembered: %+v", m.owners)
	}
}

// TestAsReconciler verifies that the memory of a deleted owner is removed, and that any other error
// is returned.
func TestAsReconciler(t *testing.T) {
	applier, _ := newApplier(interceptor.Funcs{}, owner.DeepCopy())
	applier.apply(t, deployment())
	reconciles := 0
	inner := reconcile.TypedFunc[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) {
		reconciles++
		return reconcile.Result{}, nil
	})
	reconciler := AsReconciler(applier.Client, inner, applier.Forget)
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(owner)}
	if _, err := reconciler.Reconcile(t.Context(), request); err != nil || reconciles != 1 || len(applier.Memory.owners) != 1 {
		t.Errorf("%d reconciles, remembered %v, %v", reconciles, applier.Memory.owners, err)
	}
	if err := applier.Client.Delete(t.Context(), owner.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, err := reconciler.Reconcile(t.Context(), request); err != nil || reconciles != 1 || len(applier.Memory.owners) != 0 {
		t.Errorf("%d reconciles, remembered %v, %v", reconciles, applier.Memory.owners, err)
	}
	down, _ := newApplier(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewInternalError(errors.New("down"))
		},
	})
	reconciler = AsReconciler(down.Client, inner, down.Forget)
	if _, err := reconciler.Reconcile(t.Context(), request); err == nil {
		t.Error("the error is lost")
	}
}

// TestRecord verifies that the record leaves out the labels of the child in Unrecorded, and nothing
// else.
func TestRecord(t *testing.T) {
	applier := &Applier{Unrecorded: "example.com/record"}
	for name, test := range map[string]struct{ declared, want string }{
		"a label": {
			`{"metadata":{"labels":{"a":"<b>","example.com/record":"1"},"name":"web"},"spec":{"number":9007199254740993}}`,
			`{"metadata":{"labels":{"a":"\u003cb\u003e"},"name":"web"},"spec":{"number":9007199254740993}}`,
		},
		"the only label":          {`{"metadata":{"labels":{"example.com/record":"1"}}}`, `{"metadata":{"labels":{}}}`},
		"an annotation":           {`{"metadata":{"annotations":{"example.com/record":"1"},"labels":{"a":"b"}}}`, ""},
		"a label of the template": {`{"metadata":{"name":"web"},"spec":{"template":{"metadata":{"labels":{"example.com/record":"1"}}}}}`, ""},
	} {
		if test.want == "" {
			test.want = test.declared
		}
		if got := string(applier.record([]byte(test.declared))); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestAbbreviated verifies that a stored annotation does not differ from its declared first word,
// and that a patch leaves it as it is.
func TestAbbreviated(t *testing.T) {
	const key = "example.com/long"
	annotated := func(value string) *appsv1.Deployment {
		return deployment(func(d *appsv1.Deployment) { d.Annotations = map[string]string{key: value} })
	}
	live := stored(t, annotated("head"))
	live.Annotations[key] = "head and a tail"
	applier := &Applier{Annotation: annotation, Abbreviated: key}
	for declared, differs := range map[string]bool{"head": false, "other": true} {
		if patch := patchOf(t, applier.abbreviate(live), annotated(declared)); (patch != "{}") != differs {
			t.Errorf("%s: patch %s", declared, patch)
		}
	}
	if live.Annotations[key] != "head and a tail" {
		t.Errorf("the stored child has %q", live.Annotations[key])
	}
}
