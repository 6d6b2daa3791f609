//go:build bench

package bench

import (
	"context"
	"fmt"
	"maps"
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
	// creators is the number of workers that fill the cluster.
	creators = 32
	// foreignNamespaces is the number of namespaces of the foreign objects.
	foreignNamespaces = 20
)

// TestMemory measures the operator's memory in a cluster with many reconciled NginxOperators and
// many unrelated objects. BENCH_OBJECTS is the number of NginxOperators. BENCH_FOREIGN is the
// number of Pods, and also of ConfigMaps and Secrets. The test measures the operator that creates
// all children, and an operator that starts when the children exist. The limit applies to both
// peaks. The test creates the ReplicaSets, because there is no kube-controller-manager. The operands
// have no Pods, which add to the memory in a real cluster.
func TestMemory(t *testing.T) {
	objects, foreign := intFromEnv(t, "BENCH_OBJECTS", 10_000), intFromEnv(t, "BENCH_FOREIGN", 50_000)
	e := newEnvironment(t)
	began := time.Now()
	e.fill(t, foreign)
	t.Logf("%d Pods, ConfigMaps and Secrets each after %s", foreign, time.Since(began).Round(time.Second))
	operator := e.startLeader(t)
	empty, _ := memory(t, operator)
	harness.Report("memory-with-0-objects", empty, "MiB")

	namespace := e.newNamespace(t, "memory")
	began = time.Now()
	inParallel(t, concurrency, objects, func(ctx context.Context, i int) error {
		return e.admin.Create(ctx, newInstance(namespace, i))
	})
	e.waitForStatus(t, namespace, objects, 20*time.Minute)
	harness.Report(fmt.Sprintf("time-until-%d-objects-have-their-children", objects), seconds(time.Since(began)), "s")
	_, making := memory(t, operator)
	e.addReplicaSets(t, namespace)
	e.rollOutAll(t, namespace)
	e.waitForReady(t, namespace, objects)
	e.waitForQuiet(t, 6*time.Second, 5*time.Minute)
	harness.Report("memory-peak-while-children-are-made", making, "MiB")
	now, most := memory(t, operator)
	harness.Report(fmt.Sprintf("memory-with-%d-objects", objects), now, "MiB")
	harness.Report("memory-peak-until-all-are-ready", most, fmt.Sprintf("MiB (under %d)", maxMemory))
	if most >= maxMemory {
		t.Errorf("the operator took %v MiB, at most %d are allowed", most, maxMemory)
	}
	operator.Stop()

	operator = e.startLeader(t)
	e.waitForLooks(t, 20*time.Minute)
	now, most = memory(t, operator)
	harness.Report("memory-after-restart", now, "MiB")
	harness.Report("memory-peak-after-restart", most, fmt.Sprintf("MiB (under %d)", maxMemory))
	if most >= maxMemory {
		t.Errorf("the operator took %v MiB after a restart, at most %d are allowed", most, maxMemory)
	}
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
