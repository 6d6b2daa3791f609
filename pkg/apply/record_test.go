package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// maxCost is the maximum processor time for any object that a client can store. It is ten times
// boundstest.MaxTime, because the race detector is about that much slower. Without the bounds of
// the code, the objects of these tests take minutes.
const maxCost = 2 * time.Second

// best returns the lowest processor time of three runs. Wall-clock time would depend on the load of
// the machine.
func best(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	shortest := time.Hour
	for range 3 {
		began := threadTime()
		do()
		shortest = min(shortest, threadTime()-began)
	}
	return shortest
}

func threadTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thisThread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

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
// record, does not change the fields of other clients, and stays within maxCost.
func TestHostileRecords(t *testing.T) {
	for name, record := range hostileRecords() {
		t.Run(name, func(t *testing.T) {
			applier, _ := newApplier(interceptor.Funcs{})
			apply := func() *appsv1.Deployment {
				t.Helper()
				if _, err := applier.Apply(t.Context(), owner, nil, nil, deployment()); err != nil {
					t.Fatal(err)
				}
				live := deployment()
				if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
					t.Fatal(err)
				}
				return live
			}
			live := apply()
			want := live.DeepCopy()
			want.Labels["theirs"] = "1"
			live.Labels["theirs"], live.Annotations[annotation] = "1", record
			live.Spec.Template.Spec.Containers[0].Image = "theirs"
			if err := applier.Client.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			if took := best(func() { sanitizeRecord(live, record) }); took > maxCost {
				t.Errorf("it took %s", took)
			}
			live = apply()
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
	applier, counted := newApplier(interceptor.Funcs{})
	if _, err := applier.Apply(t.Context(), owner, nil, nil, deployment()); err != nil {
		t.Fatal(err)
	}
	refused := func(patch []byte) bool { return strings.Contains(string(patch), `"paused":null`) }
	fussy, _ := newApplier(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if raw, err := patch.Data(object); err != nil || refused(raw) {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", nil)
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	})
	live := deployment()
	if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Annotations[annotation] = `{"metadata":{"labels":{"a":"1"}},"spec":{"paused":true}}`
	live.Spec.Paused, live.ResourceVersion = true, ""
	live.Spec.Replicas = nil
	if err := fussy.Client.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	fussy.Wrote = applier.Wrote
	clear(counted)
	if _, err := fussy.Apply(t.Context(), owner, nil, nil, deployment()); err != nil {
		t.Fatal(err)
	}
	if err := fussy.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	recorded := strings.Contains(live.Annotations[annotation], "paused")
	if live.Spec.Replicas == nil || *live.Spec.Replicas != 2 || recorded || counted["patch Deployment"] != 1 {
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
// children that other clients changed, stay within maxCost.
func TestCostOfHugeObjects(t *testing.T) {
	for name, object := range hugeObjects() {
		t.Run(name, func(t *testing.T) {
			if took := best(func() { fingerprint(object) }); took > maxCost/4 {
				t.Errorf("the fingerprint took %s", took)
			}
			declared, err := declaration(deployment())
			if err != nil {
				t.Fatal(err)
			}
			live, ok := object.(*appsv1.Deployment)
			if !ok {
				return
			}
			took := best(func() {
				if _, err = threeWay(live, declared, declared); err != nil {
					_, err = replacing(live, declared, declared)
				}
			})
			if err != nil || took > maxCost {
				t.Errorf("the merge took %s, %v", took, err)
			}
		})
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
			if _, err := threeWay(live, last, declared); err != nil {
				if _, err = replacing(live, last, declared); err != nil {
					t.Fatalf("%v with %s", err, last)
				}
			}
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
	synctest.Test(t, testFights) // virtual time, so a slow machine does not matter
}

func testFights(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{})
	fight := func() time.Duration {
		t.Helper()
		live := deployment()
		if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		live.Labels["a"] = "theirs"
		if err := applier.Client.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		again, err := applier.Apply(t.Context(), owner, nil, nil, deployment())
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	if _, err := applier.Apply(t.Context(), owner, nil, nil, deployment()); err != nil {
		t.Fatal(err)
	}
	clear(counted)
	for i := range maxLooks {
		if again := fight(); again != 0 {
			t.Fatalf("change %d has to wait for %s", i, again)
		}
	}
	for range 3 {
		if again := fight(); again <= 0 || again > lookEvery {
			t.Errorf("a change is deferred for %s", again)
		}
	}
	if counted["patch Deployment"] != maxLooks {
		t.Errorf("writes %v", counted)
	}
	if pending, err := applier.Pending(t.Context(), owner, nil, nil, []client.Object{deployment()}, false); err != nil || len(pending) != 1 {
		t.Errorf("pending %v, %v", pending, err)
	}
	other := deployment(func(d *appsv1.Deployment) { d.Labels["b"] = "1" })
	if again, err := applier.Apply(t.Context(), owner, nil, nil, other); err != nil || again != 0 {
		t.Errorf("another declaration is deferred for %s, %v", again, err)
	}
	if counted["patch Deployment"] != maxLooks+1 {
		t.Errorf("writes %v", counted)
	}
}

// TestLooksAreEarnedBack verifies that the budget of comparisons recovers over time.
func TestLooksAreEarnedBack(t *testing.T) {
	known, now := &Remembered{}, time.Now()
	known.note(look{child: hashOf("c")})
	for range maxLooks {
		if wait := known.spend("c", now); wait != 0 {
			t.Fatalf("wait %s", wait)
		}
	}
	for _, step := range []struct {
		after time.Duration
		want  time.Duration
	}{{0, lookEvery}, {lookEvery - time.Second, time.Second}, {lookEvery, 0}, {lookEvery, lookEvery}, {100 * lookEvery, 0}} {
		if wait := known.spend("c", now.Add(step.after)); wait != step.want {
			t.Errorf("after %s: wait %s, want %s", step.after, wait, step.want)
		}
	}
	known.note(look{child: hashOf("c"), declared: 1})
	if known.changes[hashOf("c")].spent == 0 || known.children[0].declared != 1 {
		t.Errorf("a look forgets those before it: %+v", known)
	}
}

// TestMemory verifies that the memory is removed with the child and with the owner. Another owner
// with the same name starts with an empty memory.
func TestMemory(t *testing.T) {
	m, name := &Memory{}, client.ObjectKeyFromObject(owner)
	for _, child := range []look{{child: hashOf("a"), declared: 1}, {child: hashOf("b")}, {child: hashOf("a"), declared: 2}} {
		m.Update(owner, func(known *Remembered) { known.note(child) })
	}
	if found, ok := m.find(name, owner.UID, "a"); !ok || found.declared != 2 || len(m.owners[name].children) != 2 {
		t.Errorf("found %+v in %+v", found, m.owners)
	}
	m.Update(owner, func(known *Remembered) {
		known.spend("a", time.Now())
		known.keep([]types.UID{"b"})
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
	m.forget(client.ObjectKeyFromObject(owner))
	if len(m.owners) != 0 {
		t.Errorf("remembered: %+v", m.owners)
	}
}

// TestAsReconciler verifies that the memory of a deleted owner is removed, and that any other error
// is returned.
func TestAsReconciler(t *testing.T) {
	applier, _ := newApplier(interceptor.Funcs{}, owner.DeepCopy())
	if _, err := applier.Apply(t.Context(), owner, nil, nil, deployment()); err != nil {
		t.Fatal(err)
	}
	reconciles := 0
	reconciler := AsReconciler(applier.Client, passer(func(*corev1.ConfigMap) { reconciles++ }), applier.Forget)
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
	reconciler = AsReconciler(down.Client, passer(func(*corev1.ConfigMap) {}), down.Forget)
	if _, err := reconciler.Reconcile(t.Context(), request); err == nil {
		t.Error("the error is lost")
	}
}

type passer func(*corev1.ConfigMap)

func (p passer) Reconcile(_ context.Context, object *corev1.ConfigMap) (reconcile.Result, error) {
	p(object)
	return reconcile.Result{}, nil
}

// TestRecord verifies that the record leaves out the labels of the child in Unrecorded, and nothing
// else.
func TestRecord(t *testing.T) {
	applier := &Applier{Unrecorded: []string{"example.com/record"}}
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
		raw, err := declaration(annotated(declared))
		if err != nil {
			t.Fatal(err)
		}
		patch, _, err := difference(applier.abbreviate(live), []byte(applier.recordOf(live)), raw)
		if err != nil || (patch != nil) != differs {
			t.Errorf("%s: patch %s, %v", declared, patch, err)
		}
	}
	if live.Annotations[key] != "head and a tail" {
		t.Errorf("the stored child has %q", live.Annotations[key])
	}
}
