//go:build bench

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

const (
	maxMemory = 200 // MiB
	// creators is with how many workers a cluster is filled.
	creators = 32
	// foreignNamespaces is over how many namespaces the foreign objects are spread.
	foreignNamespaces = 20
)

// TestMemory measures the operator in a cluster that holds many NginxOperators, all reconciled, and many more objects that
// are none of its business: BENCH_OBJECTS of the former, BENCH_FOREIGN of each of Pods, ConfigMaps and Secrets. It measures
// the operator that made all the children, and one that starts when they are there; the bar is on the peaks. Without
// controllers the operands have no ReplicaSets and Pods; in a cluster these add to the memory.
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

// fill creates so many Pods, ConfigMaps and Secrets of nobody's.
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
