//go:build bench

package bench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http/httptest"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/objectcache"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/pkg/lists"
)

const (
	// maxObjectBytes and maxWithPortsBytes are the limits of the memory that an object takes in the
	// cache, and that a Pod or a ReplicaSet takes.
	maxObjectBytes    = 4 << 10
	maxWithPortsBytes = 8 << 10
	// sharedBytes is the limit of the memory that does not depend on the number of objects:
	// buffers.
	sharedBytes = 2 << 20
	// maxListing is the limit in MiB of the memory that a list takes in addition to the filled
	// cache. The garbage collector lets the heap grow by a tenth between two collections.
	maxListing = 64
)

// TestCacheSize fills the cache of each kind with many small objects, and with some of the largest
// that a client can create. It measures the memory of an object, and the peak. BENCH_SMALL and
// BENCH_LARGEST are the numbers of objects.
func TestCacheSize(t *testing.T) {
	small, largest := intFromEnv(t, "BENCH_SMALL", 50_000), intFromEnv(t, "BENCH_LARGEST", 2_500)
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	samples := sampleObjects()
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		kind := samples[name]
		t.Run(name+"/small", func(t *testing.T) { measureCache(t, name, kind.small, small) })
		t.Run(name+"/largest", func(t *testing.T) { measureCache(t, name, kind.largest, largest) })
	}
}

func measureCache(t *testing.T, resource string, sample client.Object, objects int) {
	api := newListServer(t, resource, sample, objects)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1, DisableCompression: true}
	config.Wrap(lists.Wrap)
	gate := fleet.New(fleet.Policy{})

	before := liveHeap()
	peak := highest(t, before)
	filled := fillCache(t, config, sample)
	most := peak()
	if _, ok := sample.(*v1alpha2.NginxOperator); ok {
		names := must1(objectcache.NewInstances(filled.(cache.Cache), nil).Names(t.Context()))(t)
		if len(names) != objects {
			t.Errorf("there are %d objects, want %d", len(names), objects)
		}
		gate.Listed(names)
	}
	after := liveHeap()

	each, limit := (after-before)/float64(objects), maxObjectBytes+sharedBytes/float64(objects)
	if resource == "pods" || resource == "replicasets" {
		limit += maxWithPortsBytes - maxObjectBytes
	}
	listing := (most - after) / (1 << 20)
	fmt.Printf("cache of %d %s with %d bytes each: %.0f bytes of memory each, and %.0f MiB for the list\n",
		objects, resource, len(api.text), each, max(listing, 0))
	if each > limit || each < 200 {
		t.Errorf("an object takes %.0f bytes, the limit is %.0f", each, limit)
	}
	if listing > maxListing {
		t.Errorf("the list takes %.0f MiB, the limit is %d", listing, maxListing)
	}
	for _, kept := range []any{filled, gate} {
		runtime.KeepAlive(kept)
	}
}

// fillCache fills the cache of a kind.
func fillCache(t *testing.T, config *rest.Config, sample client.Object) any {
	t.Helper()
	options := objectcache.CacheOptions()
	options.Scheme = scheme.New()
	options.NewInformer = must1(objectcache.Informers(config, resolve.Indexes(), nil))(t)
	options.Mapper = mapperOf(t, sample)
	for object := range options.ByObject {
		if reflect.TypeOf(object) != reflect.TypeOf(sample) {
			delete(options.ByObject, object)
		}
	}
	out := must1(cache.New(config, options))(t)
	must1(out.GetInformer(t.Context(), sample, cache.BlockUntilSynced(false)))(t)
	go func() { _ = out.Start(t.Context()) }()
	if !out.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache is not filled")
	}
	return out
}

// mapperOf knows the kind of a sample.
func mapperOf(t *testing.T, sample client.Object) meta.RESTMapper {
	t.Helper()
	out := meta.NewDefaultRESTMapper(nil)
	out.Add(must1(apiutil.GVKForObject(sample, scheme.New()))(t), meta.RESTScopeNamespace)
	return out
}

// liveHeap returns the number of bytes on the heap that are in use.
func liveHeap() float64 {
	for range 3 {
		runtime.GC()
	}
	return readHeap()
}

func readHeap() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// highest samples the heap, from the floor on, until the returned function is called, which returns
// the highest value.
func highest(t *testing.T, floor float64) func() float64 {
	t.Helper()
	var bits atomic.Uint64
	bits.Store(math.Float64bits(floor))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if now := readHeap(); now > math.Float64frombits(bits.Load()) {
				bits.Store(math.Float64bits(now))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() float64 {
		cancel()
		<-ended
		return math.Float64frombits(bits.Load())
	}
}
