//go:build bench

package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/test/harness"
)

const (
	maxMemory = 200 // MiB
	// maxGrowth is the limit of the processor time of an object among all objects, as a multiple of
	// that among few.
	maxGrowth = 1.2
	// maxTakeover is the limit of the time in which a standby leads and has created the children of a
	// new object, with all objects.
	maxTakeover = 10 * time.Second
	// growthBatch is the number of objects in each measurement of the processor time.
	growthBatch = 250
	// creators is the number of workers that fill the cluster.
	creators = 32
	// foreignNamespaces is the number of namespaces of the foreign objects.
	foreignNamespaces = 20
)

// growth is the cost of the operator with a number of objects.
type growth struct {
	objects int
	// processor is the CPU time of both replicas for one more object, until they are idle.
	processor time.Duration
	// leader and standby are the resident memory of the replicas in MiB.
	leader, standby float64
}

// TestGrowth measures the operator's memory, and the processor time of one more object, in a cluster
// with more and more reconciled NginxOperators and many unrelated objects. BENCH_OBJECTS is the final
// number of NginxOperators. BENCH_FOREIGN is the number of Pods, and also of ConfigMaps and Secrets.
// At the end, the standby takes over. The limit of the memory applies to the peaks of both. The test
// creates the ReplicaSets, because there is no kube-controller-manager. The operands have no Pods,
// which add to the memory in a real cluster.
func TestGrowth(t *testing.T) {
	objects, foreign := intFromEnv(t, "BENCH_OBJECTS", 10_000), intFromEnv(t, "BENCH_FOREIGN", 50_000)
	// The API server shares the processors with the operator, and its heap takes gigabytes with all
	// objects. With the usual GOGC, its collections take time in most measurements.
	must(t, os.Setenv("GOGC", "400")) //nolint:usetesting // not for the operator
	e := newEnvironment(t)
	must(t, os.Unsetenv("GOGC"))
	began := time.Now()
	e.fill(t, foreign)
	t.Logf("%d Pods, ConfigMaps and Secrets each after %s", foreign, time.Since(began).Round(time.Second))
	leader := e.startLeader(t)
	standby := e.startOperator(t)

	used := func() time.Duration { return processorTime(t, leader.Pid()) + processorTime(t, standby.Pid()) }

	var points []growth
	existing := 0
	for _, size := range growthSizes(objects) {
		e.grow(t, fmt.Sprintf("existing-%05d", size), size-existing, used)
		one := growth{objects: size}
		one.leader, _ = memory(t, leader)
		one.standby, _ = memory(t, standby)
		before := used()
		e.grow(t, fmt.Sprintf("measured-%05d", size), growthBatch, used)
		one.processor = (used() - before) / growthBatch
		existing = size + growthBatch
		points = append(points, one)
		harness.Report(fmt.Sprintf("processor-time-per-object-among-%d", size), milliseconds(one.processor), "ms")
		harness.Report(fmt.Sprintf("memory-with-%d-objects", size), one.leader, "MiB")
		harness.Report(fmt.Sprintf("memory-of-standby-with-%d-objects", size), one.standby, "MiB")
	}
	_, most := memory(t, leader)
	harness.Report("memory-peak", most, fmt.Sprintf("MiB (under %d)", maxMemory))
	first, last := points[0], points[len(points)-1]
	ratio := last.processor.Seconds() / first.processor.Seconds()
	harness.Report("processor-time-growth", harness.Round(ratio), fmt.Sprintf("times (at most %v)", maxGrowth))
	if ratio > maxGrowth {
		t.Errorf("an object among %d takes %.2f times the processor time of one among %d, at most %v is allowed",
			last.objects, ratio, first.objects, maxGrowth)
	}

	took, mostAfter := e.takeOver(t, leader, standby)
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
	for _, size := range []int{100, 1000, 2500, 5000} {
		if size+growthBatch < objects {
			out = append(out, size)
		}
	}
	return append(out, objects)
}

// grow creates a namespace with new objects, completes their rollouts, and waits until the replicas
// are idle.
func (e *environment) grow(t *testing.T, namespace string, n int, used func() time.Duration) {
	t.Helper()
	e.newNamespace(t, namespace)
	inParallel(t, concurrency, n, func(ctx context.Context, i int) error {
		return e.admin.Create(ctx, newInstance(namespace, i))
	})
	e.waitForStatus(t, namespace, n, 20*time.Minute)
	e.addReplicaSets(t, namespace)
	e.rollOutAll(t, namespace)
	e.waitForReady(t, namespace, n)
	waitForIdle(t, used)
}

// waitForIdle waits until the replicas have used almost no CPU time for six seconds. The API server
// converts each written object to the other version for its watch cache. After many writes, it calls
// the webhook for half a minute.
func waitForIdle(t *testing.T, used func() time.Duration) {
	t.Helper()
	const interval = 6 * time.Second
	for range 50 {
		before := used()
		time.Sleep(interval)
		if used()-before < interval/100 {
			return
		}
	}
	t.Fatal("the operator is not idle after five minutes")
}

// takeOver stops the leader. It returns the time until the standby leads and has created the children
// of a new object, and the peak of its memory after it has read every child.
func (e *environment) takeOver(t *testing.T, leader, standby *harness.Manager) (took time.Duration, most float64) {
	t.Helper()
	object := newInstance(e.newNamespace(t, "takeover"), 0)
	began := time.Now()
	go leader.Stop()
	must(t, e.admin.Create(t.Context(), object))
	waitFor(t, 5*time.Minute, func() error {
		return e.admin.Get(t.Context(), client.ObjectKeyFromObject(object), &appsv1.Deployment{})
	})
	took = time.Since(began)
	e.waitForLooks(t, 20*time.Minute)
	_, most = memory(t, standby)
	return took, most
}

// growthTable returns the results as a Markdown table and two plots.
func growthTable(points []growth, most, mostAfter float64, took time.Duration) string {
	var rows strings.Builder
	var sizes, processor, leader, standby []string
	for _, one := range points {
		size := strconv.Itoa(one.objects)
		cpu := fmt.Sprintf("%.1f", milliseconds(one.processor))
		sizes, processor = append(sizes, size), append(processor, cpu)
		leader, standby = append(leader, fmt.Sprintf("%.0f", one.leader)), append(standby, fmt.Sprintf("%.0f", one.standby))
		fmt.Fprintf(&rows, "| %s | %s ms | %.0f MiB | %.0f MiB |\n", size, cpu, one.leader, one.standby)
	}
	highest := func(of func(growth) float64) int {
		most := 0.0
		for _, one := range points {
			most = max(most, of(one))
		}
		return (int(most)/10 + 1) * 10
	}
	plot := func(title, unit string, limit int, lines ...[]string) string {
		out := fmt.Sprintf("\n```mermaid\nxychart-beta\n  title %q\n  x-axis \"instances\" [%s]\n  y-axis %q 0 --> %d\n",
			title, strings.Join(sizes, ", "), unit, limit)
		for _, line := range lines {
			out += fmt.Sprintf("  line [%s]\n", strings.Join(line, ", "))
		}
		return out + "```\n"
	}
	return "| instances | processor time of one more, both replicas | memory of the leader | memory of the standby |\n|---|---|---|---|\n" +
		rows.String() + fmt.Sprintf("\nThe peak of the leader's memory was %.0f MiB. The standby created the children of a new instance %.1f s "+
		"after the end of the leader, and its memory rose to at most %.0f MiB.\n", most, took.Seconds(), mostAfter) +
		plot("Processor time of one more instance", "ms", highest(func(one growth) float64 { return milliseconds(one.processor) }), processor) +
		plot("Resident memory: leader (upper line) and standby", "MiB",
			highest(func(one growth) float64 { return one.leader }), leader, standby)
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
		annotations[operatormanager.AnnotationRevision] = "1"
		return e.admin.Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: deployment.Name + "-" + hash, Labels: template.Labels, Annotations: annotations,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			},
			Spec: appsv1.ReplicaSetSpec{Replicas: deployment.Spec.Replicas, Selector: selector, Template: *template},
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
