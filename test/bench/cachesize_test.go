//go:build bench

package bench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http/httptest"
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
	"github.com/example/nginx-operator/internal/census"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/lists"
	"github.com/example/nginx-operator/internal/operatormanager"
)

const (
	// maxInstanceBytes and maxChildBytes are the limits of the memory that an NginxOperator and any
	// other object take in the cache.
	maxInstanceBytes = 4 << 10
	maxChildBytes    = 2 << 10
	// maxListing is the limit of the memory in MiB that a list takes in addition to what it leaves.
	// The garbage collector lets the heap grow by a tenth between two collections.
	maxListing = 64
)

// TestCacheSize fills the cache of each kind in a process of its own kind: with many small objects and
// with some of the largest that a client can create, by an ordinary list and by a streamed one. It
// measures what an object takes, and the peak.
func TestCacheSize(t *testing.T) {
	small, largest := intFromEnv(t, "BENCH_SMALL", 50_000), intFromEnv(t, "BENCH_LARGEST", 2_500)
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	samples := sampleObjects()
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		kind := samples[name]
		for _, streams := range []bool{false, true} {
			how := map[bool]string{false: "listed", true: "streamed"}[streams]
			t.Run(fmt.Sprintf("%s/small/%s", name, how), func(t *testing.T) { measureCache(t, name, kind.small, small, streams) })
			t.Run(fmt.Sprintf("%s/largest/%s", name, how), func(t *testing.T) { measureCache(t, name, kind.largest, largest, streams) })
		}
	}
}

func measureCache(t *testing.T, name string, sample client.Object, objects int, streams bool) {
	server := httptest.NewServer(newListServer(t, sample, objects, streams))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1, DisableCompression: true}
	config.Wrap(lists.Wrap)
	all, gate := census.New(), fleet.New(fleet.Policy{})

	before := liveHeap()
	filled := fillCache(t, config, sample, all)
	peak := highest(t, before)
	if !filled.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache is not filled")
	}
	if _, ok := sample.(*v1alpha2.NginxOperator); ok {
		all.Wait(t.Context())
		gate.Listed(all.Names())
	}
	most := peak()
	after := liveHeap()
	list := listOf(t, sample)
	if err := filled.List(t.Context(), list, client.Limit(1), client.InNamespace("")); err != nil {
		t.Logf("no list without an index: %v", err)
	}

	each, limit := (after-before)/float64(objects), float64(maxChildBytes)
	if _, ok := sample.(*v1alpha2.NginxOperator); ok {
		limit = maxInstanceBytes
	}
	listing := (most - after) / (1 << 20)
	fmt.Printf("cache of %d %s, %d KiB each on the API server, bytes of an object: %.0f bytes\n", objects, name, encodedSize(t, sample)>>10, each)
	if each > limit || each < 100 {
		t.Errorf("an object takes %.0f bytes, the limit is %.0f", each, limit)
	}
	if listing > maxListing {
		t.Errorf("the list takes %.0f MiB, the limit is %d", listing, maxListing)
	}
	runtime.KeepAlive(filled)
	runtime.KeepAlive(gate)
	runtime.KeepAlive(all)
}

// fillCache starts the cache of one kind.
func fillCache(t *testing.T, config *rest.Config, sample client.Object, all *census.Census) cache.Cache {
	t.Helper()
	newInformer := must1(operatormanager.Informers(config, inputs.Indexes(), all, nil))(t)
	options := operatormanager.CacheOptions()
	options.Scheme, options.NewInformer = operatormanager.NewScheme(), newInformer
	maps.Copy(options.ByObject, operatormanager.OptionalByObject())
	mapper := meta.NewDefaultRESTMapper(nil)
	for object := range options.ByObject {
		mapper.Add(must1(apiutil.GVKForObject(object, options.Scheme))(t), meta.RESTScopeNamespace)
	}
	options.Mapper = mapper
	out := must1(cache.New(config, options))(t)
	must1(out.GetInformer(t.Context(), sample, cache.BlockUntilSynced(false)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = out.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
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
