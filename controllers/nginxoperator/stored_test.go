package nginxoperator

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// stored returns the ControllerRevisions of the object.
func (p *process) stored() []appsv1.ControllerRevision {
	p.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := p.List(p.Context(), list); err != nil {
		p.Fatal(err)
	}
	return list.Items
}

// TestStoredWhileAChangeRollsOut verifies that the children in effect are stored in a
// ControllerRevision before the Pods are replaced, which is deleted when the new Pods are good.
func TestStoredWhileAChangeRollsOut(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	if found := p.stored(); len(found) > 0 {
		t.Errorf("%d are stored of a spec that is applied", len(found))
	}
	p.edit(withImage("nginx:other"))
	p.rollOut(podPulling)
	found, status := p.stored(), p.status()
	if len(found) != 1 || status.StoredRevision == nil || status.StoredRevision.Name != found[0].Name ||
		!strings.Contains(string(found[0].Data.Raw), fixture.Image) || strings.Contains(string(found[0].Data.Raw), "nginx:other") {
		t.Errorf("stored %v, status %+v", found, status.StoredRevision)
	}
	p.rollOut(podReady)
	if found, status := p.stored(), p.status(); len(found) > 0 || status.StoredRevision != nil || p.image() != "nginx:other" {
		t.Errorf("stored %v, status %+v, image %s", found, status.StoredRevision, p.image())
	}
}

// TestStoredIsLost verifies that a failed change is rolled back to the Pods of an older ReplicaSet
// if a tenant has deleted the stored children. If the Pods of that ReplicaSet are not those in the
// status, the running Pods stay.
func TestStoredIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.ReplicaSet)
		image  string
	}{
		"a ReplicaSet has it": {func(*appsv1.ReplicaSet) {}, fixture.Image},
		"a tenant has changed it": {func(set *appsv1.ReplicaSet) {
			key := wellknown.AnnotationLastDeclared
			set.Annotations[key] = strings.ReplaceAll(set.Annotations[key], fixture.Image, "theirs")
		}, "nginx:other"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t)
			p.rollOut(podReady)
			p.edit(withImage("nginx:other"))
			if err := p.DeleteAllOf(t.Context(), &appsv1.ControllerRevision{}, client.InNamespace(instance.Namespace)); err != nil {
				t.Fatal(err)
			}
			sets := &appsv1.ReplicaSetList{}
			if err := p.List(t.Context(), sets); err != nil || len(sets.Items) != 1 {
				t.Fatal(sets.Items, err)
			}
			test.change(&sets.Items[0])
			if err := p.Update(t.Context(), &sets.Items[0]); err != nil {
				t.Fatal(err)
			}
			p.rollOut(podCrashing)
			degraded := p.condition(v1alpha2.ConditionDegraded)
			if p.image() != test.image || degraded.Status != metav1.ConditionTrue || degraded.Reason != v1alpha2.ReasonRolledBack {
				t.Errorf("image %s, %+v", p.image(), degraded)
			}
			if isSaid := strings.Contains(degraded.Message, "not stored"); isSaid != (test.image != fixture.Image) {
				t.Error(degraded.Message)
			}
		})
	}
}

// TestNothingToStore verifies that a change is rolled out although a tenant has removed all
// annotations with the last declaration. The entrance does not change before the Pods are good.
func TestNothingToStore(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	without := p.deployment()
	delete(without.Annotations, wellknown.AnnotationLastDeclared)
	sets := &appsv1.ReplicaSetList{}
	if err := errors.Join(p.Update(t.Context(), without), p.List(t.Context(), sets)); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		delete(sets.Items[i].Annotations, wellknown.AnnotationLastDeclared)
		if err := p.Update(t.Context(), &sets.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	p.edit(func(s *v1alpha2.NginxOperatorSpec) {
		s.Image, s.Service = "nginx:other", &v1alpha2.Service{Annotations: map[string]string{"example.com/a": "b"}}
	})
	service := func() string { return read[corev1.Service](p, instance.Name).Annotations["example.com/a"] }
	if p.image() != "nginx:other" || service() != "" || len(p.stored()) != 0 {
		t.Errorf("image %s, entrance %q, stored %v", p.image(), service(), p.stored())
	}
	p.rollOut(podReady)
	if p.rollOut(podReady); service() != "b" {
		t.Errorf("entrance %q of good Pods", service())
	}
}

// TestStoreIsRefused verifies that a change waits, and is retried with back-off, while the children
// in effect cannot be stored.
func TestStoreIsRefused(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	p.refuse = exceedsQuota[*appsv1.ControllerRevision]
	p.edit(withImage("nginx:other"))
	degraded := p.condition(v1alpha2.ConditionDegraded)
	if degraded.Reason != v1alpha2.ReasonQuotaExceeded || p.image() != fixture.Image {
		t.Errorf("image %s, %+v", p.image(), degraded)
	}
	p.refuse = func(client.Object) error { return nil }
	if p.reconcile(); p.image() != "nginx:other" {
		t.Errorf("image %s", p.image())
	}
}

// TestInterimPortIsRefused verifies that a refused Service with temporary port names is retried
// with back-off.
func TestInterimPortIsRefused(t *testing.T) {
	p := newProcess(t)
	p.edit(func(spec *v1alpha2.NginxOperatorSpec) {
		spec.Ports = []v1alpha2.Port{{Name: "a", Port: 8080}, {Name: "b", Port: 8081}}
	})
	p.rollOut(podReady)
	p.refuse = exceedsQuota[*corev1.Service]
	p.edit(func(spec *v1alpha2.NginxOperatorSpec) {
		spec.Ports = []v1alpha2.Port{{Name: "b", Port: 8080}, {Name: "a", Port: 8081}}
	})
	degraded := p.condition(v1alpha2.ConditionDegraded)
	if degraded.Reason != v1alpha2.ReasonQuotaExceeded {
		t.Errorf("%+v", degraded)
	}
}
