package live

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestStale verifies that only children that belong to the object and are no longer needed are
// stale.
func TestStale(t *testing.T) {
	object := fixture.NewObject()
	object.Status.StoredRevision = &v1alpha2.StoredRevision{Name: "web-good"}
	named := func(child client.Object, name string) client.Object {
		child.SetName(name)
		child.SetOwnerReferences([]metav1.OwnerReference{{Name: object.Name, UID: object.UID, Controller: ptr.To(true)}})
		return child
	}
	foreign := named(&corev1.ConfigMap{}, "web-foreign")
	foreign.SetOwnerReferences(nil)
	ending := named(&corev1.ConfigMap{}, "web-ending")
	ending.SetDeletionTimestamp(ptr.To(metav1.Now()))
	existing := []client.Object{
		named(&policyv1.PodDisruptionBudget{}, "web"), foreign, ending, named(&corev1.ConfigMap{}, "web-mounted"),
		named(&corev1.ConfigMap{}, "web-old"), named(&corev1.ConfigMap{}, "web-new"),
		named(&appsv1.ControllerRevision{}, "web-good"), named(&appsv1.ControllerRevision{}, "web-old"),
		named(&appsv1.ControllerRevision{}, "web-new"),
	}
	replicaSet := &appsv1.ReplicaSet{}
	replicaSet.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web-mounted"}},
	}}}

	before := named(&appsv1.Deployment{}, "web")
	before.SetLabels(map[string]string{wellknown.LabelRecord: "abc"})
	for name, test := range map[string]struct {
		deployment client.Object
		declared   []client.Object
		want       []string
	}{
		"no PodDisruptionBudget": {
			named(&appsv1.Deployment{}, "web"),
			[]client.Object{named(&corev1.ConfigMap{}, "web-new")},
			[]string{"PodDisruptionBudget web", "ConfigMap web-old", "ControllerRevision web-old", "ControllerRevision web-new"},
		},
		"a release before 0.8.0 wrote the Deployment last": {
			before,
			[]client.Object{named(&corev1.ConfigMap{}, "web-new"), named(&policyv1.PodDisruptionBudget{}, "web")},
			[]string{"ConfigMap web-old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stale, err := State{object: object, objects: append(existing, replicaSet, test.deployment)}.Stale(test.declared, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, child := range stale {
				got = append(got, operand.KindOf(child)+" "+child.GetName())
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
