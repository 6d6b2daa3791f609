package simulation

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// refuseIngresses makes a quota reject every Ingress.
func refuseIngresses(w *world.World) {
	of := storage.Ingresses
	w.Faults.Refuse = map[*storage.Resource]error{
		of: apierrors.NewForbidden(of.GroupResource(), "", errors.New("exceeded quota: q, requested: count/ingresses.networking.k8s.io=1")),
	}
}

// expose requests an Ingress.
func expose(object *v1alpha2.NginxOperator) {
	object.Spec.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: "www.example.com"}}}}
}

func configuredBy(name string) func(*v1alpha2.NginxOperator) {
	return func(object *v1alpha2.NginxOperator) {
		object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: name, Key: "nginx.conf"}}
	}
}

// TestRow1aMissingConfigMapKeepsPods reproduces row 1a: while an Ingress is refused, a missing
// ConfigMap does not change the Pods.
func TestRow1aMissingConfigMapKeepsPods(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.Must(w.Write(world.ConfigMap("old", "nginx.conf", "server { listen 8080; return 200; }")))
		w.Must(w.Write(world.ConfigMap("new", "nginx.conf", "server { listen 8080; return 204; }")))
		instance := newInstance("web")
		configuredBy("old")(instance)
		serve(t, w, instance)
		refuseIngresses(w)
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) {
			expose(object)
			configuredBy("new")(object)
		}))
		w.Run(2 * time.Minute)
		before := w.Deployment("web").Spec.Template
		w.Remove(storage.ConfigMaps, "new")
		w.Run(2 * time.Minute)
		if after := w.Deployment("web").Spec.Template; after.String() != before.String() {
			t.Errorf("the Pod template changed:\nfrom %s\nto   %s", before.String(), after.String())
		}
	})
}

// TestRow1bRollsBackWhileAnIngressIsRefused reproduces row 1b: while an Ingress is refused, a
// failed rollout is rolled back.
func TestRow1bRollsBackWhileAnIngressIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		refuseIngresses(w)
		const bad = "registry.example/missing:1"
		w.Kube.Faults.Unpullable = map[string]string{bad: "manifest unknown"}
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) {
			expose(object)
			object.Spec.Image = bad
		}))
		rolledBack := func() bool { return w.Deployment("web").Spec.Template.Spec.Containers[0].Image == release.Image }
		w.Run(time.Minute)
		if !w.Until(10*time.Minute, rolledBack) {
			t.Error("the Deployment still has the image that cannot be pulled")
		}
	})
}

// TestRow1cRemovesTheAutoscalerWhileAnIngressIsRefused reproduces row 1c: while an Ingress is
// refused, stale children are removed.
func TestRow1cRemovesTheAutoscalerWhileAnIngressIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		instance := newInstance("web")
		instance.Spec.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 3}
		serve(t, w, instance)
		refuseIngresses(w)
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) {
			expose(object)
			object.Spec.Autoscaling = nil
		}))
		w.Run(5 * time.Minute)
		for _, problem := range check.Stale(w.State()) {
			t.Error(problem)
		}
	})
}

// TestRow2KeepsAChangeThatTouchesNoPod reproduces row 2: a crashing Pod does not roll back a change
// that affects no Pod.
func TestRow2KeepsAChangeThatTouchesNoPod(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		sick := world.List[corev1.Pod](w, storage.Pods)[0].Name
		w.Kube.Faults.Crashes = func(pod *corev1.Pod) bool { return pod.Name == sick }
		w.Kube.Changed()
		w.Run(time.Minute)
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) {
			object.Spec.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/a": "b"}}
		}))
		w.Run(5 * time.Minute)
		service, _ := world.Get[corev1.Service](w, storage.Services, "web")
		if service.Annotations["example.com/a"] != "b" {
			t.Errorf("the annotation is gone; status %+v", w.Instance("web").Status.BlockedBy)
		}
	})
}

// TestRow16OlderViewWritesNothingOlder reproduces row 16: a process that starts on an older view
// does not revert a Service to an earlier declaration.
func TestRow16OlderViewWritesNothingOlder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		w.Run(time.Minute)
		before := w.Store.Revision()
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) {
			object.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 8081}}
		}))
		w.Run(time.Second)
		ready(t, w, "web")
		w.Run(time.Minute)
		restarted := w.Store.Revision()
		w.Restart(before)
		w.Run(5 * time.Minute)
		for _, version := range w.Store.Since(restarted) {
			if version.Resource == storage.Services {
				service := &corev1.Service{}
				version.As(service)
				numbers := []int32{}
				for _, port := range service.Spec.Ports {
					numbers = append(numbers, port.Port)
				}
				if !slices.Equal(numbers, []int32{8081}) {
					t.Errorf("the Service was written with the ports %v", numbers)
				}
			}
		}
	})
}

// TestRow17ReplicasReturnAfterAutoscaling reproduces row 17: the number of Pods depends on the
// spec, and not on earlier specs.
func TestRow17ReplicasReturnAfterAutoscaling(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) {
			object.Spec.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To[int32](1), MaxReplicas: 1}
		}))
		w.Run(5 * time.Minute)
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.Autoscaling = nil }))
		w.Run(5 * time.Minute)
		for _, problem := range check.Replicas(w.State()) {
			t.Error(problem)
		}
		if w.Store.Get(storage.Key{Resource: storage.PodDisruptionBudgets, Namespace: world.Namespace, Name: "web"}) == nil {
			t.Error("there is no PodDisruptionBudget")
		}
	})
}
