package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metadata"
)

// Every kind of child is narrowed to our label, and the label is that of the children and of the Pods.
func TestCacheIsNarrow(t *testing.T) {
	options := CacheOptions()
	if !options.ReaderFailOnMissingInformer {
		t.Error("a read may start an informer for a whole kind")
	}
	for object, by := range options.ByObject {
		if by.Label == nil || by.Label.Matches(labels.Set{"app": "foreign"}) {
			t.Errorf("%T is cached for the whole cluster", object)
			continue
		}
		for _, ours := range []map[string]string{metadata.ChildLabels("web", "nginx:1"), metadata.PodLabels("web")} {
			if !by.Label.Matches(labels.Set(ours)) {
				t.Errorf("%T: the cache does not show what is labelled %v", object, ours)
			}
		}
	}
}

func TestTransforms(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{{Manager: "a"}, {Manager: "b", Subresource: "scale"}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ManagedFields: append([]metav1.ManagedFieldsEntry{}, managed...)}}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: managed}, Immutable: ptr.To(true), Data: map[string]string{"k": "v"}}
	mutable := &corev1.ConfigMap{Data: map[string]string{"k": "v"}}
	replicaSet := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "config"}}, Containers: []corev1.Container{{Name: "nginx"}},
	}}}}
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "nginx"}}},
		Status: corev1.PodStatus{PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "nginx"}}},
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "k"}
	for _, step := range []struct {
		transform cache.TransformFunc
		in        any
	}{{slimDeployment, deployment}, {slimConfigMap, configMap}, {slimConfigMap, mutable}, {slimReplicaSet, replicaSet}, {slimPod, pod}, {slimPod, tombstone}} {
		if out, err := step.transform(step.in); err != nil || out == nil {
			t.Errorf("%T: %v, %v", step.in, out, err)
		}
	}
	if len(deployment.ManagedFields) != 1 || deployment.ManagedFields[0].Subresource != "scale" {
		t.Errorf("Deployment keeps %v", deployment.ManagedFields)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{ManagedFields: managed, Annotations: map[string]string{
		metadata.AnnotationLastDeclared: `{"spec":{}}`, "theirs": "{}",
	}}}
	for range 2 { // a second time changes nothing
		if _, err := slimChild(service); err != nil {
			t.Error(err)
		}
		if service.Annotations[metadata.AnnotationLastDeclared] != apply.Digest(`{"spec":{}}`) || service.Annotations["theirs"] != "{}" || service.ManagedFields != nil {
			t.Errorf("Service keeps %+v", service.ObjectMeta)
		}
	}
	if configMap.Data != nil || configMap.ManagedFields != nil || mutable.Data == nil {
		t.Error("ConfigMaps keep too much or too little")
	}
	if len(replicaSet.Spec.Template.Spec.Volumes) != 1 || replicaSet.Spec.Template.Spec.Containers != nil {
		t.Error("ReplicaSet keeps too much or too little")
	}
	if pod.Spec.Containers != nil || pod.Status.PodIP != "" || len(pod.Status.Conditions) != 1 || len(pod.Status.ContainerStatuses) != 1 {
		t.Error("Pod keeps too much or too little")
	}
}

// A reconcile that does not come back is found after the limit, and forgotten when it does.
func TestWatchdog(t *testing.T) {
	watchdog := NewWatchdog(20 * time.Millisecond)
	release, failed := make(chan struct{}), errors.New("failed")
	started, done := make(chan struct{}), make(chan error)
	watched := watchdog.Watch(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		close(started)
		<-release
		return reconcile.Result{}, failed
	}))
	if err := watchdog.Check(nil); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
	go func() {
		_, err := watched.Reconcile(context.Background(), reconcile.Request{})
		done <- err
	}()
	<-started
	time.Sleep(40 * time.Millisecond)
	if watchdog.Check(nil) == nil {
		t.Error("a stuck reconcile was not found")
	}
	close(release)
	if err := <-done; !errors.Is(err, failed) {
		t.Errorf("the error was lost: %v", err)
	}
	if err := watchdog.Check(nil); err != nil {
		t.Errorf("nothing runs any more: %v", err)
	}
}
