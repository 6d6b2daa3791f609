package objectcache

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
)

// storedForm returns the object that the cache has of an object.
func storedForm[T client.Object](t *testing.T, object T) T {
	t.Helper()
	stored, err := References(nil).bounded(slim)(object)
	if err != nil {
		t.Fatal(err)
	}
	if size := sizeOf(reflect.ValueOf(stored)); size > maxSizeOf(object) {
		t.Errorf("the cache has %d bytes of a %T", size, object)
	}
	return stored.(T)
}

// newInstance returns an NginxOperator with a configuration of this size.
func newInstance(size int) *v1alpha2.NginxOperator {
	out := &v1alpha2.NginxOperator{}
	out.Namespace, out.Name, out.UID, out.Generation, out.ResourceVersion = "shop", "web", "u", 2, "7"
	out.Labels = map[string]string{wellknown.LabelCanary: "true"}
	out.Spec.Config = &v1alpha2.Config{Inline: strings.Repeat("x", size)}
	out.Status.ObservedGeneration = 1
	out.Status.Conditions = []metav1.Condition{{Type: v1alpha2.ConditionReady, Status: metav1.ConditionTrue, Message: "all"}}
	for i := range 6 {
		out.Status.BlockedBy = append(out.Status.BlockedBy, v1alpha2.Blocker{
			Reason: []string{v1alpha2.ReasonReferenceNotFound, v1alpha2.ReasonPaused, "Unknown"}[i%3],
		})
	}
	expiry := metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	out.Status.Certificates = []v1alpha2.Certificate{{NotAfter: expiry}}
	return out
}

// TestPartOfInstance verifies that the cache has the whole of a small NginxOperator, and of a large
// one its identity, what StateOf reads, and whether the spec or the status has changed.
func TestPartOfInstance(t *testing.T) {
	t.Parallel()
	small := storedForm(t, newInstance(10))
	if cached.IsPart(small) || small.Spec.Config.Inline != strings.Repeat("x", 10) {
		t.Errorf("the cache has %+v of a small object", small)
	}
	large := storedForm(t, newInstance(200_000))
	want := newInstance(0)
	want.Annotations, want.Spec = large.Annotations, v1alpha2.NginxOperatorSpec{}
	want.Status.Conditions[0].Message = ""
	want.Status.BlockedBy = want.Status.BlockedBy[:2]
	if diff := cmp.Diff(want, large); diff != "" || !cached.IsPart(large) {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for name, test := range map[string]struct {
		now          *v1alpha2.NginxOperator
		spec, status bool
	}{
		"unchanged":       {newInstance(200_000), false, false},
		"another spec":    {newInstance(200_001), true, false},
		"a small spec":    {newInstance(10), true, false},
		"another message": {func() *v1alpha2.NginxOperator { o := newInstance(200_000); o.Status.URL = "x"; return o }(), false, true},
	} {
		whole := test.now.DeepCopy()
		if now := storedForm(t, test.now); cached.SpecsDiffer(large, now) != test.spec || cached.StatusesDiffer(large, now) != test.status {
			t.Errorf("%s: the spec differs %t, the status %t", name, cached.SpecsDiffer(large, now), cached.StatusesDiffer(large, now))
		}
		if cached.SpecsDiffer(large, whole) != test.spec || cached.StatusesDiffer(large, whole) != test.status {
			t.Errorf("%s: a whole object differs otherwise", name)
		}
	}
	unreadable := newInstance(200_000)
	codec.MarkUnreadable(unreadable, "no text")
	if why, found := codec.Unreadable(storedForm(t, unreadable)); !found || why != "no text" {
		t.Errorf("unreadable %t: %s", found, why)
	}
}

// TestOrdinaryInstanceIsWhole verifies that the cache has the whole of an instance with names of
// ordinary length, with the fields that most instances set, and with their status. Otherwise each
// of its reconciles reads it at the API server.
func TestOrdinaryInstanceIsWhole(t *testing.T) {
	t.Parallel()
	const image = "docker.io/nginxinc/nginx-unprivileged:1.28.0@sha256:" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	now, change := metav1.Now(), "89b89d859e-64cbcd3067b2e34a77be"
	object := &v1alpha2.NginxOperator{}
	object.Namespace, object.Name, object.UID = "team-storefront", "storefront", types.UID(strings.Repeat("u", 36))
	object.ResourceVersion, object.CreationTimestamp = "1234567", now
	object.Spec.Replicas = ptr.To[int32](3)
	object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "storefront"}}
	object.Status = v1alpha2.NginxOperatorStatus{
		Selector: "app.kubernetes.io/instance=storefront,app.kubernetes.io/managed-by=nginx-operator,app.kubernetes.io/name=nginx",
		Image:    image, URL: "http://storefront.team-storefront.svc:8080",
		LastGoodRevision: &v1alpha2.GoodRevision{
			Revision: "storefront-" + change, Change: change, Image: image, ConfigHash: "dac6fb4159", Time: now,
		},
		DeclaredRevision: &v1alpha2.DeclaredRevision{Revision: "storefront-" + change, Change: change},
	}
	for _, child := range [][2]string{
		{"v1", "ConfigMap"},
		{"v1", "Service"},
		{"networking.k8s.io/v1", "NetworkPolicy"},
		{"apps/v1", "Deployment"},
		{"policy/v1", "PodDisruptionBudget"},
	} {
		object.Status.RelatedObjects = append(object.Status.RelatedObjects, v1alpha2.RelatedObject{
			APIVersion: child[0], Kind: child[1], Name: object.Name,
		})
	}
	for _, condition := range [][2]string{
		{v1alpha2.ConditionReady, v1alpha2.ReasonAllReplicasReady},
		{v1alpha2.ConditionProgressing, v1alpha2.ReasonRolloutComplete},
		{v1alpha2.ConditionDegraded, v1alpha2.ReasonAsExpected},
	} {
		object.Status.Conditions = append(object.Status.Conditions, metav1.Condition{
			Type: condition[0], Status: metav1.ConditionFalse, Reason: condition[1], LastTransitionTime: now, Message: "3 of 3 replicas are ready",
		})
	}
	if stored := storedForm(t, object); cached.IsPart(stored) {
		t.Errorf("the cache has only a part of it: it takes %d bytes", sizeOf(reflect.ValueOf(object)))
	}
}

// newPod returns a Pod with two messages of this size.
func newPod(name string, size int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: "u", Labels: wellknown.PodLabels("web"), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: ptr.To(true),
		}},
	}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "nginx", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: strings.Repeat("x", size)}},
	}}
	pod.Status.InitContainerStatuses = pod.Status.ContainerStatuses
	return pod
}

// TestPartOfChild verifies that the cache has the identity of a large child, and whether it has
// changed.
func TestPartOfChild(t *testing.T) {
	t.Parallel()
	small, large := storedForm(t, newPod("web-1-a", 10)), storedForm(t, newPod("web-1-a", 4000))
	if cached.IsPart(small) || !cached.IsPart(large) || large.Status.ContainerStatuses != nil {
		t.Fatalf("the small Pod is a part: %t, the large one: %t", cached.IsPart(small), cached.IsPart(large))
	}
	if large.UID != "u" || large.Labels[wellknown.LabelInstance] != "web" || metav1.GetControllerOf(large).Name != "web-1" {
		t.Errorf("the part is %+v", large)
	}
	later := newPod("web-1-a", 4000)
	later.ResourceVersion = "8"
	for name, test := range map[string]struct {
		now            client.Object
		differ, isPart bool
	}{
		"unchanged": {storedForm(t, later), false, true},
		"changed":   {storedForm(t, newPod("web-1-a", 3999)), true, true},
		"small":     {small, true, true},
	} {
		if differ, isPart := cached.PartsDiffer(large, test.now); differ != test.differ || isPart != test.isPart {
			t.Errorf("%s: differ %t, part %t", name, differ, isPart)
		}
	}
	if _, isPart := cached.PartsDiffer(small, small); isPart {
		t.Error("a small child counts as a part")
	}
}

// newCluster returns a client of these objects, with the index that reads of a single Pod need.
func newCluster(objects []client.Object) client.Client {
	byName := func(object client.Object) []string { return []string{object.GetName()} }
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, metav1.ObjectNameField, byName).Build()
}

// nameOfGone is the instance that the cache has and the API server has not.
const nameOfGone = "gone"

// newWhole returns a client of a cache with parts: of two instances, of which one is deleted, and
// of one Pod more than a list may have.
func newWhole(t *testing.T) client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if request.URL.Path != "/apis/operator.example.com/v1alpha2/namespaces/shop/nginxoperators/web" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		_ = json.NewEncoder(w).Encode(newInstance(200_000))
	}))
	t.Cleanup(server.Close)
	gone := newInstance(200_000)
	gone.Name = nameOfGone
	cached := []client.Object{storedForm(t, newInstance(200_000)), storedForm(t, gone)}
	live := []client.Object{}
	for i := range maxWhole + 1 {
		live = append(live, newPod(fmt.Sprintf("web-%02d", i), 4000))
		cached = append(cached, storedForm(t, newPod(fmt.Sprintf("web-%02d", i), 4000)))
	}
	cached = append(cached, storedForm(t, newPod("small", 10)), storedForm(t, newPod("deleted", 4000)))
	objects, err := Whole(&rest.Config{Host: server.URL}, newCluster(cached), newCluster(live))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestWholeInstance verifies that a client reads a part of an instance from the API server, in the
// form of the cache.
func TestWholeInstance(t *testing.T) {
	t.Parallel()
	objects := newWhole(t)
	instance := &v1alpha2.NginxOperator{}
	if err := objects.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, instance); err != nil {
		t.Fatal(err)
	}
	if cached.IsPart(instance) || len(instance.Spec.Config.Inline) != 200_000 || !wellknown.IsCanary(instance.Labels) {
		t.Errorf("read %+v", instance)
	}
	if err := objects.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: nameOfGone}, instance); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted object: %v", err)
	}
	instances := &v1alpha2.NginxOperatorList{}
	if err := objects.List(t.Context(), instances); err != nil || len(instances.Items) != 2 {
		t.Errorf("%d instances, %v", len(instances.Items), err)
	}
}

// TestWholePods verifies that a client reads parts of Pods from the API server, up to a number, and
// everything else from the cache.
func TestWholePods(t *testing.T) {
	t.Parallel()
	objects := newWhole(t)
	pod := &corev1.Pod{}
	if err := objects.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-00"}, pod); err != nil || cached.IsPart(pod) {
		t.Errorf("read %+v, %v", pod, err)
	}
	pods := &corev1.PodList{}
	if err := objects.List(t.Context(), pods); err == nil || !strings.Contains(err.Error(), "too large for the cache") {
		t.Errorf("too many parts: %v", err)
	}
	if err := objects.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	last := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-01"}}
	if err := objects.Delete(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if err := objects.List(t.Context(), pods); err != nil || len(pods.Items) != maxWhole+1 {
		t.Errorf("%d Pods, %v", len(pods.Items), err)
	}
	parts := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !cached.IsPart(&pod) })
	if len(parts) != 1 || parts[0].Name != "deleted" {
		t.Errorf("parts %+v", parts)
	}
}
