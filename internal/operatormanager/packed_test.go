package operatormanager

import (
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/scheme"
)

// TestPackedFormHasEveryField verifies that the packed form of an object in the cache loses nothing.
func TestPackedFormHasEveryField(t *testing.T) {
	t.Parallel()
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme.New()))
	transforms := map[client.Object]toolscache.TransformFunc{}
	for kind, options := range CacheOptions().ByObject {
		transforms[kind] = options.Transform
	}
	for kind, transform := range transforms {
		form := newPacking(kind, newRecent())
		form.maxSize = 1 << 30
		for range 200 {
			object := reflect.New(form.kind).Interface()
			if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
				random.Fill(&crd.ObjectMeta) // a schema contains schemas without end
			} else {
				random.Fill(object)
			}
			slim, err := transform(object)
			if err != nil {
				t.Fatal(err)
			}
			slim.(client.Object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as after decoding
			stored, err := form.pack(slim)
			if err != nil {
				t.Fatal(err)
			}
			if _, isPacked := stored.(*packed); !isPacked {
				t.Fatalf("%T is stored as %T", slim, stored)
			}
			form.clear()
			if got := form.unpack(stored); !apiequality.Semantic.DeepEqual(slim, got) {
				t.Fatalf("%T (-before +after):\n%s", slim, cmp.Diff(slim, got))
			}
		}
	}
}

// TestUnpackableIsUnreadable verifies that an NginxOperator with a value whose text is not readable is
// in the cache as an unreadable one.
func TestUnpackableIsUnreadable(t *testing.T) {
	t.Parallel()
	raw := `{"metadata":{"namespace":"shop","name":"web","uid":"u","generation":2},"spec":{"replicas":2},"status":{"conditions":[
		{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"0000-01-01T00:00:00+23:00"}]}}`
	form := newPacking(&v1alpha2.NginxOperator{}, newRecent())
	stored, err := form.pack(bounds.ReadAlone([]byte(raw)))
	if err != nil {
		t.Fatal(err)
	}
	got := form.unpack(stored).(*v1alpha2.NginxOperator)
	why, unreadable := bounds.Unreadable(got)
	if !unreadable || !strings.Contains(why, "parsing time") || got.Name != "web" || got.Generation != 2 || got.Status.Conditions != nil {
		t.Errorf("unpacked %+v: %s", got, why)
	}
}

// TestPackedInformer verifies that handlers and readers of the informer get ordinary objects, and
// that the InstanceIndex follows changes.
func TestPackedInformer(t *testing.T) {
	t.Parallel()
	source := fcache.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	indexers := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	informer := newPackedInformer(source, newPacking(&corev1.ConfigMap{}, newRecent()), 0, indexers, nil)
	if err := informer.SetTransform(slimConfigMap); err != nil {
		t.Fatal(err)
	}
	byUID := func(in any) ([]string, error) { return []string{string(in.(*corev1.ConfigMap).UID)}, nil }
	if err := informer.AddIndexers(toolscache.Indexers{"uid": byUID}); err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 8)
	tell := func(verb string, objects ...any) {
		for _, object := range objects {
			configMap := object.(*corev1.ConfigMap)
			verb += fmt.Sprintf(" %s of %s", configMap.UID, metav1.GetControllerOf(configMap).Name)
		}
		events <- verb
	}
	for _, add := range []func(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error){
		informer.AddEventHandler,
		func(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
			return informer.AddEventHandlerWithResyncPeriod(handler, 0)
		},
	} {
		if _, err := add(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(object any) { tell("add", object) }, UpdateFunc: func(before, now any) { tell("update", before, now) },
			DeleteFunc: func(object any) { tell("delete", object) },
		}); err != nil {
			t.Fatal(err)
		}
	}
	owned := func(instance string, uid types.UID) *corev1.ConfigMap {
		owner := metav1.OwnerReference{
			APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator", Name: instance, Controller: ptr.To(true),
		}
		meta := metav1.ObjectMeta{Namespace: "shop", Name: "config", UID: uid, OwnerReferences: []metav1.OwnerReference{owner}}
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "value"}}
	}
	store := informer.GetIndexer()
	requireAt := func(want map[string]int) {
		t.Helper()
		got := map[string]int{}
		for value := range want {
			items, err := store.ByIndex(fieldPrefix+cached.InstanceIndex, value)
			if err != nil {
				t.Fatal(err)
			}
			got[value] = len(items)
		}
		if !maps.Equal(got, want) {
			t.Errorf("instances: %v, want %v", got, want)
		}
	}
	go informer.RunWithContext(t.Context())

	source.Add(owned("web", "1"))
	requireEvents(t, events, "add 1 of web")
	requireAt(map[string]int{"shop/web": 1, "shop/other": 0})
	source.Modify(owned("other", "2"))
	requireEvents(t, events, "update 1 of web 2 of other")
	requireAt(map[string]int{"shop/web": 0, "shop/other": 1})

	found := readEachWay(t, informer)
	if len(found) != 6 {
		t.Errorf("found %d times", len(found))
	}
	for _, one := range found {
		if got := one.(*corev1.ConfigMap); got.UID != "2" || got.Data != nil || got.GetSelfLink() == "" {
			t.Errorf("found %+v", got)
		}
	}
	if missing, found, err := store.GetByKey("shop/missing"); missing != nil || found || err != nil {
		t.Errorf("found %v, %v, %v", missing, found, err)
	}

	source.Delete(owned("other", "2"))
	requireEvents(t, events, "delete 2 of other")
}

// TestSilentInformer verifies that the handlers of a silent informer get only later objects.
func TestSilentInformer(t *testing.T) {
	t.Parallel()
	source := fcache.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	source.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "first"}})
	informer := newPackedInformer(source, newPacking(&corev1.ConfigMap{}, newRecent()), 0, toolscache.Indexers{}, nil)
	informer.silent = true
	if err := informer.SetTransform(slimConfigMap); err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 8)
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { events <- "add " + object.(*corev1.ConfigMap).Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	if !toolscache.WaitFor(t.Context(), "", registration.HasSyncedChecker()) {
		t.Fatal("the handler is not synced")
	}
	source.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "second"}})
	if got := <-events; got != "add second" {
		t.Errorf("event %q", got)
	}
	if keys := informer.GetStore().ListKeys(); len(keys) != 2 {
		t.Errorf("the store has %v", keys)
	}
}

// requireEvents waits for one event of each of the two handlers.
func requireEvents(t *testing.T, events <-chan string, want string) {
	t.Helper()
	for range 2 {
		select {
		case got := <-events:
			if got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no event, want %q", want)
		}
	}
}

// readEachWay reads the ConfigMap shop/config with each method of the informer's store, and decodes
// it each time.
func readEachWay(t *testing.T, informer packedInformer) []any {
	t.Helper()
	store := informer.GetIndexer()
	one := func(item any, _ bool, err error) ([]any, error) { return []any{item}, err }
	var out []any
	for _, read := range []func() ([]any, error){
		func() ([]any, error) { return one(store.GetByKey("shop/config")) },
		func() ([]any, error) { return one(store.Get(toolscache.ExplicitKey("shop/config"))) },
		func() ([]any, error) { return store.ByIndex("uid", "2") },
		func() ([]any, error) {
			return store.Index("uid", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "2"}})
		},
		func() ([]any, error) { return store.List(), nil },
		func() ([]any, error) { return informer.GetStore().List(), nil },
	} {
		informer.clear()
		items, err := read()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, items...)
	}
	return out
}

// TestPackedTombstone verifies that the object of a tombstone is an ordinary one.
func TestPackedTombstone(t *testing.T) {
	t.Parallel()
	form := newPacking(&corev1.ConfigMap{}, newRecent())
	stored, err := form.pack(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "3"}})
	if err != nil {
		t.Fatal(err)
	}
	form.clear()
	got := form.unpack(toolscache.DeletedFinalStateUnknown{Key: "shop/config", Obj: stored}).(toolscache.DeletedFinalStateUnknown)
	if got.Key != "shop/config" || got.Obj.(*corev1.ConfigMap).UID != "3" {
		t.Errorf("tombstone %+v", got)
	}
}
