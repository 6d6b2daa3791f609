package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const annotation = "example.com/last"

// stored returns an object as it is in the cluster after it was declared so.
func stored[T client.Object](t *testing.T, declared T) T {
	t.Helper()
	raw, err := declaration(declared)
	if err != nil {
		t.Fatal(err)
	}
	live := declared.DeepCopyObject().(T)
	live.SetUID("child-uid")
	live.SetAnnotations(map[string]string{annotation: string(raw)})
	return live
}

func deployment(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"a": "1"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"note": "x"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1"}}},
			},
		},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

// The patch for what was declared, what is declared, and what is stored; "" is no patch at all.
func TestThreeWay(t *testing.T) {
	same := func(*appsv1.Deployment) {}
	for name, test := range map[string]struct {
		declare func(*appsv1.Deployment)
		drift   func(*appsv1.Deployment)
		want    string
	}{
		"nothing differs": {same, same, ""},
		"defaults, status and what others set": {same, func(d *appsv1.Deployment) {
			d.Spec.RevisionHistoryLimit = ptr.To[int32](10)
			d.Status.Replicas = 2
			d.Labels["theirs"], d.Annotations["theirs"] = "1", "1"
			d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: "s"}}, d.Spec.Template.Spec.Containers...)
		}, ""},
		"a declared field drifted": {same, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](9) }, `{"spec":{"replicas":2}}`},
		"a declared field is gone": {same, func(d *appsv1.Deployment) { d.Labels = nil }, `{"metadata":{"labels":{"a":"1"}}}`},
		"another value is declared": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" }, same,
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"nginx"}],"containers":[{"image":"nginx:2","name":"nginx"}]}}}}`,
		},
		"a field is no longer declared": {
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, same,
			`{"spec":{"template":{"metadata":{"annotations":null}}}}`,
		},
		"the record is gone":    {same, func(d *appsv1.Deployment) { d.Annotations = nil; d.Spec.Replicas = ptr.To[int32](9) }, `{"spec":{"replicas":2}}`},
		"the record is damaged": {same, func(d *appsv1.Deployment) { d.Annotations[annotation] = "{"; d.Spec.Replicas = ptr.To[int32](9) }, `{"spec":{"replicas":2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			live := stored(t, deployment())
			test.drift(live)
			patch := patchOf(t, live, deployment(test.declare))
			if test.want == "" {
				if patch != nil {
					t.Errorf("want no patch, got %s", patch)
				}
				return
			}
			var got, want map[string]any
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(patch, &got); err != nil {
				t.Fatalf("%v in %s", err, patch)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

// patchOf returns the patch for an object that is stored so and declared so.
func patchOf(t *testing.T, live, child client.Object) []byte {
	t.Helper()
	declared, err := declaration(child)
	if err != nil {
		t.Fatal(err)
	}
	last := []byte(live.GetAnnotations()[annotation])
	if !json.Valid(last) {
		last = []byte("{}")
	}
	patch, err := threeWay(live, last, declared)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// The digest tells a child that is as declared from one that drifted, was declared otherwise, or has no record.
func TestDigest(t *testing.T) {
	child := stored(t, deployment())
	same := Digest(child, annotation)
	if same == "" {
		t.Error("a child that is as declared has no digest")
	}
	foreign := child.DeepCopy()
	foreign.Labels["theirs"], foreign.Status.Replicas = "1", 5
	if Digest(foreign, annotation) != same {
		t.Error("what is not declared changes the digest")
	}
	drifted := child.DeepCopy()
	drifted.Spec.Replicas = ptr.To[int32](9)
	damaged := child.DeepCopy()
	damaged.Annotations[annotation] = "{"
	unknown := child.DeepCopy()
	unknown.Annotations = nil
	for name, object := range map[string]client.Object{"drifted": drifted, "damaged": damaged, "without a record": unknown} {
		if got := Digest(object, annotation); got != "" {
			t.Errorf("a child that is %s has digest %s", name, got)
		}
	}
	if other := stored(t, deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) })); Digest(other, annotation) == same {
		t.Error("two declarations have one digest")
	}
	child.Annotations[annotation] = same
	if got := Digest(child, annotation); got != same {
		t.Errorf("the digest of a digest is %s", got)
	}
}

// A child that the cache says to be as declared costs no request; any other is read before it is written.
func TestRecordOfTheCache(t *testing.T) {
	full := deployment()
	full.UID = "child-uid"
	full.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	declared := full.DeepCopy()
	declared.UID = ""
	raw, err := declaration(declared)
	if err != nil {
		t.Fatal(err)
	}
	full.Annotations = map[string]string{annotation: string(raw)}
	for name, test := range map[string]struct {
		cached string
		change func(*appsv1.Deployment)
		reads  int
		want   writes
	}{
		"as declared":        {Digest(full, annotation), func(*appsv1.Deployment) {}, 0, writes{}},
		"drift that is over": {"", func(*appsv1.Deployment) {}, 1, writes{}},
		"declared otherwise": {Digest(full, annotation), func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, 1, writes{"patch Deployment": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			applier, counted := newApplier(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
					cached := &appsv1.Deployment{ObjectMeta: *full.ObjectMeta.DeepCopy()}
					cached.Annotations[annotation] = test.cached
					cached.DeepCopyInto(object.(*appsv1.Deployment))
					return nil
				},
			}, full.DeepCopy())
			applier.Reader = fake.NewClientBuilder().WithObjects(full.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, object, opts...)
				},
			}).Build()
			child := deployment(test.change)
			child.OwnerReferences = full.OwnerReferences
			if err := applier.applyOne(t.Context(), owner, child); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, counted); diff != "" || reads != test.reads {
				t.Errorf("%d reads, want %d; writes (-want +got):\n%s", reads, test.reads, diff)
			}
		})
	}
}

// A patch is meant for one object and leaves the record of what it makes.
func TestComplete(t *testing.T) {
	applier, _ := newApplier(interceptor.Funcs{})
	for _, patch := range [][]byte{nil, []byte(`{"spec":{"replicas":2}}`)} {
		raw, err := applier.complete(patch, stored(t, deployment()), []byte(`{"d":1}`))
		if err != nil {
			t.Fatal(err)
		}
		got := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &got.Object); err != nil {
			t.Fatal(err)
		}
		replicas, found, _ := unstructured.NestedFloat64(got.Object, "spec", "replicas")
		if got.GetUID() != "child-uid" || got.GetAnnotations()[annotation] != `{"d":1}` || found != (patch != nil) || found && replicas != 2 {
			t.Errorf("patch %s", raw)
		}
	}
}

// A key more in a selector selects other Pods: what is not declared of it goes, though it was never declared.
func TestSelectorsAreAtomic(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "1"}}}
	live := stored(t, service)
	live.Spec.Selector["b"] = "2"
	if got, want := string(patchOf(t, live, service)), `{"spec":{"selector":{"b":null}}}`; got != want {
		t.Errorf("patch %s, want %s", got, want)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: service.ObjectMeta, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}},
	}}
	drifted := stored(t, policy)
	drifted.Spec.PodSelector.MatchLabels["b"] = "2"
	if got, want := string(patchOf(t, drifted, policy)), `{"spec":{"podSelector":{"matchLabels":{"b":null}}}}`; got != want {
		t.Errorf("patch %s, want %s", got, want)
	}
}

// A field with the patch strategy "replace" is not written again and again.
func TestThreeWayOfReplacedField(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}},
	}}
	if patch := patchOf(t, stored(t, budget), budget); patch != nil {
		t.Errorf("want no patch, got %s", patch)
	}
	drifted := stored(t, budget)
	drifted.Spec.Selector.MatchLabels["a"] = "2"
	if patch := patchOf(t, drifted, budget); patch == nil {
		t.Error("want a patch, got none")
	}
}

// The record of an immutable object leaves its content out, which may be larger than an annotation.
func TestRecordOfImmutableObject(t *testing.T) {
	configMap := &corev1.ConfigMap{Immutable: ptr.To(true), Data: map[string]string{"k": strings.Repeat("x", 1<<19)}}
	raw, err := declaration(configMap)
	if err != nil || len(raw) > 100 {
		t.Errorf("record of %d bytes, %v", len(raw), err)
	}
	configMap.Immutable = nil
	if raw, err = declaration(configMap); err != nil || len(raw) < 1<<19 {
		t.Errorf("record of %d bytes, %v", len(raw), err)
	}
}

type writes map[string]int

func newApplier(funcs interceptor.Funcs, objects ...client.Object) (*Applier, writes) {
	counted := writes{}
	inner := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return &Applier{
		Client: inner, Reader: inner, Annotation: annotation,
		Wrote: func(kind string, verb Verb) { counted[string(verb)+" "+kind]++ },
	}, counted
}

var owner = &corev1.ConfigMap{
	TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
	ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "owner-uid"},
}

// Create, nothing, patch, delete: each pass writes what it has to and no more.
func TestApply(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{})
	pass := func(want writes, children ...client.Object) {
		t.Helper()
		if err := applier.Apply(t.Context(), owner, children...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, counted); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		clear(counted)
	}
	pass(writes{"create Deployment": 1}, deployment())
	pass(writes{}, deployment())
	pass(writes{"patch Deployment": 1}, deployment(func(d *appsv1.Deployment) { d.Labels["a"] = "2" }))
	live := deployment()
	if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if live.Labels["a"] != "2" || !metav1.IsControlledBy(live, owner) {
		t.Errorf("stored: %+v", live.ObjectMeta)
	}
	for _, want := range []writes{{"delete Deployment": 1}, {}} { // the second time it is gone already
		if err := applier.Delete(t.Context(), live.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, counted); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		clear(counted)
	}
}

// The first error ends a pass: nothing is written that depends on a child which is not there.
func TestApplyStopsAtAnError(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("quota"))
	applier, counted := newApplier(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if _, isService := object.(*corev1.Service); isService {
				return refused
			}
			return c.Create(ctx, object, opts...)
		},
	})
	err := applier.Apply(t.Context(), owner, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, deployment())
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `failed to create Service "web"`) {
		t.Errorf("error %v", err)
	}
	if len(counted) != 0 {
		t.Errorf("writes: %v", counted)
	}
}

// What is not ours is left as it is, whether the cache shows it or only the API server knows it.
func TestApplyLeavesForeignObjects(t *testing.T) {
	foreign := deployment(func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "theirs", UID: "other", Controller: ptr.To(true)}}
	})
	hidden := interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
	}
	for name, funcs := range map[string]interceptor.Funcs{"shown": {}, "hidden": hidden} {
		t.Run(name, func(t *testing.T) {
			applier, counted := newApplier(funcs, foreign.DeepCopy())
			applier.Reader = fake.NewClientBuilder().WithObjects(foreign.DeepCopy()).Build()
			err := applier.Apply(t.Context(), owner, deployment())
			if found := IsNotOurs(err); found == nil || !strings.Contains(err.Error(), `Deployment "web" exists already and is not ours (it is controlled by Other "theirs")`) {
				t.Errorf("error %v", err)
			}
			if len(counted) != 0 {
				t.Errorf("writes: %v", counted)
			}
		})
	}
}

// A child that was declared from a stored one which has changed since is not written.
func TestApplyRefusesAnOldState(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{})
	if err := applier.Apply(t.Context(), owner, deployment()); err != nil {
		t.Fatal(err)
	}
	clear(counted)
	err := applier.Apply(t.Context(), owner, deployment(func(d *appsv1.Deployment) { d.ResourceVersion, d.Spec.Replicas = "0", ptr.To[int32](5) }))
	if !apierrors.IsConflict(err) || len(counted) != 0 {
		t.Errorf("error %v, writes %v", err, counted)
	}
}

// What the API server cannot merge is replaced: here somebody renamed the port of a Service to get two of one name.
func TestApplyReplacesWhatCannotBeMerged(t *testing.T) {
	service := func(port int32) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: port}}},
		}
	}
	applier, counted := newApplier(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if patch.Type() == types.StrategicMergePatchType {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil)
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	})
	if err := applier.Apply(t.Context(), owner, service(80)); err != nil {
		t.Fatal(err)
	}
	live := service(80)
	if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Spec.Ports[0].Port = 81
	if err := applier.Client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	clear(counted)
	if err := applier.Apply(t.Context(), owner, service(80)); err != nil {
		t.Fatal(err)
	}
	if err := applier.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if len(live.Spec.Ports) != 1 || live.Spec.Ports[0].Port != 80 || counted["patch Service"] != 1 {
		t.Errorf("ports %+v, writes %v", live.Spec.Ports, counted)
	}
}
