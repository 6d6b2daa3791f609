package metrics

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versionReader is an API server with a version that can fail, and an object in one namespace. It
// counts the reads of each version, and records their namespaces.
type versionReader struct {
	client.Reader
	with string

	mu         sync.Mutex
	reads      map[string]int
	namespaces []string
	broken     string
	hangs      bool
}

// fail makes reads at a version fail or hang.
func (r *versionReader) fail(version string, hangs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken, r.hangs = version, hangs
}

func (r *versionReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	version, of := list.GetObjectKind().GroupVersionKind().Version, (&client.ListOptions{}).ApplyOptions(options)
	r.mu.Lock()
	r.reads[version]++
	r.namespaces = append(r.namespaces, of.Namespace)
	broken, hangs := r.broken, r.hangs
	r.mu.Unlock()
	if of.Limit != 1 {
		return errors.New("more than one object is read")
	}
	if version != broken {
		if of.Namespace == r.with {
			list.(*metav1.PartialObjectMetadataList).Items = make([]metav1.PartialObjectMetadata, 1)
		}
		return nil
	}
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("conversion webhook failed")
}

// TestVersions verifies that the leader reads one object per minute at each version. A version that
// fails or does not answer is reported until a read succeeds, and does not affect the other
// version.
func TestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, reader := prometheus.NewRegistry(), &versionReader{reads: map[string]int{}}
		kind := schema.GroupVersionKind{Group: "operator.example.com", Kind: "NginxOperatorList"}
		versions := NewVersions(registry, reader, nil, kind.GroupKind().WithVersion("v1alpha1"), kind.GroupKind().WithVersion("v1alpha2"))
		is := func(v1alpha1, v1alpha2 string) {
			t.Helper()
			want := `
# HELP nginx_operator_api_readable 1 if the operator could read NginxOperators at this version of the API within the last ` +
				`minute, else 0. ` +
				`Only the leader reports it.
# TYPE nginx_operator_api_readable gauge
nginx_operator_api_readable{version="v1alpha1"} ` + v1alpha1 + `
nginx_operator_api_readable{version="v1alpha2"} ` + v1alpha2 + "\n"
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				t.Error(err)
			}
		}
		if n := testutil.CollectAndCount(versions.readable); n > 0 {
			t.Errorf("a replica that does not lead reports %d versions", n)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- versions.Start(ctx) }()
		synctest.Wait()
		is("1", "1")
		for _, hangs := range []bool{false, true} {
			reader.fail("v1alpha1", hangs)
			time.Sleep(readEvery + readTimeout)
			synctest.Wait()
			is("0", "1")
			reader.fail("", false)
			time.Sleep(readEvery)
			synctest.Wait()
			is("1", "1")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if reader.reads["v1alpha1"] > 5 || reader.reads["v1alpha1"] != reader.reads["v1alpha2"] {
			t.Errorf("reads in %s: %v", 4*readEvery+2*readTimeout, reader.reads)
		}
	})
}

// TestVersionsInNamespaces verifies that an operator for some namespaces reads in these namespaces
// until it finds an object, because a list without objects converts nothing.
func TestVersionsInNamespaces(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "operator.example.com", Version: "v1alpha1", Kind: "NginxOperatorList"}
	for with, want := range map[string][]string{"b": {"a", "b"}, "none": {"a", "b", "c"}} {
		reader := &versionReader{with: with, reads: map[string]int{}}
		versions := NewVersions(prometheus.NewRegistry(), reader, []string{"a", "b", "c"}, kind)
		versions.read(t.Context(), kind)
		if !slices.Equal(reader.namespaces, want) {
			t.Errorf("an object in %s: reads in %v, want %v", with, reader.namespaces, want)
		}
		if got := testutil.ToFloat64(versions.readable); got != 1 {
			t.Errorf("readable is %v", got)
		}
	}
}
