package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const annotation = "example.com/last"

// stored returns an object as the cluster stores it after this declaration is applied.
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

// TestWhatIsReadAndWritten verifies that a child is read only if the child or its declaration has
// changed since the last comparison, and written only if it differs. This applies if the cache has
// the whole child, and if it has only the child's stamp.
func TestWhatIsReadAndWritten(t *testing.T) {
	same := func(*appsv1.Deployment) {}
	image := func(image string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }
	}
	created, patched, none := writes{"create Deployment": 1}, writes{"patch Deployment": 1}, writes{}
	for _, stamped := range []bool{false, true} {
		reads := 0
		applier, counted := newApplier(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, object, opts...)
				if d, ok := object.(*appsv1.Deployment); ok && stamped {
					Stamp(d)
					d.Labels, d.Annotations, d.Spec = nil, nil, appsv1.DeploymentSpec{}
				}
				return err
			},
		})
		api := fake.NewClientBuilder().WithObjectTracker(applier.tracker).Build()
		stored := testApplier{&Applier{Client: api}, applier.tracker}
		applier.Reader = interceptor.NewClient(api, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				reads++
				return c.Get(ctx, key, object, opts...)
			},
		})
		for _, step := range []struct {
			name    string
			others  func(*appsv1.Deployment)
			restart bool
			declare func(*appsv1.Deployment)
			reads   int
			want    writes
		}{
			{"new", nil, false, same, 0, created},
			{"as created", nil, false, same, 0, none},
			{"what controllers write", func(d *appsv1.Deployment) {
				d.Status.Replicas, d.Generation, d.Annotations[revisionAnnotation] = 2, 7, "1"
				d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
			}, false, same, 0, none},
			{"what is not declared", func(d *appsv1.Deployment) { d.Labels["theirs"] = "1" }, false, same, 1, none},
			{"nothing", nil, false, same, 0, none},
			{"drift", image("nginx:9"), false, same, 1, patched},
			{"as restored", nil, false, same, 0, none},
			{"another declaration", nil, false, image("nginx:2"), 1, patched},
			{"the declaration of before", nil, false, same, 1, patched},
			{"a restart", nil, true, same, 1, none},
			{"after the restart", nil, false, same, 0, none},
			{"the record is gone", func(d *appsv1.Deployment) { delete(d.Annotations, annotation) }, false, same, 1, patched},
		} {
			live, cached := deployment(), deployment()
			if step.others != nil {
				stored.read(t, live)
				step.others(live)
				stored.update(t, live)
			}
			if step.restart {
				applier.Memory = Memory{}
			}
			if err := client.IgnoreNotFound(applier.Client.Get(t.Context(), client.ObjectKeyFromObject(cached), cached)); err != nil {
				t.Fatal(err)
			}
			asLeft := step.name != "new" && !step.restart && (step.others == nil || step.reads == 0)
			if got := applier.IsAsDeclared(cached); got != asLeft {
				t.Errorf("stamped %t, %s: as declared %t, want %t", stamped, step.name, got, asLeft)
			}
			reads = 0
			clear(counted)
			applier.apply(t, deployment(step.declare))
			if diff := cmp.Diff(step.want, counted); diff != "" || reads != step.reads {
				t.Errorf("stamped %t, %s: %d reads, want %d; writes (-want +got):\n%s", stamped, step.name, reads, step.reads, diff)
			}
			if stored.read(t, live); !metav1.IsControlledBy(live, owner) {
				t.Errorf("stamped %t, %s: owner references %v", stamped, step.name, live.OwnerReferences)
			}
		}

		for range 2 { // the second Delete finds no object
			if err := applier.Delete(t.Context(), deployment(func(d *appsv1.Deployment) { d.UID = "uid-1" })); err != nil {
				t.Fatal(err)
			}
		}
		if counted["delete Deployment"] != 1 {
			t.Errorf("writes %v", counted)
		}
		applier.Forget(client.ObjectKeyFromObject(owner))
		if len(applier.Memory.owners) != 0 {
			t.Errorf("remembered of an owner that is gone: %v", applier.Memory.owners)
		}
	}
}

type writes map[string]int

// testApplier is an Applier whose objects other clients can read and write.
type testApplier struct {
	*Applier
	tracker clienttesting.ObjectTracker
}

func newApplier(funcs interceptor.Funcs, objects ...client.Object) (testApplier, writes) {
	counted, uids := writes{}, 0
	tracker := clienttesting.NewObjectTracker(clientgoscheme.Scheme, clientgoscheme.Codecs.UniversalDecoder())
	create := funcs.Create
	funcs.Create = func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
		if object.GetUID() == "" { // the fake client sets no UID
			uids++
			object.SetUID(types.UID(fmt.Sprintf("uid-%d", uids)))
		}
		if create != nil {
			return create(ctx, c, object, opts...)
		}
		return c.Create(ctx, object, opts...)
	}
	inner := fake.NewClientBuilder().WithObjectTracker(tracker).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return testApplier{&Applier{
		Client: inner, Reader: inner, FieldOwner: "shop-operator", Labels: labelsOf, Annotation: annotation,
		Wrote: func(kind string, verb Verb) { counted[string(verb)+" "+kind]++ },
	}, tracker}, counted
}

// refusesServices returns the error for each creation of a Service.
func refusesServices(err error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if _, isService := object.(*corev1.Service); isService {
				return err
			}
			return c.Create(ctx, object, opts...)
		},
	}
}

func (a testApplier) apply(t *testing.T, children ...client.Object) time.Duration {
	t.Helper()
	wait, err := a.Apply(t.Context(), owner, nil, nil, children...)
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

func (a testApplier) read(t *testing.T, live client.Object) {
	t.Helper()
	if err := a.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
}

func (a testApplier) update(t *testing.T, live client.Object) {
	t.Helper()
	if err := a.Client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
}

var owner = &corev1.ConfigMap{
	TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
	ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "owner-uid"},
}

// TestApplyLeavesForeignObjects verifies that Apply does not change foreign objects, whether the
// cache has them or not.
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
			_, err := applier.Apply(t.Context(), owner, nil, nil, deployment())
			const want = `Deployment "web" exists and is not controlled by this ConfigMap (it is controlled by Other "theirs")`
			if found := IsNotOurs(err); found == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v", err)
			}
			if len(counted) != 0 {
				t.Errorf("writes: %v", counted)
			}
		})
	}
}

// TestApplyRefusesAnOldState verifies that Apply returns a conflict if the child was rendered from
// an older version of the stored child.
func TestApplyRefusesAnOldState(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{})
	applier.apply(t, deployment())
	clear(counted)
	old := deployment(func(d *appsv1.Deployment) { d.ResourceVersion, d.Spec.Replicas = "0", ptr.To[int32](5) })
	_, err := applier.Apply(t.Context(), owner, nil, nil, old)
	if !apierrors.IsConflict(err) || len(counted) != 0 {
		t.Errorf("error %v, writes %v", err, counted)
	}
}

// TestApplyReplacesWhatCannotBeMerged verifies that Apply replaces the list if the API server
// rejects the merge. Here, another client changed the port number of a Service, so the merge has
// two ports with the same name.
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
	applier.apply(t, service(80))
	live := service(80)
	applier.read(t, live)
	live.Spec.Ports[0].Port = 81
	applier.update(t, live)
	clear(counted)
	applier.apply(t, service(80))
	applier.read(t, live)
	if len(live.Spec.Ports) != 1 || live.Spec.Ports[0].Port != 80 || counted["patch Service"] != 1 {
		t.Errorf("ports %+v, writes %v", live.Spec.Ports, counted)
	}
}

// TestPending verifies that Pending returns exactly the children that Apply would write, and writes
// nothing.
func TestPending(t *testing.T) {
	configMap := func() client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Immutable: ptr.To(true)}
	}
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	applier, counted := newApplier(interceptor.Funcs{}, foreign.DeepCopy())
	applier.apply(t, configMap())
	clear(counted)
	missing := deployment()
	pending, err := applier.Pending(t.Context(), owner, nil, nil, []client.Object{configMap(), foreign, missing}, false)
	if err != nil || !slices.Equal(pending, []client.Object{foreign, missing}) || len(counted) != 0 {
		t.Errorf("writes %v, pending %v, %v", counted, pending, err)
	}
}

// TestFill verifies that content is requested only to create a child, and that nothing is created
// without the content.
func TestFill(t *testing.T) {
	applier, counted := newApplier(interceptor.Funcs{})
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Immutable: ptr.To(true)}
	changed := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("changed"))
	_, err := applier.Apply(t.Context(), owner, nil, testContent{fill: func(client.Object) error { return changed }}, configMap.DeepCopy())
	if !apierrors.IsConflict(err) || len(counted) != 0 {
		t.Errorf("error %v, writes %v", err, counted)
	}
	asked := 0
	fill := func(child client.Object) error {
		asked++
		child.(*corev1.ConfigMap).Data = map[string]string{"k": "v"}
		return nil
	}
	for range 2 {
		if _, err := applier.Apply(t.Context(), owner, nil, testContent{fill: fill}, configMap.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	live := configMap.DeepCopy()
	applier.read(t, live)
	if live.Data["k"] != "v" || asked != 1 || counted["create ConfigMap"] != 1 {
		t.Errorf("data %v, asked %d times, writes %v", live.Data, asked, counted)
	}
}

// TestReferenceOfAnEarlierVersion verifies that the owner still controls a child whose owner
// reference has an earlier version of the owner's API. Apply rewrites the reference once.
func TestReferenceOfAnEarlierVersion(t *testing.T) {
	child := deployment()
	child.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v0", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)},
	}
	applier, counted := newApplier(interceptor.Funcs{}, stored(t, child))
	applier.apply(t, deployment())
	applier.apply(t, deployment())
	live := deployment()
	applier.read(t, live)
	if len(live.OwnerReferences) != 1 || live.OwnerReferences[0].APIVersion != "v1" || counted["patch Deployment"] != 1 {
		t.Errorf("references %+v, writes %v", live.OwnerReferences, counted)
	}
}

// TestPredecessor verifies that a predecessor is recognized by group, kind, and name. The version
// does not matter.
func TestPredecessor(t *testing.T) {
	ours := &metav1.OwnerReference{
		APIVersion: "shops.example.com/v1alpha2", Kind: "Shop", Name: "web", UID: "new", Controller: ptr.To(true),
	}
	for name, test := range map[string]struct {
		change func(*metav1.OwnerReference)
		want   bool
	}{
		"the same version":   {func(*metav1.OwnerReference) {}, true},
		"an earlier version": {func(r *metav1.OwnerReference) { r.APIVersion = "shops.example.com/v1alpha1" }, true},
		"another group":      {func(r *metav1.OwnerReference) { r.APIVersion = "example.com/v1alpha2" }, false},
		"another kind":       {func(r *metav1.OwnerReference) { r.Kind = "Other" }, false},
		"another name":       {func(r *metav1.OwnerReference) { r.Name = "other" }, false},
	} {
		theirs := *ours
		theirs.UID = "old"
		test.change(&theirs)
		child := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", OwnerReferences: []metav1.OwnerReference{*ours}}}
		live := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", OwnerReferences: []metav1.OwnerReference{theirs}}}
		if got := notOurs(&candidate{object: child}, live).Predecessor; got != test.want {
			t.Errorf("%s: predecessor %t, want %t", name, got, test.want)
		}
	}
}

// TestApplyReplacesWhatHasNoKey verifies that Apply replaces a list if an element has no key field
// and cannot be merged. Fields that are no longer declared are removed.
func TestApplyReplacesWhatHasNoKey(t *testing.T) {
	declared := deployment(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	})
	before := declared.DeepCopy()
	before.Spec.Template.Spec.NodeSelector = map[string]string{"no longer": "declared"}
	applier, counted := newApplier(interceptor.Funcs{})
	applier.apply(t, before)
	live := deployment()
	applier.read(t, live)
	live.Spec.Template.Spec.ImagePullSecrets[0].Name = ""
	applier.update(t, live)
	clear(counted)
	applier.apply(t, declared.DeepCopy())
	applier.read(t, live)
	if diff := cmp.Diff(declared.Spec, live.Spec); diff != "" || counted["patch Deployment"] != 1 {
		t.Errorf("writes %v, stored (-want +got):\n%s", counted, diff)
	}
}

// TestAnnotationsComeAndGo verifies that declared annotations are added, changed, and removed. The
// annotations of other clients and the record stay.
func TestAnnotationsComeAndGo(t *testing.T) {
	service := func(annotations map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: annotations}}
	}
	applier, _ := newApplier(interceptor.Funcs{})
	live := service(nil)
	for i, annotations := range []map[string]string{{"a": "1"}, {"a": "2", "b": "1"}, nil, {"c": "1"}} {
		applier.apply(t, service(annotations))
		applier.read(t, live)
		want := map[string]string{annotation: live.Annotations[annotation]}
		maps.Copy(want, annotations)
		if i > 0 {
			want["theirs"] = "1"
		}
		if diff := cmp.Diff(want, live.Annotations); diff != "" || live.Annotations[annotation] == "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		live.Annotations["theirs"] = "1"
		applier.update(t, live)
	}
}
