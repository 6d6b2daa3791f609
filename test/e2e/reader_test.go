package e2e

// Clients that read objects continuously during an operator upgrade, and record each failed or
// wrong response.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/nginx-operator/api/v1alpha1"
)

// readInterval results in 50 reads per second.
const readInterval = 20 * time.Millisecond

// listEvery is the number of reads per list. The API server answers a list from its cache, and a
// read of a single object from etcd, with a conversion.
const listEvery = 50

// tolerable bounds the single gap in which reads may fail. The goal is no gap, and measurements
// found none.
const tolerable = 100 * time.Millisecond

// readsAtOnce bounds the number of concurrent reads.
const readsAtOnce = 20

// rawClient sends requests without discovery and client-side rate limits, which would hide
// failures. Like every client-go client, it retries if the API server sends Retry-After. The API
// server does so while it rebuilds its storage for a changed CRD.
func rawClient() (rest.Interface, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	// v1alpha1 is deprecated, so each response contains a warning.
	config.WarningHandler = rest.NoWarnings{}
	config.Timeout = 10 * time.Second
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// reader reads the objects of a namespace in one version, one after another, and occasionally lists
// all of them. Wrong responses always count. Failed reads count only after strictly is called.
type reader struct {
	version   string
	namespace string
	// ports maps each object that existed at the start to its port. names are the sorted keys.
	ports map[string]int32
	names []string
	api   rest.Interface
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu sync.Mutex
	// strict means that failed reads count.
	strict                   bool
	reads                    int
	total, failed, early     int
	wrong                    int
	firstFailure, firstWrong string
	lastSuccess              time.Time
	longestGap               time.Duration
	// failingSince is the start of the first failed read of the current outage, or zero. outages
	// counts the outages that are over.
	failingSince  time.Time
	outages       int
	longestOutage time.Duration
}

// startReader starts to read. The reading ends with finish or with the test.
func startReader(t *testing.T, namespace, version string, ports map[string]int32) *reader {
	t.Helper()
	api, err := rawClient()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{
		version: version, namespace: namespace, ports: maps.Clone(ports), names: slices.Sorted(maps.Keys(ports)),
		api: api, stop: cancel,
	}
	t.Cleanup(func() { cancel(); r.done.Wait() })
	r.done.Go(func() {
		ticker := time.NewTicker(readInterval)
		defer ticker.Stop()
		running := make(chan struct{}, readsAtOnce)
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// The API server delays a list by up to 100 ms until its cache is current, so reads
				// overlap.
				select {
				case running <- struct{}{}:
					r.done.Go(func() {
						began := time.Now()
						wrong, err := r.read(context.WithoutCancel(ctx), n)
						r.record(began, wrong, err)
						<-running
					})
				default: // more requests would not make a slow API server faster
				}
			}
		}
	})
	return r
}

// read makes the n-th read. It returns a description of a wrong response, or the error of a failed
// read.
func (r *reader) read(ctx context.Context, n int) (wrong string, err error) {
	path, names := []string{"/apis/operator.example.com", r.version, "namespaces", r.namespace, "nginxoperators"}, r.names
	if n%listEvery != 0 {
		names = names[n%len(names):][:1]
		path = append(path, names[0])
	}
	raw, err := r.api.Get().AbsPath(path...).DoRaw(ctx)
	if err != nil {
		return "", err
	}
	found, err := portsOf(raw)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if port, there := found[name]; !there || port != int64(r.ports[name]) {
			return fmt.Sprintf("%s has port %d instead of %d (there: %t)", name, port, r.ports[name], there), nil
		}
	}
	return "", nil
}

// portsOf returns the first port of an object, or of each object in a list, by object name.
func portsOf(raw []byte) (map[string]int64, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	if !object.IsList() {
		return map[string]int64{object.GetName(): portIn(object)}, nil
	}
	out := map[string]int64{}
	return out, object.EachListItem(func(item runtime.Object) error {
		object := item.(*unstructured.Unstructured)
		out[object.GetName()] = portIn(object)
		return nil
	})
}

func (r *reader) record(began time.Time, wrong string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.reads++
	if r.strict {
		r.total++
		if !r.lastSuccess.IsZero() {
			r.longestGap = max(r.longestGap, now.Sub(r.lastSuccess))
		}
	}
	switch {
	case wrong != "":
		r.wrong++
		if r.firstWrong == "" {
			r.firstWrong = wrong
		}
	case err != nil && r.strict:
		r.failed++
		if r.firstFailure == "" {
			r.firstFailure = err.Error()
		}
		if r.failingSince.IsZero() {
			r.failingSince = began
		}
	case err != nil:
		r.early++
	default:
		r.lastSuccess = now
		if !r.failingSince.IsZero() {
			r.outages++
			r.longestOutage = max(r.longestOutage, now.Sub(r.failingSince))
			r.failingSince = time.Time{}
		}
	}
}

// strictly makes failures count from now on.
func (r *reader) strictly() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strict, r.lastSuccess = true, time.Time{}
}

// goOn waits until enough reads have ended to include a list and each object of a small fleet.
func (r *reader) goOn(t *testing.T) {
	t.Helper()
	reads := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.reads
	}
	before := reads()
	waitFor(t, r.namespace, "more reads", patience, func(context.Context) error {
		if n := reads() - before; n < 2*listEvery {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
}

// finish stops the reader. It requires that no response was wrong. It also requires that reads
// after strictly failed in at most one gap, and for less than tolerable.
func (r *reader) finish(t *testing.T, during string) {
	t.Helper()
	r.stop()
	r.done.Wait()
	t.Logf("FIGURE reads at %s %s: %d, %d of %d that count failed (gaps: %d, the longest %d ms), %d wrong, "+
		"longest time between two answers %d ms (%d failed that do not count)",
		r.version, during, r.reads, r.failed, r.total, r.outages, r.longestOutage.Milliseconds(), r.wrong, r.longestGap.Milliseconds(), r.early)
	if r.wrong > 0 {
		t.Errorf("%d answers at %s were wrong, the first: %s", r.wrong, r.version, r.firstWrong)
	}
	if r.outages > 1 || r.longestOutage >= tolerable || !r.failingSince.IsZero() {
		t.Errorf("%d of %d reads at %s failed, the first: %s", r.failed, r.total, r.version, r.firstFailure)
	}
	if r.reads < 50 {
		t.Errorf("only %d reads were made at %s, that shows nothing", r.reads, r.version)
	}
}
