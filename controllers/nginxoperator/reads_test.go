package nginxoperator

import (
	"context"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// readCounter counts the reads of the cache, and the creations, by Go type.
type readCounter struct {
	client.Client
	reads, created map[string]int
}

func (c *readCounter) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.reads[fmt.Sprintf("%T", object)]++
	return c.Client.Get(ctx, key, object, options...)
}

func (c *readCounter) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.reads[fmt.Sprintf("%T", list)]++
	return c.Client.List(ctx, list, options...)
}

func (c *readCounter) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.created[fmt.Sprintf("%T", object)]++
	return c.Client.Create(ctx, object, options...)
}

// TestReadsOfReconcile verifies that a reconcile reads each kind once from the cache, whatever it
// decides, except for a kind that is not served. Before it creates a child of a listed kind, it
// reads this child: lists do not wait until the cache has the operator's own writes.
func TestReadsOfReconcile(t *testing.T) {
	for name, change := range map[string]func(*v1alpha2.NginxOperatorSpec){
		"nothing":      func(*v1alpha2.NginxOperatorSpec) {},
		"other Pods":   withImage("nginx:next"),
		"another size": func(s *v1alpha2.NginxOperatorSpec) { s.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 3} },
		"a stale child": func(s *v1alpha2.NginxOperatorSpec) {
			s.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone}
		},
		"a paused spec":  func(s *v1alpha2.NginxOperatorSpec) { s.Image, s.Paused = "nginx:other", true },
		"a blocked spec": func(s *v1alpha2.NginxOperatorSpec) { s.Config = missingConfig },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t)
			p.rollOut(podReady)
			object := p.object()
			change(&object.Spec)
			object.Generation++
			p.reconciler.Missing = map[string]string{"PodMonitor": "not installed"}
			counted := &readCounter{p, map[string]int{}, map[string]int{}}
			p.reconciler.Client, p.reconciler.Applier.Client = counted, counted
			if _, err := p.reconciler.Reconcile(t.Context(), object); err != nil {
				t.Fatal(err)
			}

			want := map[string]int{
				"*v1.Deployment": 1, "*v1.Service": 1, "*v1.NetworkPolicy": 1, "*v1.Ingress": 1, "*v2.HorizontalPodAutoscaler": 1,
				"*v1.HTTPRoute": 1, "*v1.PrometheusRule": 1, "*v1.ControllerRevisionList": 1,
				"*v1.EndpointSliceList": 1, "*v1.ConfigMapList": 1, "*v1.PodDisruptionBudgetList": 1, "*v1.ReplicaSetList": 1,
				"*v1.PodList": 1,
			}
			for kind, number := range counted.created {
				if want[kind+"List"] > 0 {
					want[kind] = number
				}
			}
			if diff := gocmp.Diff(want, counted.reads); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// missingConfig references a ConfigMap that does not exist.
var missingConfig = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "missing"}}

// TestStatusWithoutDeletedChild verifies that the status of the reconcile that deletes the Ingress
// has no address of it.
func TestStatusWithoutDeletedChild(t *testing.T) {
	p := newProcess(t, fixture.Exposed(v1alpha2.IngressHost{Host: "shop.example.com"}))
	ingress := read[networkingv1.Ingress](p, "web")
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.7"}}
	if err := p.Status().Update(t.Context(), ingress); err != nil {
		t.Fatal(err)
	}
	p.reconcile()
	if got := p.status().Addresses; len(got) != 1 {
		t.Errorf("addresses %v of the Ingress", got)
	}
	p.edit(func(s *v1alpha2.NginxOperatorSpec) { s.Expose = nil })
	if got := p.status().Addresses; len(got) != 0 {
		t.Errorf("addresses %v without an Ingress", got)
	}
}
