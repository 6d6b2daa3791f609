//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metadata"
	"github.com/example/nginx-operator/test/harness"
)

const (
	createObjects = 500
	createRounds  = 3
	// childrenPerObject: an object of one replica has a ConfigMap, a Service, a NetworkPolicy and a Deployment.
	childrenPerObject = 4
	maxRatio          = 1.3
)

// family is an object with its children, as they were written.
type family struct {
	object   *v1alpha2.NginxOperator
	children []client.Object
}

// TestCreate compares the time in which the operator makes the children of many new objects with that of a client which
// only sends the same writes: the same objects, by the same number of workers, to the same API server, without any
// reading, comparing or logging. It also counts the operator's writes. The first round warms everything up and gives what the
// bare client sends; in the others the two take turns to be the first.
func TestCreate(t *testing.T) {
	e := newEnvironment(t)
	reportLoad(t)
	var families map[string]*family
	byOperator := func(round int) time.Duration {
		operator := e.startLeader(t)
		e.waitForQuiet(t, time.Second, time.Minute)
		namespace := e.newNamespace(t, fmt.Sprintf("operator-%d", round))
		before := e.writes(t)
		took := e.timeCreation(t, namespace, nil)
		e.waitForQuiet(t, 2*time.Second, time.Minute) // its Events come a moment later
		operator.Stop()
		if round == 0 {
			reportWrites(t, e.writes(t).since(before))
			families = e.harvest(t, namespace)
		}
		e.clean(t, namespace)
		return took
	}
	byBareClient := func(round int) time.Duration {
		namespace := e.newNamespace(t, fmt.Sprintf("bareness-%d", round)) // as long a name, for objects of the same size
		took := e.timeCreation(t, namespace, e.bareWriter(families))
		e.clean(t, namespace)
		return took
	}
	byOperator(0)
	var operatorBest, bareBest time.Duration
	for round := 1; round <= createRounds; round++ {
		var operator, bare time.Duration
		if round%2 == 0 {
			operator, bare = byOperator(round), byBareClient(round)
		} else {
			bare, operator = byBareClient(round), byOperator(round)
		}
		harness.Report(fmt.Sprintf("create-%d-operator-round-%d", createObjects, round), seconds(operator), "s")
		harness.Report(fmt.Sprintf("create-%d-bare-client-round-%d", createObjects, round), seconds(bare), "s")
		operatorBest, bareBest = best(operatorBest, operator), best(bareBest, bare)
	}
	ratio := operatorBest.Seconds() / bareBest.Seconds()
	harness.Report("create-operator-best", seconds(operatorBest), "s")
	harness.Report("create-bare-client-best", seconds(bareBest), "s")
	harness.Report("create-ratio", harness.Round(ratio), fmt.Sprintf("(at most %v)", maxRatio))
	if ratio > maxRatio {
		t.Errorf("the operator takes %.2f times as long as a bare client, at most %v is allowed", ratio, maxRatio)
	}
}

// reportLoad tells how busy the machine is before times are taken: more than about 0.5 makes them doubtful.
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

// reportWrites reports the operator's writes for the new objects and holds them against the bar. Events are beside it.
func reportWrites(t *testing.T, written requests) {
	t.Helper()
	delete(written, request{"POST", v1alpha2.GroupVersion.Group, "nginxoperators", ""}) // this test's
	counted, events := 0, 0
	for key, n := range written {
		switch key.resource {
		case "events":
			events += n
		case "ipaddresses":
			// The API server's own, one for each Service.
		case "namespaces", "configmaps", "services", "deployments", "networkpolicies", "poddisruptionbudgets", "nginxoperators":
			counted += n
		default:
			t.Errorf("unexpected writes: %d x %s", n, key)
		}
	}
	t.Logf("writes: %s", written)
	harness.Report("first-reconcile-writes-per-object", harness.Round(float64(counted)/createObjects), fmt.Sprintf("requests (%d children and 1 status)", childrenPerObject))
	harness.Report("first-reconcile-events-per-object", harness.Round(float64(events)/createObjects), "requests")
	if want := createObjects * (childrenPerObject + 1); counted != want {
		t.Errorf("%d writes for %d objects, want %d", counted, createObjects, want)
	}
}

// timeCreation creates the objects and waits until each has its children and its status. Each object is handed to the
// writer as soon as it exists; without one the operator is what writes.
func (e *environment) timeCreation(t *testing.T, namespace string, write func(context.Context, *v1alpha2.NginxOperator) error) time.Duration {
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
	inParallel(t, concurrency, createObjects, func(ctx context.Context, i int) error {
		object := newServer(namespace, i)
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
		must(t, e.admin.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{metadata.LabelManagedBy: metadata.OperatorName}))
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

// harvest returns what the operator wrote, in the order in which it did and in the form in which it was sent.
func (e *environment) harvest(t *testing.T, namespace string) map[string]*family {
	t.Helper()
	out := map[string]*family{}
	objects := &v1alpha2.NginxOperatorList{}
	must(t, e.admin.List(t.Context(), objects, client.InNamespace(namespace)))
	for i := range objects.Items {
		out[objects.Items[i].Name] = &family{object: &objects.Items[i]}
	}
	for _, list := range childLists() {
		must(t, e.admin.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{metadata.LabelManagedBy: metadata.OperatorName}))
		for _, child := range items(list) {
			member := out[child.GetLabels()[metadata.LabelInstance]]
			member.children = append(member.children, asSent(child))
		}
	}
	return out
}

// asSent takes from a stored object what the API server put there.
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

// bareWriter returns a function that sends for an object the writes that the operator sent for the object of its name.
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

// clean removes what a round made, so that the next one finds the same API server. The operator does not run.
func (e *environment) clean(t *testing.T, namespace string) {
	t.Helper()
	for _, kind := range []client.Object{
		&v1alpha2.NginxOperator{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &networkingv1.NetworkPolicy{},
	} {
		must(t, e.admin.DeleteAllOf(t.Context(), kind, client.InNamespace(namespace)))
	}
}
