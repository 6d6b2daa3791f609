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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

func metadataOf(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version, Labels: map[string]string{"a": "b"}},
	}
}

func newSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// store is an informer whose objects a test sets.
type store struct {
	cache.SharedIndexInformer
	synced bool
}

func (s *store) HasSynced() bool { return s.synced }

func (s *store) set(t *testing.T, name, version string) {
	t.Helper()
	must(t, s.GetIndexer().Add(&identity{"shop", name, version}))
}

func (s *store) delete(t *testing.T, name string) {
	t.Helper()
	must(t, s.GetIndexer().Delete(&identity{"shop", name, ""}))
}

// newTracker returns a tracker that is not started, and its store, which is complete.
func newTracker(reader client.Reader) (*Tracker, *store) {
	out := NewDirect(secrets, reader)
	inner := cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	stored := &store{inner, true}
	out.informers[metav1.NamespaceAll] = stored
	return out, stored
}

// atOnce lets the list begin with the start of the tracker.
func atOnce(context.Context) {}

// TestSource verifies that the tracker knows no object before its first list. The referrers of an
// object get a request with each change, and with the first list if the object was read before.
func TestSource(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	objects := metadatafake.NewSimpleMetadataClient(scheme, metadataOf("a", "1"), metadataOf("listed", "1"))
	watching := make(chan struct{})
	objects.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		defer close(watching)
		events, err := objects.Tracker().Watch(secrets, "")
		return true, events, err
	})
	reader := fake.NewClientBuilder().WithObjects(newSecret("a")).Build()
	tracker := NewTracker(objects, secrets, reader, nil)
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	source := tracker.Source(func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: "names-" + key.Name}}}
	}, atOnce)
	if _, isKnown := tracker.current(keyOf("a")); isKnown {
		t.Error("a tracker that was not started has all objects")
	}
	for _, name := range []string{"a", "deleted"} {
		_, err := tracker.Read(t.Context(), newSecret(name))
		must(t, err)
	}
	tracker.derived[keyOf("deleted")] = derived{resourceVersion: "1"}
	must(t, source.Start(t.Context(), queue))
	requests := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			request, priority, _ := queue.GetWithPriority()
			queue.Done(request)
			got = append(got, fmt.Sprint(request.Name, " ", priority))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("requests %v, want %v", got, want)
		}
	}
	tracker.Await(t.Context())
	if version, isKnown := tracker.current(keyOf("a")); version != "1" || !isKnown {
		t.Errorf("version %s, known %t", version, isKnown)
	}
	requests(fmt.Sprint("names-a ", handler.LowPriority), fmt.Sprint("names-deleted ", handler.LowPriority))
	if len(tracker.derived) != 0 || len(tracker.early) != 0 {
		t.Errorf("derived %v, read before the list %v", tracker.derived, tracker.early)
	}

	<-watching
	resource := objects.Resource(secrets).Namespace("shop").(metadatafake.MetadataClient)
	for _, name := range []string{"nobody's-2", "b"} {
		_, err := resource.CreateFake(metadataOf(name, "2"), metav1.CreateOptions{})
		must(t, err)
	}
	requests("names-nobody's-2 0")
	requests("names-b 0")
	_, err := resource.UpdateFake(metadataOf("b", "2"), metav1.UpdateOptions{}) // nothing changes
	must(t, err)
	_, err = resource.UpdateFake(metadataOf("a", "3"), metav1.UpdateOptions{})
	must(t, err)
	requests("names-a 0")
	must(t, resource.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	requests("names-b 0")
	if version, _ := tracker.current(keyOf("b")); version != "" || queue.Len() != 0 {
		t.Errorf("version %s, and %d more requests", version, queue.Len())
	}
}

// TestDerive verifies that a value is derived once for each version of an object and each cache
// key, and dropped with the version.
func TestDerive(t *testing.T) {
	reads, version, down := 0, "1", error(nil)
	reader := fake.NewClientBuilder().WithObjects(newSecret("a")).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				reads++
				err := c.Get(ctx, key, object, opts...)
				object.SetResourceVersion(version)
				return errors.Join(err, down)
			},
		}).Build()
	tracker, stored := newTracker(reader)
	ask := func(name, cacheKey string) (string, bool, error) {
		secret := newSecret(name)
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
	stored.set(t, "a", "1")
	down = errors.New("connection refused")
	if _, _, err := ask("a", "type"); !errors.Is(err, down) {
		t.Errorf("error %v", err)
	}
	down = nil
	expect("known", "a", "type", "type of version 1", 1)
	expect("asked again", "a", "type", "type of version 1", 0)
	expect("another cache key", "a", "size", "size of version 1", 1)
	stored.set(t, "a", "2")
	version = "3"
	expect("it changed, and has changed again since", "a", "type", "type of version 3", 1)
	expect("the watch is behind what was read", "a", "type", "type of version 3", 1)
	stored.set(t, "a", "3")
	expect("the watch has come up to what was read", "a", "type", "type of version 3", 0)
	stored.set(t, "b", "4")
	expect("deleted, and the watch is behind", "b", "type", "", 1)
	stored.delete(t, "a")
	tracker.forget(keyOf("a"))
	expect("deleted", "a", "type", "", 0)
	if len(tracker.derived) != 0 {
		t.Errorf("remembered of what is gone: %v", tracker.derived)
	}
	tracker, version = NewDirect(secrets, reader), ""
	expect("planned", "a", "type", "type of version ", 1)
	version = "6"
	expect("without a watch", "a", "type", "type of version 6", 1)
	expect("without a watch again", "a", "type", "type of version 6", 1)
	expect("without a watch, and missing", "b", "type", "", 1)
}

// TestDeriveBeforeTheList verifies that each object is read until the first list is complete, and
// that equal versions are derived once.
func TestDeriveBeforeTheList(t *testing.T) {
	versions := map[string]string{"same": "1", "changes": "1"}
	reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if versions[key.Name] == "" {
				return apierrors.NewNotFound(secrets.GroupResource(), key.Name)
			}
			object.SetResourceVersion(versions[key.Name])
			return nil
		},
	}).Build()
	tracker, stored := newTracker(reader)
	stored.synced = false
	derivations := 0
	expect := func(name, want string) {
		t.Helper()
		secret := newSecret(name)
		got, found, err := Derive(t.Context(), tracker, "", secret, func() string { derivations++; return secret.ResourceVersion })
		if err != nil || found != (want != "") || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"same", "same", "changes"} {
		expect(name, "1")
	}
	expect("missing", "")
	versions["changes"] = "2"
	expect("changes", "2")
	if derivations != 3 {
		t.Errorf("%d derivations, want one for each of 3 versions", derivations)
	}
	stored.synced = true
	stored.set(t, "same", "1")
	expect("same", "1")
	expect("changes", "") // it has been deleted
	if derivations != 3 {
		t.Errorf("%d derivations after the list", derivations)
	}
}

// TestDeriveIsBounded verifies that the number of cached values of one object is bounded.
func TestDeriveIsBounded(t *testing.T) {
	secret := newSecret("a")
	tracker, stored := newTracker(fake.NewClientBuilder().WithObjects(secret).Build())
	stored.set(t, "a", "999")
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
		reader := fake.NewClientBuilder().WithObjects(newSecret("a")).
			WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					reads.Add(1)
					time.Sleep(time.Second)
					return errors.Join(ctx.Err(), c.Get(ctx, key, object, opts...))
				},
			}).Build()
		tracker, stored := newTracker(reader)
		stored.set(t, "a", "999")
		impatient, cancel := context.WithCancel(t.Context())
		var asked sync.WaitGroup
		ask := func(ctx context.Context, cacheKey string) {
			asked.Go(func() {
				secret := newSecret("a")
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
		stored.set(t, "a", "1000")
		found, err := tracker.Read(t.Context(), newSecret("a"))
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
		tracker, stored := newTracker(reader)
		tracker.recent.limit = test.limit
		for _, version = range []string{"1", "2"} {
			reads = 0
			stored.set(t, "a", version)
			tracker.forget(keyOf("a"))
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
		stored.delete(t, "a")
		tracker.forget(keyOf("a"))
		if len(tracker.recent.kept) != 0 {
			t.Errorf("%s: %d are kept of what is gone", resource, len(tracker.recent.kept))
		}
	}
}

// TestRecentIsBounded verifies that the size of the cache is bounded, and that the most recently
// used objects stay.
func TestRecentIsBounded(t *testing.T) {
	kept := recent{limit: keptBytes}
	put := func(name string, size int) {
		kept.put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "1"},
			Data:       map[string]string{"k": strings.Repeat("x", size)},
		})
	}
	for i := range 1000 {
		put(fmt.Sprint(i), 100_000+1000*(i%7))
		if kept.get(keyOf("0"), "1") == nil {
			t.Fatalf("what was asked for all the time is gone after %d", i)
		}
	}
	size := 0
	for _, object := range kept.kept {
		size += object.Size()
	}
	if size > keptBytes || size < keptBytes-200_000 {
		t.Errorf("%d bytes are kept", size)
	}
	before := len(kept.kept)
	put("large", keptBytes)
	put("0", 1)
	if len(kept.kept) != before || kept.get(keyOf("large"), "1") != nil || kept.get(keyOf("0"), "2") != nil {
		t.Errorf("%d are kept", len(kept.kept))
	}
}

// TestMemory verifies that tracking all Secrets of a large cluster uses little memory, whatever
// their metadata.
func TestMemory(t *testing.T) {
	const objects, bound = 100_000, 300 // bytes per object
	before := heap()
	tracker, stored := newTracker(nil)
	for i := range objects {
		object, err := identify(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("namespace-%03d", i%500), Name: fmt.Sprintf("object-with-a-usual-name-%06d", i),
			ResourceVersion: fmt.Sprint(1_000_000 + i), Annotations: map[string]string{"a": strings.Repeat("x", 100)},
		}})
		must(t, err)
		must(t, stored.GetIndexer().Add(object))
	}
	each := (heap() - before) / objects
	t.Logf("%.0f bytes for each of %d objects", each, objects)
	if each > bound {
		t.Errorf("%.0f bytes for each object, at most %d are allowed", each, bound)
	}
	if got, _ := tracker.current(types.NamespacedName{Namespace: "namespace-000", Name: "object-with-a-usual-name-000000"}); got == "" {
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
