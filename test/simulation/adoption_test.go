package simulation

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// controllers returns the UIDs of the controllers of the children that the operator has created, by
// kind and name.
func controllers(w *world.World) map[string]string {
	out := map[string]string{}
	for _, child := range w.State().Children {
		owner := ""
		if controller := metav1.GetControllerOf(child); controller != nil {
			owner = string(controller.UID)
		}
		if child.GetLabels()["app.kubernetes.io/managed-by"] == "nginx-operator" {
			out[child.GetKind()+" "+child.GetName()] = owner
		}
	}
	return out
}

// orphan deletes an instance like kubectl delete --cascade=orphan. The API server marks the object
// as deleted. The garbage collector removes the owner references from one child after the other,
// and then the finalizer.
func orphan(w *world.World, name string) {
	instance := w.Instance(name)
	instance.Finalizers = []string{metav1.FinalizerOrphanDependents}
	w.Must(w.Write(instance))
	w.Remove(storage.NginxOperators, name)
	for _, of := range []*storage.Resource{
		storage.ConfigMaps, storage.Services, storage.NetworkPolicies, storage.Deployments, storage.PodDisruptionBudgets,
		storage.Autoscalers, storage.Ingresses, storage.ControllerRevisions,
	} {
		for _, found := range w.Store.List(of, world.Namespace) {
			child := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(found.Object)}
			if owner := metav1.GetControllerOf(child); owner == nil || owner.UID != instance.UID {
				continue
			}
			child.SetOwnerReferences(nil)
			_, err := w.Store.Update(found.Key, child.Object, "")
			w.Must(err)
			w.Run(time.Second)
		}
	}
	last := w.Instance(name)
	last.Finalizers = nil
	w.Must(w.Write(last))
}

func podNames(w *world.World) (out []string) {
	for _, pod := range w.State().Pods {
		out = append(out, pod.Name)
	}
	return out
}

// TestOrphansAreAdopted verifies that an instance whose children lost their owner references takes
// all of them back, and replaces no Pod. The number of Pods is that of the autoscaler, and the
// ConfigMaps have a suffix, because one of them was forged before. The operator adopts nothing for
// an object that is being deleted, even if it learns of the deletion late.
func TestOrphansAreAdopted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.Must(w.Write(world.ConfigMap("pages", "index.html", "first")))
		declare := func(s *v1alpha2.NginxOperatorSpec) {
			s.Replicas = nil
			s.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: 5}
			s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
			s.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: "www.example.com"}}}}
		}
		settle := func() {
			t.Helper()
			if !w.Until(5*time.Minute, func() bool { return len(check.Settled(w.State())) == 0 }) {
				t.Fatal(strings.Join(check.Settled(w.State()), "\n"))
			}
			w.Run(5 * time.Minute)
		}
		serve(t, w, "web", declare)
		forge(w, w.Deployment("web").Spec.Template.Spec.Volumes)
		settle()
		scaled := w.Deployment("web")
		scaled.Spec.Replicas = ptr.To[int32](4)
		w.Must(w.Write(scaled))
		settle()
		before, pods, children := w.Deployment("web"), podNames(w), slices.Sorted(maps.Keys(controllers(w)))
		if len(pods) != 4 || before.Annotations["operator.example.com/content"] == "" {
			t.Fatalf("the Pods are %v, and the annotations %v", pods, before.Annotations)
		}

		w.Faults.Lag = map[*storage.Resource]time.Duration{storage.NginxOperators: time.Minute}
		orphan(w, "web")
		w.Faults.Lag = nil
		w.Run(2 * time.Minute)
		for child, owner := range controllers(w) {
			if owner != "" {
				t.Errorf("%s was adopted for a deleted object", child)
			}
		}

		instance := &v1alpha2.NginxOperator{ObjectMeta: world.Meta("web")}
		declare(&instance.Spec)
		w.Must(w.Write(instance))
		settle()
		owners := controllers(w)
		if diff := cmp.Diff(children, slices.Sorted(maps.Keys(owners))); diff != "" {
			t.Errorf("children (-before +after):\n%s", diff)
		}
		for child, owner := range owners {
			if owner != string(w.Instance("web").UID) {
				t.Errorf("%s is controlled by %q", child, owner)
			}
		}
		if diff := cmp.Diff(before.Spec, w.Deployment("web").Spec); diff != "" {
			t.Errorf("Deployment (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(pods, podNames(w)); diff != "" {
			t.Errorf("Pods (-before +after):\n%s", diff)
		}
		if len(w.Problems) > 0 {
			t.Error(strings.Join(w.Problems, "\n"))
		}
	})
}

// forge replaces the ConfigMap of the first volume by one with other data, but with the same name,
// labels, and owner.
func forge(w *world.World, volumes []corev1.Volume) {
	at := slices.IndexFunc(volumes, func(one corev1.Volume) bool { return one.ConfigMap != nil })
	forged, _ := world.Get[corev1.ConfigMap](w, storage.ConfigMaps, volumes[at].ConfigMap.Name)
	w.Remove(storage.ConfigMaps, forged.Name)
	forged.ResourceVersion, forged.Data = "", map[string]string{"nginx.conf": "forged"}
	w.Must(w.Write(forged))
}

// TestTakenNames verifies that the status names all taken names at once, that nothing changes while
// one of them is taken, and that no Service is created before the name of the Deployment is free.
// If a user deletes the objects in any order, there is never a Service that selects nothing, and a
// foreign Service never selects the operator's Pods.
func TestTakenNames(t *testing.T) {
	theirs := map[string]string{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "web", "app.kubernetes.io/name": "nginx"}
	deployment := &appsv1.Deployment{ObjectMeta: world.Meta("web"), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: theirs},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: theirs},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "registry.example/nginx:1"}}},
		},
	}}
	deployment.Labels = theirs
	service := &corev1.Service{ObjectMeta: world.Meta("web"), Spec: corev1.ServiceSpec{
		Selector: theirs, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
	service.Labels = theirs
	for name, order := range map[string][]*storage.Resource{
		"the Service first":    {storage.Services, storage.Deployments},
		"the Deployment first": {storage.Deployments, storage.Services},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world.World) {
				w.Must(w.Write(deployment))
				w.Must(w.Write(service))
				w.Must(w.Write(&v1alpha2.NginxOperator{ObjectMeta: world.Meta("web")}))
				w.Run(time.Minute)
				blocked := w.Instance("web").Status.BlockedBy
				if len(blocked) != 1 || blocked[0].Reason != v1alpha2.ReasonNameConflict ||
					!strings.Contains(blocked[0].Message, `Service "web"`) || !strings.Contains(blocked[0].Message, `Deployment "web"`) {
					t.Errorf("status.blockedBy does not name both objects: %+v", blocked)
				}

				w.Remove(order[0], "web")
				w.Run(2 * time.Minute)
				for _, of := range []*storage.Resource{storage.Services, storage.Deployments} {
					found := w.Store.Get(storage.Key{Resource: of, Namespace: world.Namespace, Name: "web"})
					if (found == nil) != (of == order[0]) || found != nil && found.Meta().GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
						t.Errorf("while a name is taken: %s %+v", of.Name(), found)
					}
				}

				w.Remove(order[1], "web")
				if !w.Until(5*time.Minute, func() bool { return len(check.Settled(w.State())) == 0 }) {
					t.Error(strings.Join(check.Settled(w.State()), "\n"))
				}
				if len(w.Problems) > 0 {
					t.Error(strings.Join(w.Problems, "\n"))
				}
			})
		})
	}
}

// TestTakenNameOfThePolicy verifies that a new instance gets no Service and no Pods while the name
// of its NetworkPolicy is taken.
func TestTakenNameOfThePolicy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.Must(w.Write(&networkingv1.NetworkPolicy{ObjectMeta: world.Meta("web")}))
		w.Must(w.Write(&v1alpha2.NginxOperator{ObjectMeta: world.Meta("web")}))
		w.Run(2 * time.Minute)
		if blocked := w.Instance("web").Status.BlockedBy; len(blocked) != 1 || !strings.Contains(blocked[0].Message, `NetworkPolicy "web"`) {
			t.Errorf("status.blockedBy is %+v", blocked)
		}
		for child := range controllers(w) {
			if !strings.HasPrefix(child, "ConfigMap ") {
				t.Errorf("%s was created", child)
			}
		}
		w.Remove(storage.NetworkPolicies, "web")
		if !w.Until(5*time.Minute, func() bool { return len(check.Settled(w.State())) == 0 }) {
			t.Error(strings.Join(check.Settled(w.State()), "\n"))
		}
	})
}
