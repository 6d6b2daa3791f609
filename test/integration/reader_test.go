package integration

import (
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
	"github.com/example/nginx-operator/test/harness/repeat"
)

// reader reads the objects of a namespace at v1alpha1 up to fifty times a second, and records
// failed and wrong reads. The API server converts each object that it reads alone, but lists from
// its cache. Each object has at most one read at a time: every change of the conversion makes the
// API server open new connections, and on a busy machine, unlimited reads would be all that it
// works on.
type reader struct {
	*repeat.Calls

	mu    sync.Mutex
	wrong int
	// lastWrong is the start time of the last read with a wrong answer.
	lastWrong time.Time
}

// startReader creates objects at v1alpha1 and reads them until finish.
func startReader(t *testing.T) *reader {
	t.Helper()
	const objects, firstPort = 5, 10000
	config := rest.CopyConfig(suite.config)
	config.QPS, config.APIPath, config.GroupVersion, config.WarningHandler = -1, "/apis", &v1alpha1.GroupVersion, rest.NoWarnings{}
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	api := must1(rest.RESTClientFor(config))(t)
	namespace, r := newNamespace(t), &reader{}
	var reads []func(context.Context, int) error
	for i := range int32(objects) {
		object := newObject(namespace, fmt.Sprintf("web-%d", i))
		object.Spec.Port, object.Spec.Replicas = ptr.To(firstPort+i), ptr.To[int32](0)
		create(t, object)
		reads = append(reads, func(ctx context.Context, _ int) error {
			began, got := time.Now(), &v1alpha1.NginxOperator{}
			request := api.Get().Namespace(namespace).Resource("nginxoperators").Name(object.Name).Timeout(5 * time.Second)
			raw, err := request.DoRaw(ctx)
			if err == nil {
				err = json.Unmarshal(raw, got)
			}
			if err == nil && ptr.Deref(got.Spec.Port, 0) != firstPort+i {
				r.recordWrong(began)
			}
			return err
		})
	}
	r.Calls = repeat.Start(t.Context(), 100*time.Millisecond, reads...)
	t.Cleanup(func() { r.Stop() })
	return r
}

func (r *reader) recordWrong(began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong++
	if began.After(r.lastWrong) {
		r.lastWrong = began
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
	before := r.Counts().Total
	waitFor(t, func() error {
		if n := r.Counts().Total - before; n < enough {
			return fmt.Errorf("%d more reads, want %d", n, enough)
		}
		return nil
	})
}

// stop stops the reader.
func (r *reader) stop(t *testing.T) repeat.Counts {
	t.Helper()
	counts := r.Stop()
	t.Logf("%d reads at v1alpha1, %d failed, %d wrong, the slowest took %s; the first failure: %v",
		counts.Total, counts.Failed, r.wrong, counts.Slowest.Round(time.Millisecond), counts.First)
	return counts
}

// finish stops the reader and requires that all reads succeeded with the right answer.
func (r *reader) finish(t *testing.T) {
	t.Helper()
	r.goOn(t)
	if counts := r.stop(t); counts.Failed > 0 || r.wrong > 0 || counts.Total < 50 {
		t.Errorf("%d of %d reads failed and %d were wrong, want none, and at least 50 reads", counts.Failed, counts.Total, r.wrong)
	}
}
