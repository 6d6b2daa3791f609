package reference

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

func metadataOf(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version, Labels: map[string]string{"a": "b"}},
	}
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// newTracker returns a tracker that is not started, and a function that returns the names of the
// objects that changed since its last call.
func newTracker(reader client.Reader) (*Tracker, func() []string) {
	t := NewTracker(nil, secrets, reader)
	var mu sync.Mutex
	var told []string
	t.changed = func(key types.NamespacedName) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, key.Name)
	}
	return t, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := told
		told = nil
		slices.Sort(out)
		return out
	}
}

// TestStore verifies that the tracker stores the objects of the reflector, and reports each
// difference once, but not the objects of the first list.
func TestStore(t *testing.T) {
	tracker, told := newTracker(nil)
	s := tracker.stores[0]
	list := func(objects ...any) func() error { return func() error { return s.Replace(objects, "1") } }
	for _, step := range []struct {
		name  string
		do    func() error
		known map[string]string
		told  []string
	}{
		{"the first list", list(metadataOf("a", "1"), entry{keyOf("b"), versionOf("2")}), map[string]string{"a": "1", "b": "2"}, nil},
		{"an object comes", func() error { return s.Add(metadataOf("c", "3")) }, map[string]string{"a": "1", "b": "2", "c": "3"}, []string{"c"}},
		{
			"an object changes",
			func() error { return s.Update(metadataOf("a", "4")) },
			map[string]string{"a": "4", "b": "2", "c": "3"},
			[]string{"a"},
		},
		{"the same again", func() error { return s.Update(metadataOf("a", "4")) }, map[string]string{"a": "4", "b": "2", "c": "3"}, nil},
		{"an object goes", func() error { return s.Delete(metadataOf("b", "5")) }, map[string]string{"a": "4", "c": "3"}, []string{"b"}},
		{
			"another list, after the watch was lost", func() error {
				for _, name := range []string{"a", "c"} {
					version, _ := tracker.current(keyOf(name))
					tracker.remember(keyOf(name), version, "key", name)
				}
				return s.Replace([]any{metadataOf("c", "6"), metadataOf("d", "7")}, "1")
			},
			map[string]string{"c": "6", "d": "7"},
			[]string{"a", "c", "d"},
		},
		{"an empty list, and nobody uses an object", list(), nil, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		known := map[uint64]version{}
		for name, resourceVersion := range step.known {
			known[hashOf(keyOf(name))] = versionOf(resourceVersion)
		}
		if diff := cmp.Diff(known, s.versions); diff != "" {
			t.Errorf("%s: known (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.told, told()); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", step.name, diff)
		}
	}
	if err := s.Add("text"); err == nil {
		t.Error("what is no object was taken")
	}
}

// atOnce lets the list begin with the start of the tracker.
func atOnce(context.Context) {}

// TestSource verifies that the tracker knows no object before its first list. After that, each change
// of an object sends a request for each of its referrers.
func TestSource(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := metadatafake.NewSimpleMetadataClient(scheme, metadataOf("a", "1"))
	tracker := NewTracker(objects, secrets, nil)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	source := tracker.Source(func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		if key.Name == "nobody's" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: "names-" + key.Name}}}
	}, atOnce)
	if _, isListed := tracker.current(keyOf("a")); isListed {
		t.Error("a tracker that was not started has all objects")
	}
	must(t, source.Start(t.Context(), queue))
	tracker.Await(t.Context())
	if got, _ := tracker.current(keyOf("a")); got != versionOf("1") {
		t.Errorf("version %d", got)
	}
	for _, name := range []string{"nobody's", "b"} {
		created := metadataOf(name, "2")
		resource := objects.Resource(secrets).Namespace("shop").(metadatafake.MetadataClient)
		// The watch starts a moment after the list, and would miss an object that is created in
		// between.
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if _, err := resource.CreateFake(created, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
			if got, _ := tracker.current(keyOf(name)); got != noObject {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is not known", name)
			}
			if err := objects.Resource(secrets).Namespace("shop").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	request, _ := queue.Get()
	if request.Name != "names-b" || queue.Len() != 0 {
		t.Errorf("request %v, and %d more", request, queue.Len())
	}
}

// TestDerive verifies that a value is derived once for each version of an object and each cache
// key, and dropped with the version.
func TestDerive(t *testing.T) {
	reads, version, down := 0, "1", error(nil)
	reader := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				reads++
				err := c.Get(ctx, key, object, opts...)
				object.SetResourceVersion(version)
				return errors.Join(err, down)
			},
		}).Build()
	tracker, _ := newTracker(reader)
	s := tracker.stores[0]
	must(t, s.Replace(nil, "1"))
	ask := func(name, cacheKey string) (string, bool, error) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		return Derive(t.Context(), tracker, cacheKey, secret, func() string { return cacheKey + " of version " + secret.ResourceVersion })
	}
	expect := func(step, name, cacheKey, want string, wantReads int) {
		t.Helper()
		before := reads
		got, found, err := ask(name, cacheKey)
		if err != nil || found != (want != "") || got != want || reads-before != wantReads {
			t.Errorf("%s: %q after %d reads, want %q after %d (%v)", step, got, reads-before, want, wantReads, err)
		}
	}
	expect("not known", "a", "type", "", 0)
	must(t, s.Add(metadataOf("a", "1")))
	down = errors.New("connection refused")
	if _, _, err := ask("a", "type"); !errors.Is(err, down) {
		t.Errorf("error %v", err)
	}
	down = nil
	expect("known", "a", "type", "type of version 1", 1)
	expect("asked again", "a", "type", "type of version 1", 0)
	expect("another cache key", "a", "size", "size of version 1", 1)
	must(t, s.Update(metadataOf("a", "2")))
	version = "3"
	expect("it changed, and has changed again since", "a", "type", "type of version 3", 1)
	expect("the watch is behind what was read", "a", "type", "type of version 3", 1)
	must(t, s.Update(metadataOf("a", "3")))
	expect("the watch has come up to what was read", "a", "type", "type of version 3", 0)
	must(t, s.Add(metadataOf("b", "4")))
	expect("deleted, and the watch is behind", "b", "type", "", 1)
	must(t, s.Delete(metadataOf("a", "5")))
	expect("deleted", "a", "type", "", 0)
	if len(tracker.derived) != 0 {
		t.Errorf("remembered of what is gone: %v", tracker.derived)
	}
	tracker, version = NewDirect(secrets, reader), "6"
	expect("without a watch", "a", "type", "type of version 6", 1)
	expect("without a watch again", "a", "type", "type of version 6", 1)
	expect("without a watch, and missing", "b", "type", "", 1)
}

// TestDeriveBeforeTheList verifies that each object is read until the first list is complete, that equal
// versions are derived once, and that the list reports the objects of which another version was read.
func TestDeriveBeforeTheList(t *testing.T) {
	versions := map[string]string{"same": "1", "changes": "1", "twice": "1", "deleted": "1"}
	reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if versions[key.Name] == "" {
				return apierrors.NewNotFound(secrets.GroupResource(), key.Name)
			}
			object.SetResourceVersion(versions[key.Name])
			return nil
		},
	}).Build()
	tracker, told := newTracker(reader)
	derivations := 0
	expect := func(name, want string) {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		got, found, err := Derive(t.Context(), tracker, "", secret, func() string { derivations++; return secret.ResourceVersion })
		if err != nil || found != (want != "") || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"same", "same", "changes", "twice", "deleted"} {
		expect(name, "1")
	}
	expect("created", "")
	expect("missing", "")
	if derivations != 4 {
		t.Errorf("%d derivations, want one for each of 4 objects", derivations)
	}
	versions["twice"] = "2"
	expect("twice", "2")
	s := tracker.stores[0]
	must(t, s.Replace([]any{metadataOf("same", "1"), metadataOf("changes", "3"), metadataOf("twice", "2"), metadataOf("created", "4")}, "4"))
	if diff := cmp.Diff([]string{"changes", "created", "deleted", "twice"}, told()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if len(tracker.early) != 0 || len(tracker.derived) != 2 {
		t.Errorf("remembered: %v, %v", tracker.early, tracker.derived)
	}
	expect("deleted", "")
	tracker.note(keyOf("same"), versionOf("1"))
	tracker.note(keyOf("changes"), versionOf("1")) // its read began before the list
	if diff := cmp.Diff([]string{"changes"}, told()); diff != "" {
		t.Errorf("told after the list (-want +got):\n%s", diff)
	}
}

// TestDeriveIsBounded verifies that the number of cached values of one object is bounded.
func TestDeriveIsBounded(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	tracker, _ := newTracker(fake.NewClientBuilder().WithObjects(secret).Build())
	must(t, tracker.stores[0].Replace([]any{metadataOf("a", "999")}, "1"))
	for i := range 3 * maxValues {
		value, found, err := Derive(t.Context(), tracker, fmt.Sprint(i), secret.DeepCopy(), func() int { return i })
		if err != nil || !found || value != i {
			t.Fatalf("%d, %t, %v", value, found, err)
		}
	}
	if n := len(tracker.derived[keyOf("a")].values); n > maxValues {
		t.Errorf("%d values", n)
	}
}

// TestDeriveIsShared verifies that concurrent calls for one version of an object share one read and
// one derivation. Calls with another cache key share the read. A canceled call does not cancel the
// others.
func TestDeriveIsShared(t *testing.T) {
	const askers = 50
	synctest.Test(t, func(t *testing.T) {
		var reads, looks atomic.Int32
		reader := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}).
			WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					reads.Add(1)
					time.Sleep(time.Second)
					return errors.Join(ctx.Err(), c.Get(ctx, key, object, opts...))
				},
			}).Build()
		tracker, _ := newTracker(reader)
		must(t, tracker.stores[0].Replace([]any{metadataOf("a", "999")}, "1"))
		impatient, cancel := context.WithCancel(t.Context())
		var asked sync.WaitGroup
		ask := func(ctx context.Context, cacheKey string) {
			asked.Go(func() {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
				name, found, err := Derive(ctx, tracker, cacheKey, secret, func() string {
					looks.Add(1)
					return cacheKey + " of " + secret.Name + " in " + secret.ResourceVersion
				})
				if err != nil || !found || name != cacheKey+" of a in 999" {
					t.Errorf("%q, %t, %v", name, found, err)
				}
			})
		}
		ask(impatient, "type")
		synctest.Wait()
		for range askers {
			ask(t.Context(), "type")
		}
		ask(t.Context(), "size")
		synctest.Wait()
		cancel()
		asked.Wait()
		if reads.Load() != 1 || looks.Load() != 2 {
			t.Errorf("%d reads, %d looks", reads.Load(), looks.Load())
		}
		// A new version that arrives during the read of an older version is read separately.
		ask(t.Context(), "age")
		synctest.Wait()
		must(t, tracker.stores[0].Update(metadataOf("a", "1000")))
		found, err := tracker.Read(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}})
		asked.Wait()
		if err != nil || !found || reads.Load() != 3 {
			t.Errorf("%d reads, %t, %v", reads.Load(), found, err)
		}
	})
}

// TestConfigMapsAreReadOnce verifies that each version of a ConfigMap is read once for all its
// referrers, both for derived values and for copies. Secrets are not cached.
func TestConfigMapsAreReadOnce(t *testing.T) {
	const referrers = 50
	for resource, test := range map[string]struct{ limit, want int }{"configmaps": {keptBytes, 1}, "secrets": {0, referrers + 1}} {
		version, reads := "1", 0
		reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
				reads++
				object.(*corev1.ConfigMap).Data = map[string]string{"version": version}
				object.SetResourceVersion(version)
				return nil
			},
		}).Build()
		tracker, _ := newTracker(reader)
		tracker.recent.limit = test.limit
		must(t, tracker.stores[0].Replace(nil, "1"))
		for _, version = range []string{"1", "2"} {
			reads = 0
			must(t, tracker.stores[0].Update(metadataOf("a", version)))
			for i := range referrers {
				concluded, copied := &corev1.ConfigMap{}, &corev1.ConfigMap{}
				concluded.Namespace, concluded.Name, copied.Namespace, copied.Name = "shop", "a", "shop", "a"
				got, _, err := Derive(t.Context(), tracker, "content", concluded, func() string { return concluded.Data["version"] })
				found, readErr := tracker.Read(t.Context(), copied)
				if err != nil || readErr != nil || !found || got != version || copied.Data["version"] != version {
					t.Fatalf("referrer %d of version %s: %q and %v, %v, %v", i, version, got, copied.Data, err, readErr)
				}
			}
			if reads != test.want {
				t.Errorf("%s: %d reads of version %s, want %d", resource, reads, version, test.want)
			}
		}
		must(t, tracker.stores[0].Delete(metadataOf("a", "3")))
		if len(tracker.recent.kept) != 0 || tracker.recent.size != 0 {
			t.Errorf("%s: %d are kept of what is gone", resource, len(tracker.recent.kept))
		}
	}
}

// TestRecentIsBounded verifies that the size of the cache is bounded, and that the most recently
// used objects stay.
func TestRecentIsBounded(t *testing.T) {
	kept := recent{limit: keptBytes}
	configMap := func(i, size int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), ResourceVersion: "1"}, Data: map[string]string{"k": strings.Repeat("x", size)},
		}
	}
	for i := range 1000 {
		kept.put(keyOf(fmt.Sprint(i)), configMap(i, 100_000+1000*(i%7)))
		if kept.get(keyOf("0"), versionOf("1")) == nil {
			t.Fatalf("what was asked for all the time is gone after %d", i)
		}
	}
	size := 0
	for _, one := range kept.kept {
		size += one.object.(*corev1.ConfigMap).Size()
	}
	if size != kept.size || size > keptBytes || size < keptBytes-200_000 {
		t.Errorf("%d bytes are kept, and counted as %d", size, kept.size)
	}
	before := len(kept.kept)
	kept.put(keyOf("large"), configMap(0, keptBytes))
	kept.put(keyOf("0"), configMap(0, 1))
	if len(kept.kept) != before || kept.get(keyOf("large"), versionOf("1")) != nil || kept.get(keyOf("0"), versionOf("2")) != nil {
		t.Errorf("%d are kept", len(kept.kept))
	}
}

// TestMemory verifies that tracking all Secrets of a large cluster uses little memory, even before
// the first list is complete.
func TestMemory(t *testing.T) {
	const objects, bound = 100_000, 30 // bytes per object
	before := heap()
	tracker, _ := newTracker(nil)
	tracker.changed = func(types.NamespacedName) {}
	s := tracker.stores[0]
	for i := range objects {
		must(t, s.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("namespace-%03d", i%500), Name: fmt.Sprintf("object-with-a-usual-name-%06d", i),
			ResourceVersion: fmt.Sprint(1_000_000 + i),
		}}))
	}
	each := (heap() - before) / objects
	t.Logf("%.0f bytes for each of %d objects", each, objects)
	if each > bound {
		t.Errorf("%.0f bytes for each object, at most %d are allowed", each, bound)
	}
	if got, _ := tracker.current(types.NamespacedName{Namespace: "namespace-000", Name: "object-with-a-usual-name-000000"}); got == noObject {
		t.Error("nothing was kept")
	}
}

func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTrackerOfNamespaces verifies that a tracker of some namespaces lists and watches these
// namespaces only, knows the objects of a namespace after its list, and that the list of one
// namespace does not affect the objects of the others.
func TestTrackerOfNamespaces(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	inNamespace := func(namespace string) *metav1.PartialObjectMetadata {
		object := metadataOf("cert", "1")
		object.Namespace = namespace
		return object
	}
	objects := metadatafake.NewSimpleMetadataClient(scheme, inNamespace("shop"), inNamespace("web"), inNamespace("foreign"))
	tracker := NewTracker(objects, secrets, nil, "shop", "web")
	must(t, tracker.stores[0].Replace(nil, "1"))
	for namespace, want := range map[string]bool{"shop": true, "web": false} {
		if _, isListed := tracker.current(types.NamespacedName{Namespace: namespace, Name: "cert"}); isListed != want {
			t.Errorf("namespace %s: listed %t after the list of shop", namespace, isListed)
		}
	}

	tracker = NewTracker(objects, secrets, nil, "shop", "web")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	source := tracker.Source(func(context.Context, types.NamespacedName) []reconcile.Request { return nil }, atOnce)
	must(t, source.Start(t.Context(), queue))
	tracker.Await(t.Context())
	for namespace, want := range map[string]bool{"shop": true, "web": true, "foreign": false} {
		if got, _ := tracker.current(types.NamespacedName{Namespace: namespace, Name: "cert"}); (got != noObject) != want {
			t.Errorf("namespace %s: version %d", namespace, got)
		}
	}
	for _, action := range objects.Actions() {
		if namespace := action.GetNamespace(); namespace != "shop" && namespace != "web" {
			t.Errorf("%s in namespace %q", action.GetVerb(), namespace)
		}
	}

	fresh := NewTracker(nil, secrets, nil, "shop", "web")
	var changed []string
	fresh.changed = func(key types.NamespacedName) { changed = append(changed, key.String()) }
	shop, web := fresh.stores[0], fresh.stores[1]
	must(t, errors.Join(shop.Replace([]any{inNamespace("shop")}, "1"), web.Replace([]any{inNamespace("web")}, "1")))
	for _, namespace := range []string{"shop", "web"} {
		key := types.NamespacedName{Namespace: namespace, Name: "cert"}
		version, _ := fresh.current(key)
		fresh.remember(key, version, "key", "value")
	}
	must(t, shop.Replace(nil, "2"))
	if len(shop.versions) != 0 || len(web.versions) != 1 {
		t.Errorf("versions %v and %v", shop.versions, web.versions)
	}
	if diff := cmp.Diff([]string{"shop/cert"}, changed); diff != "" {
		t.Error(diff)
	}
}
