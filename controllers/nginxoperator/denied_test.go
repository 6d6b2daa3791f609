package nginxoperator

import (
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestDenialWithAnyCode verifies that the status reports a denied child as Forbidden, whatever the
// code of the denial, and that the change is applied once admission allows it.
func TestDenialWithAnyCode(t *testing.T) {
	for name, denial := range map[string]metav1.Status{
		"400": {Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest},
		"405": {Code: http.StatusMethodNotAllowed},
		"409": {Code: http.StatusConflict},
		"422": {Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid},
	} {
		for kind, isDenied := range map[string]func(client.Object) bool{
			"Service":    func(object client.Object) bool { _, is := object.(*corev1.Service); return is },
			"Deployment": func(object client.Object) bool { _, is := object.(*appsv1.Deployment); return is },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				p := newProcess(t)
				p.rollOut(podReady)
				p.refuse = func(object client.Object) error {
					if !isDenied(object) {
						return nil
					}
					denial.Message = `admission webhook "cost.example.com" denied the request: the annotation is required`
					return &apierrors.StatusError{ErrStatus: denial}
				}
				p.edit(func(s *v1alpha2.NginxOperatorSpec) {
					if kind == "Deployment" {
						s.ForceRedeploy = "x"
					}
					s.Service = &v1alpha2.Service{Annotations: map[string]string{"team": "shop"}}
				})
				object := p.object()
				for _, of := range []string{v1alpha2.ConditionReady, v1alpha2.ConditionDegraded} {
					if found := p.condition(of); found.Reason != v1alpha2.ReasonForbidden || !strings.Contains(found.Message, "cost.example.com") {
						t.Errorf("%s: %+v", of, found)
					}
				}
				if object.Status.ObservedGeneration != object.Generation {
					t.Errorf("observed %d of %d", object.Status.ObservedGeneration, object.Generation)
				}

				p.refuse = func(client.Object) error { return nil }
				p.reconcile()
				p.rollOut(podReady)
				if found := p.condition(v1alpha2.ConditionReady); found.Status != metav1.ConditionTrue ||
					read[corev1.Service](p, instance.Name).Annotations["team"] != "shop" {
					t.Errorf("%+v", found)
				}
			})
		}
	}
}
