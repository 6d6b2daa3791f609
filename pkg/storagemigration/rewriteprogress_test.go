package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// stored is the number of objects of a pagedServer. Releases before 0.7.1 read pages of 500.
const stored = 3000

// pagedServer is an API server with many objects, which it lists in pages. A continue token is the
// index of the next object.
type pagedServer struct {
	*Reconciler
	// answer is the result of a write, or nil if all writes succeed.
	answer func(name string) error
	// expire is the error for a continue token, or nil if the list continues. Tokens of renewed
	// start with "renewed-".
	expire func(token string) error

	mu     sync.Mutex
	tokens []string
	writes map[string]int
}

// newPagedServer returns an API server whose CRD has not changed for an hour, and a Reconciler that
// has not started yet.
func newPagedServer(t *testing.T) *pagedServer {
	t.Helper()
	s := &pagedServer{writes: map[string]int{}}
	crd := crdOf(newer, older, newer)
	crd.Name = crdName
	objects := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(crd).WithStatusSubresource(crd).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				return s.list(list, (&client.ListOptions{}).ApplyOptions(options))
			},
			SubResourcePatch: func(
				_ context.Context, _ client.Client, _ string, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption,
			) error {
				return s.write(object.GetName())
			},
		}).Build()
	s.Reconciler = &Reconciler{
		Client: objects, Target: widgetKind, Recorder: events.NewFakeRecorder(1000),
		Condition: noCondition{}, Metrics: noMetrics{},
		progress: progress{generation: string(theUID) + "/7", since: time.Now().Add(-time.Hour)},
	}
	return s
}

func (s *pagedServer) list(list client.ObjectList, options *client.ListOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, options.Continue)
	if s.expire != nil && options.Continue != "" {
		if err := s.expire(options.Continue); err != nil {
			return err
		}
	}
	first, _ := strconv.Atoi(strings.TrimPrefix(options.Continue, "renewed-"))
	end := min(first+int(options.Limit), stored)
	var items []runtime.Object
	for i := first; i < end; i++ {
		items = append(items, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("web-%04d", i), ResourceVersion: "1",
		}})
	}
	if end < stored {
		list.SetContinue(strconv.Itoa(end))
	}
	return meta.SetList(list, items)
}

func (s *pagedServer) write(name string) error {
	if s.answer != nil {
		if err := s.answer(name); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes[name]++
	return nil
}

// reconcile repeats a reconcile until the CRD says that all objects are migrated, and returns the
// errors of the others.
func (s *pagedServer) reconcile(t *testing.T) (errs []error) {
	t.Helper()
	for range 10 {
		_, err := s.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: crdName}})
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: crdName}, crd); err != nil {
			t.Fatal(err)
		}
		if err == nil && len(crd.Status.StoredVersions) == 1 {
			return errs
		}
		errs = append(errs, err)
	}
	t.Fatalf("the migration did not end: %v", errs[len(errs)-3:])
	return nil
}

// once requires that each object was written once.
func (s *pagedServer) once(t *testing.T) {
	t.Helper()
	for name, writes := range s.writes {
		if writes != 1 {
			t.Fatalf("%s was written %d times", name, writes)
		}
	}
	if len(s.writes) != stored {
		t.Errorf("%d of %d objects were written", len(s.writes), stored)
	}
}

// reported returns the number of Events about objects that cannot be stored. It ends the recorder.
func (s *pagedServer) reported() (n int) {
	recorder, _ := s.Recorder.(*events.FakeRecorder)
	close(recorder.Events)
	for event := range recorder.Events {
		if strings.Contains(event, "cannot store the object as") {
			n++
		}
	}
	return n
}

// expired returns the API server's error for an expired token, with the new token if it has one.
func expired(renewed string) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old")
	err.ErrStatus.Continue = renewed
	return err
}

// TestRenewedTokenExpires verifies that a rewrite that gets no page ends with an error, and that
// the next one continues at the same object.
func TestRenewedTokenExpires(t *testing.T) {
	s := newPagedServer(t)
	refusals := 3
	s.expire = func(token string) error {
		if !strings.HasSuffix(token, "1000") || refusals == 0 {
			return nil
		}
		refusals--
		return expired("renewed-1000")
	}
	if errs := s.reconcile(t); len(errs) != 1 || !apierrors.IsResourceExpired(errs[0]) {
		t.Errorf("errors %v", errs)
	}
	s.once(t)
}

// TestExpiredTokenWithoutAnother verifies that a rewrite starts over if the API server cannot
// continue its list. The objects that are already stored as they should be are written again, which
// changes nothing in etcd.
func TestExpiredTokenWithoutAnother(t *testing.T) {
	s := newPagedServer(t)
	done := false
	s.expire = func(token string) error {
		if token != "1000" || done {
			return nil
		}
		done = true
		return expired("")
	}
	if errs := s.reconcile(t); len(errs) != 1 || !apierrors.IsResourceExpired(errs[0]) {
		t.Errorf("errors %v", errs)
	}
	if len(s.writes) != stored || s.writes["web-0999"] != 2 || s.writes["web-1000"] != 1 {
		t.Errorf("%d objects were written, the last one of the first list %d times, the next one %d times",
			len(s.writes), s.writes["web-0999"], s.writes["web-1000"])
	}
}

// TestOutageIsNoNewRewrite verifies that a rewrite ends if the API server stores no object for a
// while. The next one continues where it was, and reports no object, because none was refused.
func TestOutageIsNoNewRewrite(t *testing.T) {
	s := newPagedServer(t)
	outage, failures := true, atomic.Int32{}
	s.answer = func(name string) error {
		if name >= "web-1234" && outage {
			failures.Add(1)
			return apierrors.NewInternalError(errors.New("no webhook answers"))
		}
		return nil
	}
	request := reconcile.Request{NamespacedName: client.ObjectKey{Name: crdName}}
	for range 3 {
		failures.Store(0)
		if _, err := s.Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "no webhook answers") {
			t.Fatalf("error %v", err)
		}
		if n := failures.Load(); n < hopelessAfter || n >= hopelessAfter+2*rewritesAtOnce {
			t.Errorf("%d objects were tried during the outage", n)
		}
	}
	outage = false
	if errs := s.reconcile(t); len(errs) != 0 {
		t.Errorf("errors after the outage: %v", errs)
	}
	s.once(t)
	if n := s.reported(); n != 0 {
		t.Errorf("%d objects were reported", n)
	}
}

// TestOnlyRefusedObjectIsRetried verifies that a refused object costs the others nothing, and is
// reported once.
func TestOnlyRefusedObjectIsRetried(t *testing.T) {
	s := newPagedServer(t)
	attempts := 0
	s.answer = func(name string) error {
		if name != "web-0005" {
			return nil
		}
		if attempts++; attempts > 3 {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, name, errors.New("a policy"))
	}
	if errs := s.reconcile(t); len(errs) != 3 || len(s.tokens) != stored/pageSize {
		t.Errorf("%d lists, errors %v", len(s.tokens), errs)
	}
	s.once(t)
	if n := s.reported(); n != 1 {
		t.Errorf("the object was reported %d times", n)
	}
}

// TestChangedCRDStartsAnotherRewrite verifies that the objects are written again if the CRD changes
// before all are written: they may have been stored in another version.
func TestChangedCRDStartsAnotherRewrite(t *testing.T) {
	s := newPagedServer(t)
	change := make(chan struct{})
	s.answer = func(name string) error {
		if name < "web-1000" {
			return nil
		}
		select {
		case <-change:
			return nil
		default:
			return apierrors.NewInternalError(errors.New("no webhook answers"))
		}
	}
	request := reconcile.Request{NamespacedName: client.ObjectKey{Name: crdName}}
	if _, err := s.Reconcile(t.Context(), request); err == nil {
		t.Fatal("the rewrite has ended")
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.Client.Get(t.Context(), request.NamespacedName, crd); err != nil {
		t.Fatal(err)
	}
	crd.Generation++
	if err := s.Client.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	close(change)
	before := maps.Clone(s.writes)
	if _, err := s.Reconcile(t.Context(), request); err != nil || len(s.writes) != len(before) {
		t.Fatalf("%v, and %d writes before the CRD had settled", err, len(s.writes)-len(before))
	}
	s.since = time.Now().Add(-time.Hour)
	if errs := s.reconcile(t); len(errs) != 0 {
		t.Errorf("errors %v", errs)
	}
	if s.writes["web-0000"] != 2 || s.writes["web-2999"] != 1 {
		t.Errorf("the first object was written %d times, and the last one %d times", s.writes["web-0000"], s.writes["web-2999"])
	}
}

// TestPruneIsNoNewRewrite verifies that a write of the CRD that fails after the last object repeats
// no write of an object.
func TestPruneIsNoNewRewrite(t *testing.T) {
	s := newPagedServer(t)
	refusals := 2
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{SubResourceUpdate: func(
		ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption,
	) error {
		if refusals > 0 {
			refusals--
			return apierrors.NewInternalError(errors.New("no quorum"))
		}
		return c.SubResource(subresource).Update(ctx, object, options...)
	}})
	if errs := s.reconcile(t); len(errs) != 2 {
		t.Errorf("errors %v", errs)
	}
	s.once(t)
}

// noCondition and noMetrics receive reports that the tests do not read.
type noCondition struct{}

func (noCondition) Set(context.Context, metav1.ConditionStatus, string, string) error { return nil }

type noMetrics struct{}

func (noMetrics) Running(bool)   {}
func (noMetrics) Unmigrated(int) {}
func (noMetrics) Finished(bool)  {}
