package e2e

// Clients that read objects continuously during an operator upgrade, and record failed and wrong
// responses.

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
	"github.com/example/nginx-operator/test/harness/repeat"
)

// readClients with a pause of readPause between their reads make almost 50 reads per second. The
// API server delays a list by up to 100 ms until its cache is current, so reads overlap.
const readClients, readPause = 5, 100 * time.Millisecond

// listEvery is the number of reads per list. The API server answers a list from its cache, and a
// read of a single object from etcd, with a conversion.
const listEvery = 50

// tolerable bounds the single gap in which reads may fail. The goal is no gap, and measurements
// found none.
const tolerable = 100 * time.Millisecond

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
	*repeat.Calls
	version, namespace string

	mu sync.Mutex
	// strict means that failed reads count.
	strict bool
	// wrong and failure describe the first wrong response and the first failed read that counts.
	wrong   string
	failure error
	// failedFrom is the start of the first failed read that counts, and failedTo the end of the
	// last.
	failedFrom, failedTo time.Time
}

// startReader starts to read. The reading ends with finish or with the test.
func startReader(t *testing.T, namespace, version string, ports map[string]int32) *reader {
	t.Helper()
	api, err := rawClient()
	must(t, err)
	ports = maps.Clone(ports)
	names := slices.Sorted(maps.Keys(ports))
	r := &reader{version: version, namespace: namespace}
	var clients []func(context.Context, int) error
	for i := range readClients {
		clients = append(clients, func(ctx context.Context, n int) error {
			name := names[(n*readClients+i)%len(names)]
			if n%listEvery == i*listEvery/readClients {
				name = ""
			}
			began := time.Now()
			wrong, err := readPorts(ctx, api, namespace, version, name, ports)
			r.record(began, wrong, err)
			return nil
		})
	}
	r.Calls = repeat.Start(t.Context(), readPause, clients...)
	t.Cleanup(func() { r.Stop() })
	return r
}

// readPorts reads an object, or all objects of ports if name is empty. It returns a description of
// a wrong response, or the error of a failed read.
func readPorts(ctx context.Context, api rest.Interface, namespace, version, name string, ports map[string]int32) (wrong string, err error) {
	path := []string{"/apis/operator.example.com", version, "namespaces", namespace, "nginxoperators"}
	want := ports
	if name != "" {
		path, want = append(path, name), map[string]int32{name: ports[name]}
	}
	raw, err := api.Get().AbsPath(path...).DoRaw(ctx)
	if err != nil {
		return "", err
	}
	found, err := portsOf(raw)
	if err != nil {
		return "", err
	}
	for name, port := range want {
		if got, there := found[name]; !there || got != int64(port) {
			return fmt.Sprintf("%s has port %d instead of %d (there: %t)", name, got, port, there), nil
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
	if wrong != "" && r.wrong == "" {
		r.wrong = wrong
	}
	if err == nil || !r.strict {
		return
	}
	if r.failure == nil {
		r.failure, r.failedFrom = err, began
	}
	r.failedTo = time.Now()
}

// strictly makes failures count from now on.
func (r *reader) strictly() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strict = true
}

// goOn waits until enough reads have ended to include a list and each object of a small fleet.
func (r *reader) goOn(t *testing.T) {
	t.Helper()
	before := r.Counts().Total
	waitFor(t, r.namespace, "more reads", patience, func(context.Context) error {
		if n := r.Counts().Total - before; n < 2*listEvery {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
}

// finish stops the reader. It requires that no response was wrong. It also requires that all failed
// reads that count were within a gap shorter than tolerable.
func (r *reader) finish(t *testing.T, during string) {
	t.Helper()
	reads := r.Stop().Total
	gap := r.failedTo.Sub(r.failedFrom)
	t.Logf("FIGURE reads at %s %s: %d, failed in a gap of %d ms", r.version, during, reads, gap.Milliseconds())
	if r.wrong != "" {
		t.Errorf("an answer at %s was wrong: %s", r.version, r.wrong)
	}
	if gap >= tolerable {
		t.Errorf("reads at %s failed within %s, the first: %v", r.version, gap, r.failure)
	}
	if reads < 50 {
		t.Errorf("only %d reads were made at %s, that shows nothing", reads, r.version)
	}
}
