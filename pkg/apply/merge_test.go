package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestThreeWay verifies the patch for the last declaration, the current declaration, and the stored
// object.
func TestThreeWay(t *testing.T) {
	same := func(*appsv1.Deployment) {}
	for name, test := range map[string]struct {
		declare func(*appsv1.Deployment)
		drift   func(*appsv1.Deployment)
		want    string
	}{
		"nothing differs": {same, same, "{}"},
		"defaults, status and what others set": {same, func(d *appsv1.Deployment) {
			d.Spec.RevisionHistoryLimit = ptr.To[int32](10)
			d.Status.Replicas = 2
			d.Labels["theirs"], d.Annotations["theirs"] = "1", "1"
			d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: "s"}}, d.Spec.Template.Spec.Containers...)
		}, "{}"},
		"a declared field drifted": {same, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](9) }, `{"spec":{"replicas":2}}`},
		"a declared field is gone": {same, func(d *appsv1.Deployment) { d.Labels = nil }, `{"metadata":{"labels":{"a":"1"}}}`},
		"another value is declared": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" }, same,
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"nginx"}],"containers":[{"image":"nginx:2","name":"nginx"}]}}}}`,
		},
		"a field is no longer declared": {
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, same,
			`{"spec":{"template":{"metadata":{"annotations":{"note":null}}}}}`,
		},
		"a field is no longer declared, and others set some beside it": {
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil },
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations["theirs"] = "1" },
			`{"spec":{"template":{"metadata":{"annotations":{"note":null}}}}}`,
		},
		"the record is gone": {
			same, func(d *appsv1.Deployment) { d.Annotations = nil; d.Spec.Replicas = ptr.To[int32](9) }, `{"spec":{"replicas":2}}`,
		},
		"the record is damaged": {
			same, func(d *appsv1.Deployment) { d.Annotations[annotation] = "{"; d.Spec.Replicas = ptr.To[int32](9) }, `{"spec":{"replicas":2}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := stored(t, deployment())
			test.drift(live)
			if patch := patchOf(t, live, deployment(test.declare)); patch != test.want {
				t.Errorf("patch %s, want %s", patch, test.want)
			}
		})
	}
}

// patchOf returns the patch that changes the stored object to the declared one, or "{}".
func patchOf(t *testing.T, live, child client.Object) string {
	t.Helper()
	declared, err := declaration(child)
	if err != nil {
		t.Fatal(err)
	}
	patch, _, err := difference(live, sanitizeRecord(live, live.GetAnnotations()[annotation]), declared)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSelectorsAreAtomic verifies that a patch removes undeclared selector keys, even if they were
// never declared. A selector with an additional key selects other Pods.
func TestSelectorsAreAtomic(t *testing.T) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"a": "1"}},
	}
	live := stored(t, service)
	live.Spec.Selector["b"] = "2"
	if got, want := patchOf(t, live, service), `{"spec":{"selector":{"b":null}}}`; got != want {
		t.Errorf("patch %s, want %s", got, want)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: service.ObjectMeta, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}},
	}}
	drifted := stored(t, policy)
	drifted.Spec.PodSelector.MatchLabels["b"] = "2"
	if got, want := patchOf(t, drifted, policy), `{"spec":{"podSelector":{"matchLabels":{"b":null}}}}`; got != want {
		t.Errorf("patch %s, want %s", got, want)
	}
}

// TestThreeWayOfKeptField verifies that the patch writes the default of a field that is no longer
// declared if the API server would retain the value. A field that was never declared is not
// written.
func TestThreeWayOfKeptField(t *testing.T) {
	plain := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	dual := plain.DeepCopy()
	dual.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	if got, want := patchOf(t, stored(t, dual), plain), `{"spec":{"ipFamilyPolicy":"SingleStack"}}`; got != want {
		t.Errorf("patch %s, want %s", got, want)
	}
	live := stored(t, plain)
	live.Spec.IPFamilyPolicy = dual.Spec.IPFamilyPolicy
	if patch := patchOf(t, live, plain); patch != "{}" {
		t.Errorf("want no patch of what was never declared, got %s", patch)
	}
}

// TestThreeWayOfReplacedField verifies that a field with the patch strategy "replace" is not
// written if it is unchanged.
func TestThreeWayOfReplacedField(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}}},
	}
	if patch := patchOf(t, stored(t, budget), budget); patch != "{}" {
		t.Errorf("want no patch, got %s", patch)
	}
	drifted := stored(t, budget)
	drifted.Spec.Selector.MatchLabels["a"] = "2"
	if patch := patchOf(t, drifted, budget); patch == "{}" {
		t.Error("want a patch, got none")
	}
}

// TestRecordOfImmutableObject verifies that the record of an immutable object omits its content,
// which can exceed the size of an annotation.
func TestRecordOfImmutableObject(t *testing.T) {
	configMap := &corev1.ConfigMap{Immutable: ptr.To(true), Data: map[string]string{"k": strings.Repeat("x", 1<<19)}}
	raw, err := declaration(configMap)
	if err != nil || len(raw) > 100 {
		t.Errorf("record of %d bytes, %v", len(raw), err)
	}
	configMap.Immutable = nil
	if raw, err = declaration(configMap); err != nil || len(raw) < 1<<19 {
		t.Errorf("record of %d bytes, %v", len(raw), err)
	}
}

// TestElementsOfOneKey verifies that two constraints with the same topology key, which differ in
// another field, are compared and written correctly.
func TestElementsOfOneKey(t *testing.T) {
	skews := func(hard, soft int32) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{MaxSkew: hard, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule},
				{MaxSkew: soft, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway},
			}
		}
	}
	spread := skews(1, 3)
	if patch := patchOf(t, stored(t, deployment(spread)), deployment(spread)); patch != "{}" {
		t.Errorf("want no patch, got %s", patch)
	}
	applier, counted := newApplier(interceptor.Funcs{})
	for _, change := range []func(*appsv1.Deployment){func(*appsv1.Deployment) {}, skews(1, 2), skews(1, 2), spread, spread} {
		applier.apply(t, deployment(change))
	}
	live := deployment()
	applier.read(t, live)
	if diff := cmp.Diff(deployment(spread).Spec.Template.Spec, live.Spec.Template.Spec); diff != "" || counted["patch Deployment"] != 2 {
		t.Errorf("writes %v, stored (-want +got):\n%s", counted, diff)
	}
}

// TestImmutableDataIsNotPatched verifies that immutable data is not part of a declaration. No patch
// has it, not even as null.
func TestImmutableDataIsNotPatched(t *testing.T) {
	revision := &appsv1.ControllerRevision{Revision: 3, Data: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}}
	live, next := stored(t, revision), revision.DeepCopy()
	next.Revision, next.Data = 4, runtime.RawExtension{Raw: []byte(`{"spec":{"paused":true}}`)}
	if patch := patchOf(t, live, next); patch != `{"revision":4}` {
		t.Errorf("patch %s", patch)
	}
	if patch := patchOf(t, live, revision); patch != "{}" {
		t.Errorf("patch of the same %s", patch)
	}
}
