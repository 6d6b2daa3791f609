package operand

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
)

// TestStale verifies that only children that belong to the object and are no longer needed are
// stale.
func TestStale(t *testing.T) {
	object := fixture.NewObject()
	object.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: "web-good"}
	object.Status.FailedRevisions = []v1alpha2.FailedRevision{{Revision: "web-failed"}}
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
		named(&appsv1.ControllerRevision{}, "web-new"), named(&appsv1.ControllerRevision{}, "web-failed"),
	}
	replicaSets := []appsv1.ReplicaSet{{}}
	replicaSets[0].Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web-mounted"}},
	}}}

	for name, test := range map[string]struct {
		declared []client.Object
		want     []string
	}{
		"a record is declared": {
			[]client.Object{named(&corev1.ConfigMap{}, "web-new"), named(&appsv1.ControllerRevision{}, "web-new")},
			[]string{"*v1.PodDisruptionBudget web", "*v1.ConfigMap web-old", "*v1.ControllerRevision web-old"},
		},
		"no record is declared": {
			[]client.Object{named(&corev1.ConfigMap{}, "web-new"), named(&policyv1.PodDisruptionBudget{}, "web")},
			[]string{"*v1.ConfigMap web-old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, child := range Stale(object, test.declared, existing, replicaSets) {
				got = append(got, keyOfChild(child).kind.String()+" "+child.GetName())
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNewOfEachKind verifies that New supports each kind of child, and no other kind.
func TestNewOfEachKind(t *testing.T) {
	object := fullObject()
	for _, child := range Desired(object, newInputs(t, object, object.Spec.Config.Inline, false)) {
		kind := child.GetObjectKind().GroupVersionKind().Kind
		if got := New(kind); got == nil || keyOfChild(got).kind != keyOfChild(child).kind {
			t.Errorf("New(%q) returns %T", kind, got)
		}
	}
	for _, kind := range DispensableKinds() {
		if New(kind) == nil {
			t.Errorf("New(%q) returns nil", kind)
		}
	}
	if New("Secret") != nil {
		t.Error("a Secret is a child")
	}
}
