//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
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
	// start starts the operator, and returns when it is ready to work.
	start func() running
	// clean removes the objects of a round, so that the next round has the same conditions. The
	// operator is stopped at this time.
	clean func(namespace string)
	// maxProcessorTime and maxEvents are limits per object. 0 means no limit.
	maxProcessorTime time.Duration
	maxEvents        float64
}

// running is a started operator. processorTime returns the CPU time that it has used so far.
type running struct {
	processorTime func() time.Duration
	stop          func()
}

// TestCreate runs compareCreation on an API server without controllers.
func TestCreate(t *testing.T) {
	e := newEnvironment(t)
	e.compareCreation(t, subject{
		metrics: "create", rounds: 3,
		start: func() running {
			operator := e.startLeader(t)
			return running{func() time.Duration { return processorTime(t, operator.Pid()) }, operator.Stop}
		},
		clean: func(namespace string) { e.deleteAll(t, namespace) },
	})
}

// compareCreation compares the operator with a bare client that only sends the same writes. It
// measures the time to create the children of many new objects. The bare client writes the same
// objects with the same number of workers to the same API server, without reading, comparing, or
// logging. compareCreation also counts the operator's writes. The first round is a warm-up, and
// records the operator's writes for the bare client. In the other rounds, the two alternate in
// going first.
func (e *environment) compareCreation(t *testing.T, operator subject) {
	t.Helper()
	reportLoad(t)
	metric := func(name string) string { return operator.metrics + "-" + name }
	var families map[string]*family
	byOperator := func(round int) (took, each time.Duration) {
		process := operator.start()
		namespace := e.newNamespace(t, fmt.Sprintf("operator-%d", round))
		e.waitForQuiet(t, time.Second, time.Minute)
		before, used := e.writes(t), process.processorTime()
		took = e.timeCreation(t, namespace, nil)
		e.waitForQuiet(t, 2*time.Second, time.Minute) // Events are sent asynchronously
		each = (process.processorTime() - used) / createObjects
		harness.Report(metric(fmt.Sprintf("%d-operator-round-%d", createObjects, round)), seconds(took), "s")
		harness.Report(metric(fmt.Sprintf("processor-time-per-object-round-%d", round)), milliseconds(each), "ms")
		if round == 0 {
			operator.reportWrites(t, e.writes(t).since(before), e.events(t, namespace))
			families = e.harvest(t, namespace)
		}
		process.stop()
		operator.clean(namespace)
		return took, each
	}
	byBareClient := func(round int) time.Duration {
		// Both namespaces have names of the same length, so that the objects have the same size.
		namespace := e.newNamespace(t, fmt.Sprintf("bareness-%d", round))
		e.waitForQuiet(t, time.Second, time.Minute)
		took := e.timeCreation(t, namespace, e.bareWriter(families))
		harness.Report(metric(fmt.Sprintf("%d-bare-client-round-%d", createObjects, round)), seconds(took), "s")
		operator.clean(namespace)
		return took
	}
	byOperator(0)
	var operatorBest, bareBest, leastProcessor time.Duration
	for round := 1; round <= operator.rounds; round++ {
		var took, bare, each time.Duration
		if round%2 == 0 {
			took, each = byOperator(round)
			bare = byBareClient(round)
		} else {
			bare = byBareClient(round)
			took, each = byOperator(round)
		}
		operatorBest, bareBest, leastProcessor = best(operatorBest, took), best(bareBest, bare), best(leastProcessor, each)
	}
	ratio := operatorBest.Seconds() / bareBest.Seconds()
	harness.Report(metric("operator-best"), seconds(operatorBest), "s")
	harness.Report(metric("bare-client-best"), seconds(bareBest), "s")
	harness.Report(metric("ratio"), harness.Round(ratio), fmt.Sprintf("(at most %v)", maxRatio))
	if ratio > maxRatio {
		t.Errorf("the operator takes %.2f times as long as a bare client, at most %v is allowed", ratio, maxRatio)
	}
	if bar := operator.maxProcessorTime; bar > 0 {
		harness.Report(metric("processor-time-per-object"), milliseconds(leastProcessor), fmt.Sprintf("ms (under %d)", bar.Milliseconds()))
		if leastProcessor >= bar {
			t.Errorf("an object takes %s of a processor, less than %s are allowed", leastProcessor, bar)
		}
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

func best(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
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

// reportWrites reports the operator's writes for the new objects and checks them against the
// limits. It reports Events separately.
func (o *subject) reportWrites(t *testing.T, written requests, events int) {
	t.Helper()
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
	report := func(what string, n int, want string) float64 {
		each := float64(n) / createObjects
		harness.Report(fmt.Sprintf("%s-%s-per-object", o.metrics, what), harness.Round(each), "requests ("+want+")")
		return each
	}
	eachChildren := report("writes-of-children", children, strconv.Itoa(childrenPerObject()))
	eachStatus := report("status-patches", statuses, "1")
	if eachChildren != float64(childrenPerObject()) || eachStatus != 1 {
		t.Errorf("%d writes of children and %d of the status for %d objects, want %d and 1 for each",
			children, statuses, createObjects, childrenPerObject())
	}
	if each := report("events", events, "at most 1 for one that becomes ready"); o.maxEvents > 0 && each > o.maxEvents {
		t.Errorf("%d Events for %d objects, at most %v are allowed for each", events, createObjects, o.maxEvents)
	}
}

// timeCreation creates the objects and waits until each has its children and its status. It passes
// each new object to write. If write is nil, the operator creates the children.
func (e *environment) timeCreation(
	t *testing.T, namespace string, write func(context.Context, *v1alpha2.NginxOperator) error,
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
		object.Spec.Replicas = ptr.To[int32](0)
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
		if _, ok := list.(*policyv1.PodDisruptionBudgetList); ok {
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
		&appsv1.ControllerRevision{},
	} {
		must(t, e.admin.DeleteAllOf(t.Context(), kind, client.InNamespace(namespace)))
	}
}
