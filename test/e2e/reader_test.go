package e2e

// This file has the clients that read objects all the time while the operator is upgraded, and notice every answer that
// fails, or is wrong.

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

// readInterval is that of a client which reads fifty times a second.
const readInterval = 20 * time.Millisecond

// listEvery is how many reads there are for one list: a list is answered from the API server's cache, a read of one object
// from what is stored, through the conversion.
const listEvery = 50

// tolerable bounds the one gap in which reads may fail, by design.md: none is what we aim at, and what was measured.
const tolerable = 100 * time.Millisecond

// readsAtOnce bounds how many reads overlap.
const readsAtOnce = 20

// rawClient sends requests as they are, without discovery and limits that would hide a failure. Like every client of
// client-go it comes again where the API server asks for that (Retry-After), which it does while it rebuilds its storage
// for a changed CRD.
func rawClient() (rest.Interface, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	// v1alpha1 is deprecated, as each answer says.
	config.WarningHandler = rest.NoWarnings{}
	config.Timeout = 10 * time.Second
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// reader reads the objects of a namespace in one version, one after the other and now and then all of them. What it reads
// has to be right from the beginning; that reads succeed is asked for from the moment that strictly is called.
type reader struct {
	version   string
	namespace string
	// ports has the port of each object that was there at the start, names the keys of it.
	ports map[string]int32
	names []string
	api   rest.Interface
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu sync.Mutex
	// strict: from now on a failure counts.
	strict                   bool
	reads                    int
	total, failed, early     int
	wrong                    int
	firstFailure, firstWrong string
	lastSuccess              time.Time
	longestGap               time.Duration
	// failingSince is when the first of the reads began that fail at the moment; outages are such times that are over.
	failingSince  time.Time
	outages       int
	longestOutage time.Duration
}

// startReader begins to read. It ends with finish, or with the test.
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
				// A list waits up to 100 ms until the API server is sure to know the latest, so reads overlap.
				select {
				case running <- struct{}{}:
					r.done.Go(func() {
						began := time.Now()
						wrong, err := r.read(context.WithoutCancel(ctx), n)
						r.record(began, wrong, err)
						<-running
					})
				default: // it is slow; more requests would not make it faster
				}
			}
		}
	})
	return r
}

// read makes the n-th read. It returns what is wrong with the answer, and the error where there was none.
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

// portsOf returns the first port of an object, or of each object of a list, by name.
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

// goOn returns when so many more reads have ended that they say something of the time since, a list and each object among them.
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

// finish ends the reading and requires that no answer was wrong, and that none failed since strictly but in one short gap.
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
