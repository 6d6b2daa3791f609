package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// flaky is a cache, OLM and the metrics. The first so many requests to each of the first two fail.
type flaky struct {
	client.Reader
	objects                         int
	listFailures, conditionFailures int
	told                            []string
	counts                          [3]int
}

func (f *flaky) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if f.listFailures--; f.listFailures >= 0 {
		return errors.New("not yet")
	}
	for i := range f.objects {
		key := objectOf(i)
		object := v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		list.(*v1alpha2.NginxOperatorList).Items = append(list.(*v1alpha2.NginxOperatorList).Items, object)
	}
	return nil
}

func (f *flaky) Set(_ context.Context, status metav1.ConditionStatus, reason, _ string) error {
	if f.conditionFailures--; f.conditionFailures >= 0 {
		return errors.New("conflict")
	}
	f.told = append(f.told, string(status)+" "+reason)
	return nil
}

func (f *flaky) Instances(waiting, rolling, failed int) { f.counts = [3]int{waiting, rolling, failed} }

// OLM is told of each step once, and of nothing before all objects were seen; what fails is tried again.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{objects: 3, listFailures: 2, conditionFailures: 2}
		g := New(intstr.FromInt32(1))
		reporter := &Reporter{Gate: g, Cache: f, Condition: f, Metrics: f, Log: logr.Discard()}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- reporter.Start(ctx) }()
		expect := func(counts [3]int, told ...string) {
			t.Helper()
			synctest.Wait()
			if f.counts != counts || !slices.Equal(f.told, told) {
				t.Errorf("counts %v, want %v; OLM was told %q, want %q", f.counts, counts, f.told, told)
			}
		}
		const rolling, stopped, idle = "False " + ReasonRolling, "False " + ReasonStopped, "True " + ReasonIdle

		g.Report(objectOf(0), Outside, false)
		time.Sleep(3 * retryAfter)
		g.Report(objectOf(1), Outside, false)
		expect([3]int{})
		g.Ask(objectOf(2), Waiting)
		time.Sleep(3 * retryAfter)
		expect([3]int{0, 1, 0}, rolling)
		g.Report(objectOf(2), Failed, false)
		expect([3]int{0, 0, 1}, rolling, stopped)
		g.Report(objectOf(2), Failed, false)
		expect([3]int{0, 0, 1}, rolling, stopped)
		g.Report(objectOf(2), Rolling, false)
		expect([3]int{0, 1, 0}, rolling, stopped, rolling)
		g.Report(objectOf(2), Outside, false)
		expect([3]int{}, rolling, stopped, rolling, idle)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
