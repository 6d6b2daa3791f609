//go:build bench

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
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

var childResources = []string{"configmaps", "services", "deployments", "networkpolicies", "poddisruptionbudgets", "controllerrevisions"}

// family is an object with its first and its last status and its children, as the operator wrote
// them.
type family struct {
	first, last v1alpha2.NginxOperatorStatus
	children    []client.Object
}

// subject is the operator in the environment where it is measured.
type subject struct {
	// metrics is the prefix of the names of the reported metrics.
	metrics string
	// rounds is the number of measurements of both the operator and the bare client, objects the
	// number of objects in each.
	rounds, objects int
	// short means that rounds or objects are not the usual ones, so limits do not apply.
	short bool
	// start starts both replicas of the operator, and returns when one leads and both are ready.
	start func() running
	// clean removes the objects of a round, so that the next round has the same conditions. The
	// operator is stopped at this time. The deletion of a namespace may still run when clean
	// returns.
	clean func(namespace string)
	// apiServer returns the CPU time that the API server has used so far.
	apiServer func() time.Duration
	// rollOut makes the replicas of all instances ready. It is nil if controllers do it.
	rollOut func(namespace string)
	// auditLog is the file with the API server's audit log.
	auditLog string
	// maxProcessorTime is the limit per object. 0 means no limit.
	maxProcessorTime time.Duration
}

// running is a started operator. processorTime returns the CPU time that its replicas have used so
// far.
type running struct {
	processorTime func() time.Duration
	stop          func()
}

// sized sets the numbers of rounds and objects. BENCH_CREATE_ROUNDS and BENCH_CREATE_OBJECTS
// replace them in short runs, which show that the measurement works.
func (o subject) sized(t *testing.T, rounds int) subject {
	t.Helper()
	o.rounds, o.objects = intFromEnv(t, "BENCH_CREATE_ROUNDS", rounds), intFromEnv(t, "BENCH_CREATE_OBJECTS", createObjects)
	if o.rounds == 0 || o.objects == 0 {
		t.Fatal("BENCH_CREATE_ROUNDS and BENCH_CREATE_OBJECTS must be at least 1")
	}
	o.short = o.rounds != rounds || o.objects != createObjects
	return o
}

// settled is the time without a write after which a measurement of the CPU time ends.
const settled = 10 * time.Second

// TestCreate runs compareCreation on an API server without controllers, with a leader and a
// standby.
func TestCreate(t *testing.T) {
	e := newEnvironment(t)
	operator := subject{
		metrics: "create",
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
		auditLog:  e.server.AuditLog,
	}.sized(t, 3)
	writeTable(t, "create", []result{e.compareCreation(t, operator, 0), e.compareCreation(t, operator, 2)})
}

// result has the medians of a comparison. Times of processors are per object.
type result struct {
	replicas                         int32
	objects                          int
	short                            bool
	operator, bare                   time.Duration
	processor, apiServer, bareServer time.Duration
	written                          requests
}

// sample is one measurement.
type sample struct{ took, processor, apiServer time.Duration }

// compareCreation compares the operator with a bare client that only sends the same writes. It
// measures the time to create the children of many new objects. The bare client writes the same
// objects with the same number of workers to the same API server, without reading, comparing, or
// logging, and without webhooks. compareCreation also counts the operator's writes, and measures
// the CPU time until ten seconds after the last write. The first round is a warm-up, and records
// the operator's writes for the bare client. In the other rounds, the two alternate in going first.
func (e *environment) compareCreation(t *testing.T, operator subject, replicas int32) result {
	t.Helper()
	reportLoad(t)
	metric := func(name string) string { return fmt.Sprintf("%s-%d-replicas-%s", operator.metrics, replicas, name) }
	var families map[string]*family
	out := result{replicas: replicas, objects: operator.objects, short: operator.short}
	report := func(name string, round int, value float64, unit string) {
		harness.Report(metric(fmt.Sprintf("%s-round-%d", name, round)), value, unit)
	}
	byOperator := func(round int) (one sample) {
		process := operator.start()
		e.waitForConversion(t, apiextensionsv1.WebhookConverter)
		e.waitForDeletions(t)
		namespace := e.newNamespace(t, fmt.Sprintf("operator-%d-%d", replicas, round))
		e.waitForQuiet(t, scrapeEvery, time.Minute)
		began, used, served := time.Now(), process.processorTime(), operator.apiServer()
		took, first := e.timeCreation(t, namespace, replicas, operator.objects, nil)
		operator.settle(t, e, namespace, replicas)
		one = sample{
			took: took, processor: operator.each(process.processorTime() - used), apiServer: operator.each(operator.apiServer() - served),
		}
		report("operator", round, seconds(one.took), "s")
		report("processor-time-per-object", round, milliseconds(one.processor), "ms")
		report("api-server-per-object", round, milliseconds(one.apiServer), "ms")
		if ready := e.ready(t, namespace); ready != operator.objects {
			t.Errorf("%d objects in %s are Ready, want %d", ready, namespace, operator.objects)
		}
		if round == 0 {
			out.written = auditedWrites(t, operator.auditLog, namespace, began)
			operator.checkWrites(t, replicas, out.written)
			families = e.harvest(t, namespace, first)
		}
		process.stop()
		operator.clean(namespace)
		return one
	}
	byBareClient := func(round int) (one sample) {
		e.dropConversion(t)
		e.waitForDeletions(t)
		// Both namespaces have names of the same length, so that the objects have the same size.
		namespace := e.newNamespace(t, fmt.Sprintf("bareness-%d-%d", replicas, round))
		e.waitForQuiet(t, scrapeEvery, time.Minute)
		// The first requests after a change of the CRD take longer.
		must(t, e.admin.Create(t.Context(), newInstance(namespace, 0), client.DryRunAll))
		must(t, e.admin.List(t.Context(), &v1alpha2.NginxOperatorList{}, client.InNamespace(namespace)))
		served := operator.apiServer()
		one.took, _ = e.timeCreation(t, namespace, replicas, operator.objects, e.bareWriter(families))
		e.writeLastStatus(t, namespace, families)
		operator.settle(t, e, namespace, replicas)
		one.apiServer = operator.each(operator.apiServer() - served)
		e.waitForConversion(t, apiextensionsv1.NoneConverter)
		report("bare-client", round, seconds(one.took), "s")
		report("bare-client-api-server-per-object", round, milliseconds(one.apiServer), "ms")
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

// settle makes the replicas ready if no controller does it, and waits until ten seconds after the
// last write.
func (o *subject) settle(t *testing.T, e *environment, namespace string, replicas int32) {
	t.Helper()
	if replicas > 0 && o.rollOut != nil {
		o.rollOut(namespace)
	}
	e.waitForQuiet(t, settled, 3*time.Minute)
}

// each returns the part of one object in a time.
func (o *subject) each(sum time.Duration) time.Duration { return sum / time.Duration(o.objects) }

// ready returns the number of Ready objects.
func (e *environment) ready(t *testing.T, namespace string) (ready int) {
	t.Helper()
	objects := &v1alpha2.NginxOperatorList{}
	must(t, e.admin.List(t.Context(), objects, client.InNamespace(namespace)))
	for i := range objects.Items {
		if meta.IsStatusConditionTrue(objects.Items[i].Status.Conditions, v1alpha2.ConditionReady) {
			ready++
		}
	}
	return ready
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
	if operator.short {
		return
	}
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
	average := must1(os.ReadFile("/proc/loadavg"))(t)
	var load float64
	must1(fmt.Sscan(string(average), &load))(t)
	harness.Report("load-average-before", load, "processes")
}

// median returns the middle value of an odd number of samples.
func median[S any, V cmp.Ordered](samples []S, of func(S) V) V {
	values := make([]V, 0, len(samples))
	for _, one := range samples {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// percentile returns a percentile of sorted durations.
func percentile(took []time.Duration, percent int) time.Duration {
	return took[min(len(took)-1, len(took)*percent/100)]
}

// checkWrites checks the operator's writes for the new objects against the limits. An object with
// replicas has a PodDisruptionBudget, and a second status when it is ready.
func (o *subject) checkWrites(t *testing.T, replicas int32, written requests) {
	t.Helper()
	wantChildren, wantStatuses := childrenPerObject(), 1
	if replicas > 0 {
		wantChildren, wantStatuses = wantChildren+1, 2
	}
	children, statuses, events := 0, 0, 0
	for key, n := range written {
		switch {
		case key.resource == "nginxoperators" && key.subresource == "status":
			statuses += n
		case key.resource == "events":
			events += n
		case slices.Contains(childResources, key.resource):
			children += n
		default:
			t.Errorf("unexpected writes: %d x %s", n, key)
		}
	}
	t.Logf("writes: %s", written)
	if children != wantChildren*o.objects || statuses != wantStatuses*o.objects {
		t.Errorf("%d writes of children and %d of the status for %d objects, want %d and %d for each",
			children, statuses, o.objects, wantChildren, wantStatuses)
	}
	each := float64(events) / float64(o.objects)
	harness.Report(o.metrics+"-events-per-object", harness.Round(each), "requests")
	if events > 0 {
		t.Errorf("%d Events for %d objects that became ready", events, o.objects)
	}
}

// timeCreation creates n objects and waits until each has its children and its status. It passes
// each new object to write. If write is nil, the operator creates the children. timeCreation also
// returns the objects with their first status, by name.
func (e *environment) timeCreation(
	t *testing.T, namespace string, replicas int32, n int, write func(context.Context, *v1alpha2.NginxOperator) error,
) (took time.Duration, first map[string]*v1alpha2.NginxOperator) {
	t.Helper()
	created := make(chan *v1alpha2.NginxOperator, n)
	group, ctx := errgroup.WithContext(t.Context())
	group.Go(func() (err error) {
		first, err = e.watchStatus(ctx, namespace, n, 3*time.Minute)
		return err
	})
	began := time.Now()
	if write != nil {
		for range concurrency {
			group.Go(func() (err error) {
				for object := range created {
					err = errors.Join(err, write(ctx, object))
				}
				return err
			})
		}
	}
	inParallel(t, createWriters, n, func(ctx context.Context, i int) error {
		object := newInstance(namespace, i)
		object.Spec.Replicas = ptr.To(replicas)
		if replicas > 0 {
			object.Spec.PodTemplate = e.placement
		}
		err := e.admin.Create(ctx, object)
		created <- object
		return err
	})
	close(created)
	must(t, group.Wait())
	took = time.Since(began)

	for _, list := range childLists() {
		must(t, e.admin.List(t.Context(), list, client.InNamespace(namespace),
			client.MatchingLabels{wellknown.LabelManagedBy: wellknown.OperatorName}))
		want := n
		if _, ok := list.(*policyv1.PodDisruptionBudgetList); ok && replicas == 0 {
			want = 0
		}
		if n := meta.LenList(list); n != want {
			t.Errorf("%d of %T, want %d", n, list, want)
		}
	}
	return took, first
}

// harvest returns what the operator wrote for each object, as it sent it. The children are in the
// order of their creation.
func (e *environment) harvest(t *testing.T, namespace string, first map[string]*v1alpha2.NginxOperator) map[string]*family {
	t.Helper()
	out := map[string]*family{}
	objects := &v1alpha2.NginxOperatorList{}
	must(t, e.admin.List(t.Context(), objects, client.InNamespace(namespace)))
	for i := range objects.Items {
		name := objects.Items[i].Name
		out[name] = &family{first: first[name].Status, last: objects.Items[i].Status}
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

// bareWriter returns a function that repeats the operator's writes for the object of the same name,
// up to the first status.
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
			if err := e.bare.Create(ctx, child, client.FieldOwner(wellknown.OperatorName)); err != nil {
				return err
			}
		}
		patched := object.DeepCopy()
		patched.Status = families[object.Name].first
		return e.bare.Status().Patch(ctx, patched, client.MergeFrom(object), client.FieldOwner(wellknown.OperatorName))
	}
}

// writeLastStatus writes the last status of the objects whose first status was not the last one.
// The operator writes it when the replicas are ready, which is not part of the measured time.
func (e *environment) writeLastStatus(t *testing.T, namespace string, families map[string]*family) {
	t.Helper()
	objects := &v1alpha2.NginxOperatorList{}
	must(t, e.admin.List(t.Context(), objects, client.InNamespace(namespace)))
	inParallel(t, concurrency, len(objects.Items), func(ctx context.Context, i int) error {
		object := &objects.Items[i]
		last := families[object.Name].last
		if equality.Semantic.DeepEqual(object.Status, last) {
			return nil
		}
		patched := object.DeepCopy()
		patched.Status = last
		return e.bare.Status().Patch(ctx, patched, client.MergeFrom(object), client.FieldOwner(wellknown.OperatorName))
	})
}

// deleteAll deletes the objects of a namespace and their children.
func (e *environment) deleteAll(t *testing.T, namespace string) {
	t.Helper()
	for _, kind := range []client.Object{
		&v1alpha2.NginxOperator{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &networkingv1.NetworkPolicy{},
		&appsv1.ReplicaSet{}, &appsv1.ControllerRevision{}, &policyv1.PodDisruptionBudget{},
	} {
		must(t, e.admin.DeleteAllOf(t.Context(), kind, client.InNamespace(namespace)))
	}
}
