//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

const (
	createObjects = 500
	createWriters = 16
	maxRatio      = 1.3
)

// childrenPerObject returns the number of children of an object without replicas. Such an object
// has no PodDisruptionBudget.
func childrenPerObject() int { return len(childLists()) - 1 }

var (
	childResources = []string{"configmaps", "services", "deployments", "networkpolicies", "poddisruptionbudgets", "controllerrevisions"}
	// byOthers are the resources that the API server and other controllers write because of the
	// children, their Events, and the reviews that a scrape of the metrics requests.
	byOthers = []string{"ipaddresses", "replicasets", "endpoints", "endpointslices", "events", "subjectaccessreviews", "tokenreviews"}
)

// family is an object with its children, as the operator wrote them.
type family struct {
	object   *v1alpha2.NginxOperator
	children []client.Object
}

// subject is the operator in the environment where it is measured.
type subject struct {
	// metrics is the prefix of the names of the reported metrics.
	metrics string
	// rounds is the number of measurements of both the operator and the bare client.
	rounds int
	// start starts both replicas of the operator, and returns when one leads and both are ready.
	start func() running
	// clean removes the objects of a round, so that the next round has the same conditions. The
	// operator is stopped at this time.
	clean func(namespace string)
	// apiServer returns the CPU time that the API server has used so far.
	apiServer func() time.Duration
	// rollOut makes the replicas of all instances ready. It is nil if controllers do it.
	rollOut func(namespace string)
	// maxProcessorTime is the limit per object. 0 means no limit.
	maxProcessorTime time.Duration
}

// running is a started operator. processorTime returns the CPU time that its replicas have used so
// far.
type running struct {
	processorTime func() time.Duration
	stop          func()
}

// settled is the time without a write after which a measurement of the CPU time ends.
const settled = 10 * time.Second

// TestCreate runs compareCreation on an API server without controllers, with a leader and a
// standby.
func TestCreate(t *testing.T) {
	e := newEnvironment(t)
	operator := subject{
		metrics: "create", rounds: 3,
		start: func() running {
			leader := e.startLeader(t)
			standby := e.startOperator(t)
			return running{
				processorTime: func() time.Duration { return processorTime(t, leader.Pid()) + processorTime(t, standby.Pid()) },
				stop: func() {
					standby.Stop()
					leader.Stop()
				},
			}
		},
		clean:     func(namespace string) { e.deleteAll(t, namespace) },
		apiServer: func() time.Duration { return e.apiServerTime(t) },
		rollOut:   func(namespace string) { e.rollOutAll(t, namespace) },
	}
	writeTable(t, "create", []result{e.compareCreation(t, operator, 0), e.compareCreation(t, operator, 2)})
}

// result has the medians of a comparison. Times of processors are per object.
type result struct {
	replicas                         int32
	operator, bare                   time.Duration
	processor, apiServer, bareServer time.Duration
	written                          requests
}

// sample is one measurement.
type sample struct{ took, processor, apiServer time.Duration }

// compareCreation compares the operator with a bare client that only sends the same writes. It
// measures the time to create the children of many new objects. The bare client writes the same
// objects with the same number of workers to the same API server, without reading, comparing, or
// logging, while no webhook answers. compareCreation also counts the operator's writes, and measures
// the CPU time until ten seconds after the last write. The first round is a warm-up, and records the
// operator's writes for the bare client. In the other rounds, the two alternate in going first.
func (e *environment) compareCreation(t *testing.T, operator subject, replicas int32) result {
	t.Helper()
	reportLoad(t)
	metric := func(name string) string { return fmt.Sprintf("%s-%d-replicas-%s", operator.metrics, replicas, name) }
	var families map[string]*family
	out := result{replicas: replicas}
	byOperator := func(round int) (one sample) {
		process := operator.start()
		namespace := e.newNamespace(t, fmt.Sprintf("operator-%d-%d", replicas, round))
		e.waitForQuiet(t, scrapeEvery, time.Minute)
		before, used, served := e.writes(t), process.processorTime(), operator.apiServer()
		one.took = e.timeCreation(t, namespace, replicas, nil)
		if replicas > 0 && operator.rollOut != nil {
			operator.rollOut(namespace)
		}
		e.waitForQuiet(t, settled, 3*time.Minute)
		one.processor, one.apiServer = (process.processorTime()-used)/createObjects, (operator.apiServer()-served)/createObjects
		harness.Report(metric(fmt.Sprintf("%d-operator-round-%d", createObjects, round)), seconds(one.took), "s")
		harness.Report(metric(fmt.Sprintf("processor-time-per-object-round-%d", round)), milliseconds(one.processor), "ms")
		if round == 0 {
			out.written = e.writes(t).since(before)
			operator.checkWrites(t, replicas, out.written, e.events(t, namespace))
			families = e.harvest(t, namespace)
		}
		process.stop()
		operator.clean(namespace)
		return one
	}
	byBareClient := func(round int) (one sample) {
		// Both namespaces have names of the same length, so that the objects have the same size.
		namespace := e.newNamespace(t, fmt.Sprintf("bareness-%d-%d", replicas, round))
		e.waitForQuiet(t, scrapeEvery, time.Minute)
		served := operator.apiServer()
		one.took = e.timeCreation(t, namespace, replicas, e.bareWriter(families))
		e.waitForQuiet(t, settled, 3*time.Minute)
		one.apiServer = (operator.apiServer() - served) / createObjects
		harness.Report(metric(fmt.Sprintf("%d-bare-client-round-%d", createObjects, round)), seconds(one.took), "s")
		operator.clean(namespace)
		return one
	}
	byOperator(0)
	var ours, bare []sample
	for round := 1; round <= operator.rounds; round++ {
		if round%2 == 0 {
			ours = append(ours, byOperator(round))
			bare = append(bare, byBareClient(round))
		} else {
			bare = append(bare, byBareClient(round))
			ours = append(ours, byOperator(round))
		}
	}
	took := func(s sample) time.Duration { return s.took }
	apiServer := func(s sample) time.Duration { return s.apiServer }
	out.operator, out.bare = median(ours, took), median(bare, took)
	out.processor = median(ours, func(s sample) time.Duration { return s.processor })
	out.apiServer, out.bareServer = median(ours, apiServer), median(bare, apiServer)
	out.check(t, operator, metric)
	return out
}

// check reports the medians and fails the test if one exceeds its limit.
func (r *result) check(t *testing.T, operator subject, metric func(string) string) {
	t.Helper()
	ratio := r.operator.Seconds() / r.bare.Seconds()
	harness.Report(metric("operator-median"), seconds(r.operator), "s")
	harness.Report(metric("bare-client-median"), seconds(r.bare), "s")
	harness.Report(metric("ratio"), harness.Round(ratio), fmt.Sprintf("(at most %v)", maxRatio))
	harness.Report(metric("processor-time-per-object"), milliseconds(r.processor), "ms")
	harness.Report(metric("api-server-per-object"), milliseconds(r.apiServer), "ms")
	if ratio > maxRatio {
		t.Errorf("the operator takes %.2f times as long as a bare client, at most %v is allowed", ratio, maxRatio)
	}
	if limit := operator.maxProcessorTime; limit > 0 && r.processor > limit {
		t.Errorf("an object takes %s of a processor, at most %s are allowed", r.processor, limit)
	}
}

func milliseconds(duration time.Duration) float64 { return harness.Round(duration.Seconds() * 1000) }

// reportLoad reports the load average before a measurement. Results are doubtful above about 0.5.
func reportLoad(t *testing.T) {
	t.Helper()
	average, err := os.ReadFile("/proc/loadavg")
	must(t, err)
	var load float64
	_, err = fmt.Sscan(string(average), &load)
	must(t, err)
	harness.Report("load-average-before", load, "processes")
}

// median returns the middle value of an odd number of samples.
func median(samples []sample, of func(sample) time.Duration) time.Duration {
	values := make([]time.Duration, 0, len(samples))
	for _, one := range samples {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// events counts the operator's Events in a namespace.
func (e *environment) events(t *testing.T, namespace string) (count int) {
	t.Helper()
	list := &eventsv1.EventList{}
	must(t, e.admin.List(t.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		if list.Items[i].ReportingController == wellknown.OperatorName {
			count++
		}
	}
	return count
}

// checkWrites checks the operator's writes for the new objects against the limits. It counts Events
// separately. An object with replicas has a PodDisruptionBudget, and a second status when it is
// ready.
func (o *subject) checkWrites(t *testing.T, replicas int32, written requests, events int) {
	t.Helper()
	wantChildren, wantStatuses := childrenPerObject(), 1
	if replicas > 0 {
		wantChildren, wantStatuses = wantChildren+1, 2
	}
	children, statuses := 0, 0
	for key, n := range written {
		switch {
		case key == request{"POST", v1alpha2.GroupVersion.Group, "nginxoperators", ""}:
			// The test itself creates these objects.
		case key.resource == "nginxoperators" && key.subresource == "status":
			statuses += n
		case key.subresource == "status", slices.Contains(byOthers, key.resource):
		case slices.Contains(childResources, key.resource):
			children += n
		default:
			t.Errorf("unexpected writes: %d x %s", n, key)
		}
	}
	t.Logf("writes: %s", written)
	if children != wantChildren*createObjects || statuses != wantStatuses*createObjects {
		t.Errorf("%d writes of children and %d of the status for %d objects, want %d and %d for each",
			children, statuses, createObjects, wantChildren, wantStatuses)
	}
	each := float64(events) / createObjects
	harness.Report(o.metrics+"-events-per-object", harness.Round(each), "requests")
	if events > 0 {
		t.Errorf("%d Events for %d objects that became ready", events, createObjects)
	}
}

// timeCreation creates the objects and waits until each has its children and its status. It passes
// each new object to write. If write is nil, the operator creates the children.
func (e *environment) timeCreation(
	t *testing.T, namespace string, replicas int32, write func(context.Context, *v1alpha2.NginxOperator) error,
) time.Duration {
	t.Helper()
	created := make(chan *v1alpha2.NginxOperator, createObjects)
	waited := make(chan error, 1)
	go func() { waited <- e.watchStatus(t.Context(), namespace, createObjects, 3*time.Minute) }()
	began := time.Now()

	var writers sync.WaitGroup
	failed := make(chan error, concurrency)
	if write != nil {
		for range concurrency {
			writers.Go(func() {
				for object := range created {
					if err := write(t.Context(), object); err != nil {
						failed <- err
						return
					}
				}
			})
		}
	}
	inParallel(t, createWriters, createObjects, func(ctx context.Context, i int) error {
		object := newInstance(namespace, i)
		object.Spec.Replicas = ptr.To(replicas)
		err := e.admin.Create(ctx, object)
		created <- object
		return err
	})
	close(created)
	writers.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	must(t, <-waited)
	took := time.Since(began)

	for _, list := range childLists() {
		must(t, e.admin.List(t.Context(), list, client.InNamespace(namespace),
			client.MatchingLabels{wellknown.LabelManagedBy: wellknown.OperatorName}))
		want := createObjects
		if _, ok := list.(*policyv1.PodDisruptionBudgetList); ok && replicas == 0 {
			want = 0
		}
		if n := count(list); n != want {
			t.Errorf("%d of %T, want %d", n, list, want)
		}
	}
	return took
}

// harvest returns the objects that the operator wrote, as it sent them. The children are in the
// order of their creation.
func (e *environment) harvest(t *testing.T, namespace string) map[string]*family {
	t.Helper()
	out := map[string]*family{}
	objects := &v1alpha2.NginxOperatorList{}
	must(t, e.admin.List(t.Context(), objects, client.InNamespace(namespace)))
	for i := range objects.Items {
		out[objects.Items[i].Name] = &family{object: &objects.Items[i]}
	}
	for _, list := range childLists() {
		must(t, e.admin.List(t.Context(), list, client.InNamespace(namespace),
			client.MatchingLabels{wellknown.LabelManagedBy: wellknown.OperatorName}))
		for _, child := range items(list) {
			member := out[child.GetLabels()[wellknown.LabelInstance]]
			member.children = append(member.children, asSent(child))
		}
	}
	return out
}

// asSent removes the fields of a stored object that the API server sets.
func asSent(child client.Object) client.Object {
	child.SetUID("")
	child.SetResourceVersion("")
	child.SetGeneration(0)
	child.SetCreationTimestamp(metav1.Time{})
	child.SetManagedFields(nil)
	if service, ok := child.(*corev1.Service); ok {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
	}
	return child
}

// bareWriter returns a function that repeats the operator's writes for the object of the same name.
func (e *environment) bareWriter(families map[string]*family) func(context.Context, *v1alpha2.NginxOperator) error {
	children := map[string][]client.Object{}
	for name, member := range families {
		for _, child := range member.children {
			children[name] = append(children[name], child.DeepCopyObject().(client.Object))
		}
	}
	return func(ctx context.Context, object *v1alpha2.NginxOperator) error {
		for _, child := range children[object.Name] {
			child.SetNamespace(object.Namespace)
			owners := child.GetOwnerReferences()
			owners[0].UID = object.UID
			child.SetOwnerReferences(owners)
			if err := e.bare.Create(ctx, child, apply.FieldOwner); err != nil {
				return err
			}
		}
		patched := object.DeepCopy()
		patched.Status = families[object.Name].object.Status
		return e.bare.Status().Patch(ctx, patched, client.MergeFrom(object), apply.FieldOwner)
	}
}

// deleteAll deletes the objects of a namespace and their children.
func (e *environment) deleteAll(t *testing.T, namespace string) {
	t.Helper()
	for _, kind := range []client.Object{
		&v1alpha2.NginxOperator{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &networkingv1.NetworkPolicy{},
		&appsv1.ControllerRevision{}, &policyv1.PodDisruptionBudget{},
	} {
		must(t, e.admin.DeleteAllOf(t.Context(), kind, client.InNamespace(namespace)))
	}
}
