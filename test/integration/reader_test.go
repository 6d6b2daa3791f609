package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
)

// reader reads the objects of a namespace at v1alpha1 fifty times a second, and records failed and
// wrong reads. The API server converts each object that it reads alone, but lists from its cache.
// Each object has at most one read at a time: every change of the conversion makes the API server
// open new connections, and on a busy machine, unlimited reads would be all that it works on.
type reader struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu                   sync.Mutex
	total, failed, wrong int
	// first is the first failure. lastWrong is the start time of the last read with a wrong answer.
	first     string
	lastWrong time.Time
	// longest is the duration of the slowest read.
	longest time.Duration
}

// startReader creates objects at v1alpha1 and reads them until finish.
func startReader(t *testing.T) *reader {
	t.Helper()
	const objects, firstPort = 5, 10000
	namespace := newNamespace(t)
	name := func(i int32) string { return fmt.Sprintf("web-%d", i) }
	for i := range int32(objects) {
		object := newObject(namespace, name(i))
		object.Spec.Port, object.Spec.Replicas = ptr.To(firstPort+i), ptr.To[int32](0)
		create(t, object)
	}
	config := rest.CopyConfig(suite.config)
	config.QPS, config.APIPath, config.GroupVersion, config.WarningHandler = -1, "/apis", &v1alpha1.GroupVersion, rest.NoWarnings{}
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	api := must1(rest.RESTClientFor(config))(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{stop: cancel}
	t.Cleanup(func() { cancel(); r.done.Wait() })
	for i := range int32(objects) {
		r.done.Go(func() {
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for ctx.Err() == nil {
				began, object := time.Now(), &v1alpha1.NginxOperator{}
				request := api.Get().Namespace(namespace).Resource("nginxoperators").Name(name(i)).Timeout(5 * time.Second)
				raw, err := request.DoRaw(context.WithoutCancel(ctx))
				if err == nil {
					err = json.Unmarshal(raw, object)
				}
				r.record(began, err, err == nil && ptr.Deref(object.Spec.Port, 0) != firstPort+i)
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}
	return r
}

func (r *reader) record(began time.Time, err error, wrong bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	r.longest = max(r.longest, time.Since(began))
	switch {
	case err != nil:
		r.failed++
		r.first = cmp.Or(r.first, err.Error())
	case wrong:
		r.wrong++
		if began.After(r.lastWrong) {
			r.lastWrong = began
		}
	}
}

// wrongSince returns the time from a moment to the start of the last read with a wrong answer, or 0
// if there is none.
func (r *reader) wrongSince(began time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.lastWrong.Sub(began))
}

// goOn returns after enough further reads to evaluate the time since the call.
func (r *reader) goOn(t *testing.T) {
	t.Helper()
	const enough = 25
	total := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.total
	}
	before := total()
	waitFor(t, func() error {
		if n := total() - before; n < enough {
			return fmt.Errorf("%d more reads, want %d", n, enough)
		}
		return nil
	})
}

// finish stops the reader and requires that all reads succeeded with the right answer.
func (r *reader) finish(t *testing.T) {
	t.Helper()
	r.goOn(t)
	r.stop()
	r.done.Wait()
	t.Logf("%d reads at v1alpha1, %d failed, %d wrong, the slowest took %s", r.total, r.failed, r.wrong, r.longest.Round(time.Millisecond))
	if r.failed > 0 || r.wrong > 0 {
		t.Errorf("%d of %d reads failed, %d were wrong; the first failure: %s", r.failed, r.total, r.wrong, r.first)
	}
	if r.total < 50 {
		t.Errorf("only %d reads, that shows nothing", r.total)
	}
}
