//go:build bench

package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

const (
	maxMemory = 300 // MiB
	// maxGrowth is the limit of the processor time of an object among all objects, as a multiple of
	// that among few.
	maxGrowth = 1.2
	// maxTakeover is the limit of the time in which a standby leads and has created the children of
	// a new object, with all objects.
	maxTakeover = 10 * time.Second
	// growthFew is the number of objects to which the cost among more objects is compared.
	growthFew = 100
	// growthBatch is the number of objects in each measurement of the processor time.
	growthBatch = 250
	// growthRounds is the number of measurements at each size, without the one that warms up.
	growthRounds = 5
	// creators is the number of workers that fill the cluster.
	creators = 32
	// foreignNamespaces is the number of namespaces of the foreign objects.
	foreignNamespaces = 20
)

// TestGrowth measures the operator's memory, and the processor time of one more object, in a
// cluster with more and more reconciled NginxOperators and many unrelated objects. BENCH_OBJECTS is
// the final number of NginxOperators. BENCH_FOREIGN is the number of Pods, and also of ConfigMaps
// and Secrets.
//
// The processor time is compared to that of a second operator with few objects on an API server of
// its own. The two alternate, because the speed of a machine changes while the cluster grows. The
// second API server has as many Services. Each time a Service gets an address, the API server
// counts all addresses, and it shares the processors with the operator.
//
// At the end, the standby takes over. The limit of the memory applies to the peaks of both. The
// test creates the ReplicaSets, because there is no kube-controller-manager. The operands have no
// Pods, which add to the memory in a real cluster.
func TestGrowth(t *testing.T) {
	objects, foreign := intFromEnv(t, "BENCH_OBJECTS", 10_000), intFromEnv(t, "BENCH_FOREIGN", 50_000)
	// The API server shares the processors with the operator, and its heap takes gigabytes with all
	// objects. With the usual GOGC, its collections take time in most measurements.
	must(t, os.Setenv("GOGC", "400")) //nolint:usetesting // not for the operator
	e, small := newEnvironment(t), newEnvironment(t)
	must(t, os.Unsetenv("GOGC"))
	began := time.Now()
	e.fill(t, foreign)
	t.Logf("%d Pods, ConfigMaps and Secrets each after %s", foreign, time.Since(began).Round(time.Second))
	many, few := e.startReplicas(t), small.startReplicas(t)
	few.grow(t, "existing", growthFew)
	points := []growth{few.holding(t, growthFew)}
	existing, services := 0, growthFew
	for _, size := range growthSizes(objects) {
		many.grow(t, fmt.Sprintf("existing-%05d", size), size-existing)
		few.addServices(t, fmt.Sprintf("services-%05d", size), size-services)
		existing, services = size, size
		one := many.holding(t, size)
		one.processor, one.few = compareCosts(t, many, few, size)
		points = append(points, one)
		harness.Report(fmt.Sprintf("processor-time-per-object-among-%d", size), milliseconds(one.processor), "ms")
		harness.Report(fmt.Sprintf("processor-time-per-object-among-few-next-to-%d", size), milliseconds(one.few), "ms")
		harness.Report(fmt.Sprintf("memory-with-%d-objects", size), one.leader, "MiB")
		harness.Report(fmt.Sprintf("memory-of-standby-with-%d-objects", size), one.standby, "MiB")
	}
	_, most := memory(t, many.leader)
	harness.Report("memory-peak", most, fmt.Sprintf("MiB (under %d)", maxMemory))
	last := points[len(points)-1]
	points[0].processor, points[0].few = last.few, last.few
	harness.Report("processor-time-growth", harness.Round(last.times()), fmt.Sprintf("times (at most %v)", maxGrowth))
	if last.times() > maxGrowth {
		t.Errorf("an object among %d takes %.2f times the processor time of one among %d, at most %v is allowed",
			last.objects, last.times(), growthFew, maxGrowth)
	}

	took, mostAfter := many.takeOver(t)
	harness.Report(fmt.Sprintf("takeover-with-%d-objects", objects), seconds(took), fmt.Sprintf("s (under %v)", maxTakeover.Seconds()))
	harness.Report("memory-peak-after-takeover", mostAfter, fmt.Sprintf("MiB (under %d)", maxMemory))
	if took >= maxTakeover {
		t.Errorf("the standby took over in %s, at most %s are allowed", took, maxTakeover)
	}
	if max(most, mostAfter) >= maxMemory {
		t.Errorf("the leader took %v MiB, and the next one %v MiB, at most %d are allowed", most, mostAfter, maxMemory)
	}
	short := objects != 10_000 || foreign != 50_000
	writePlace(t, "growth", growthTable(points, most, mostAfter, took), short)
}

// growthSizes returns the numbers of objects at which the cost is measured.
func growthSizes(objects int) []int {
	var out []int
	for _, size := range []int{1000, 3000} {
		if size < objects {
			out = append(out, size)
		}
	}
	return append(out, objects)
}

// replicas are the two processes of an operator.
type replicas struct {
	*environment
	leader, standby *harness.Manager
}

func (e *environment) startReplicas(t *testing.T) *replicas {
	t.Helper()
	return &replicas{environment: e, leader: e.startLeader(t), standby: e.startOperator(t)}
}

// holding returns the memory of the replicas with a number of objects.
func (r *replicas) holding(t *testing.T, objects int) growth {
	t.Helper()
	leader, _ := memory(t, r.leader)
	standby, _ := memory(t, r.standby)
	return growth{objects: objects, leader: leader, standby: standby}
}

// used returns the CPU time that both replicas have used so far.
func (r *replicas) used(t *testing.T) time.Duration {
	t.Helper()
	return processorTime(t, r.leader.Pid()) + processorTime(t, r.standby.Pid())
}

// compareCosts returns the medians of the CPU time for one more object of two operators, which
// alternate in going first.
func compareCosts(t *testing.T, many, few *replicas, size int) (amongMany, amongFew time.Duration) {
	t.Helper()
	sides := [2]struct {
		*replicas
		metric string
	}{{many, "among"}, {few, "among-few-next-to"}}
	var rounds [2][]sample
	for round := range growthRounds + 1 {
		for turn := range 2 {
			who := (round + turn) % 2
			cost := sides[who].cost(t, fmt.Sprintf("measured-%05d-%d", size, round))
			if round == 0 {
				continue
			}
			rounds[who] = append(rounds[who], sample{processor: cost})
			harness.Report(fmt.Sprintf("processor-time-%s-%d-round-%d", sides[who].metric, size, round), milliseconds(cost), "ms")
		}
	}
	processor := func(one sample) time.Duration { return one.processor }
	return median(rounds[0], processor), median(rounds[1], processor)
}

// cost creates growthBatch objects in a new namespace, deletes them, and returns the CPU time of
// one, without the deletion.
func (r *replicas) cost(t *testing.T, namespace string) time.Duration {
	t.Helper()
	before := r.used(t)
	r.grow(t, namespace, growthBatch)
	one := (r.used(t) - before) / growthBatch
	r.deleteAll(t, namespace)
	r.waitForIdle(t)
	return one
}

// grow creates a namespace with new objects, completes their rollouts, and waits until the replicas
// are idle.
func (r *replicas) grow(t *testing.T, namespace string, n int) {
	t.Helper()
	r.newNamespace(t, namespace)
	inParallel(t, concurrency, n, func(ctx context.Context, i int) error {
		return r.admin.Create(ctx, newInstance(namespace, i))
	})
	r.waitForStatus(t, namespace, n, 20*time.Minute)
	r.addReplicaSets(t, namespace)
	r.rollOutAll(t, namespace)
	r.waitForReady(t, namespace, n)
	r.waitForIdle(t)
}

// waitForIdle waits until the replicas have used almost no CPU time for six seconds. The API server
// converts each written object to the other version for its watch cache. After many writes, it
// calls the webhook for half a minute.
func (r *replicas) waitForIdle(t *testing.T) {
	t.Helper()
	const interval = 6 * time.Second
	for range 50 {
		before := r.used(t)
		time.Sleep(interval)
		if r.used(t)-before < interval/100 {
			return
		}
	}
	t.Fatal("the operator is not idle after five minutes")
}

// takeOver stops the leader. It returns the time until the standby leads and has created the
// children of a new object, and the peak of its memory after it has read every child.
func (r *replicas) takeOver(t *testing.T) (took time.Duration, most float64) {
	t.Helper()
	object := newInstance(r.newNamespace(t, "takeover"), 0)
	began := time.Now()
	go r.leader.Stop()
	must(t, r.admin.Create(t.Context(), object))
	waitFor(t, 5*time.Minute, func() error {
		return r.admin.Get(t.Context(), client.ObjectKeyFromObject(object), &appsv1.Deployment{})
	})
	took = time.Since(began)
	r.waitForLooks(t, 20*time.Minute)
	_, most = memory(t, r.standby)
	return took, most
}

// addReplicaSets creates the ReplicaSet of each Deployment, as the Deployment controller does.
func (e *environment) addReplicaSets(t *testing.T, namespace string) {
	t.Helper()
	deployments := &appsv1.DeploymentList{}
	must(t, e.admin.List(t.Context(), deployments, client.InNamespace(namespace)))
	inParallel(t, concurrency, len(deployments.Items), func(ctx context.Context, i int) error {
		deployment := &deployments.Items[i]
		template := deployment.Spec.Template.DeepCopy()
		const hash = "5d59d67564"
		template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		selector := deployment.Spec.Selector.DeepCopy()
		selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		annotations := maps.Clone(deployment.Annotations)
		annotations[wellknown.AnnotationRevision] = "1"
		return e.admin.Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: deployment.Name + "-" + hash, Labels: template.Labels, Annotations: annotations,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			},
			Spec: appsv1.ReplicaSetSpec{Replicas: deployment.Spec.Replicas, Selector: selector, Template: *template},
		})
	})
}

// addServices creates unrelated Services in a new namespace.
func (e *environment) addServices(t *testing.T, namespace string, n int) {
	t.Helper()
	e.newNamespace(t, namespace)
	inParallel(t, creators, n, func(ctx context.Context, i int) error {
		return e.admin.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("foreign-%05d", i)},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
	})
}

// fill creates the given number of unrelated Pods, ConfigMaps, and Secrets each.
func (e *environment) fill(t *testing.T, foreign int) {
	t.Helper()
	for i := range foreignNamespaces {
		e.newNamespace(t, fmt.Sprintf("foreign-%02d", i))
	}
	inParallel(t, creators, 3*foreign, func(ctx context.Context, i int) error {
		object := metav1.ObjectMeta{
			Namespace: fmt.Sprintf("foreign-%02d", i%foreignNamespaces),
			Name:      fmt.Sprintf("foreign-%06d", i),
			Labels:    map[string]string{"app.kubernetes.io/name": "foreign", "app.kubernetes.io/managed-by": "somebody"},
		}
		var created client.Object
		switch i / foreign {
		case 0:
			containers := []corev1.Container{{Name: "main", Image: "example.com/foreign:1"}}
			created = &corev1.Pod{ObjectMeta: object, Spec: corev1.PodSpec{Containers: containers}}
		case 1:
			created = &corev1.ConfigMap{ObjectMeta: object, Data: map[string]string{"key": "value"}}
		default:
			created = &corev1.Secret{ObjectMeta: object, StringData: map[string]string{"key": "value"}}
		}
		return e.admin.Create(ctx, created)
	})
}
