package conversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func owns(manager string, operation metav1.ManagedFieldsOperationType, version, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "operator.example.com/" + version,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

// TestRemoveDropped verifies which fields are removed. In each case, the API server has restored
// all fields that the applier dropped.
func TestRemoveDropped(t *testing.T) {
	const (
		apply, update  = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
		v1, v2         = "v1alpha1", "v1alpha2"
		replicas       = `{"f:spec":{"f:replicas":{}}}`
		portField      = `{"f:spec":{"f:port":{},"f:replicas":{}}}`
		pausedReplicas = `{"f:spec":{"f:paused":{},"f:replicas":{}}}`
		webPort        = `{"f:spec":{"f:ports":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:port":{}}},"f:replicas":{}}}`
		twoPorts       = `{"f:spec":{"f:ports":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:port":{}},` +
			`"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:port":{}}},"f:replicas":{}}}`
		limits = `{"f:spec":{"f:resources":{"f:limits":{"f:cpu":{},"f:memory":{}}},"f:replicas":{}}}`
		cpu    = `{"f:spec":{"f:resources":{"f:limits":{"f:cpu":{}}},"f:replicas":{}}}`
		atomic = `{"f:spec":{"f:podTemplate":{"f:tolerations":{}},"f:replicas":{}}}`
	)
	type entries = []metav1.ManagedFieldsEntry
	type spec = v1alpha2.NginxOperatorSpec
	web, b := v1alpha2.Port{Name: "web", Port: 80, Protocol: "TCP"}, v1alpha2.Port{Name: "b", Port: 81, Protocol: "TCP"}
	one := ptr.To[int32](1)
	limitsOf := func(limits corev1.ResourceList) spec {
		return spec{Resources: &corev1.ResourceRequirements{Limits: limits}, Replicas: one}
	}
	both := limitsOf(corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")})
	bare, paused := spec{Replicas: one}, spec{Paused: true, Replicas: one}
	webOnly := spec{Ports: []v1alpha2.Port{web}, Replicas: one}
	webAndB := spec{Ports: []v1alpha2.Port{web, b}, Replicas: one}
	creator, portCreator := owns("creator", update, v1, replicas), owns("creator", update, v1, portField)
	appliedPaused := owns("a", apply, v2, pausedReplicas)
	appliedReplicas, appliedPorts := owns("a", apply, v2, replicas), owns("a", apply, v2, twoPorts)
	tolerations := &v1alpha2.PodTemplate{Tolerations: []corev1.Toleration{{Key: "a"}}}

	for name, test := range map[string]struct {
		before, now  entries
		stored, want spec
		// merged is the API server's merge, or the stored spec if it is nil.
		merged *spec
	}{
		"a field": {
			before: entries{creator, appliedPaused}, now: entries{creator, appliedReplicas},
			stored: paused, want: bare,
		},
		"a field that another applier owns": {
			before: entries{appliedPaused, owns("b", apply, v2, pausedReplicas)},
			now:    entries{appliedReplicas, owns("b", apply, v2, pausedReplicas)},
			stored: paused, want: paused,
		},
		"a field that an update took over": {
			before: entries{appliedPaused},
			now:    entries{appliedReplicas, owns("b", update, v2, `{"f:spec":{"f:paused":{}}}`)},
			stored: paused, want: paused,
		},
		"replicas that a v1alpha1 manager owns": {
			before: entries{creator, appliedPaused},
			now:    entries{creator, owns("a", apply, v2, `{"f:spec":{"f:paused":{}}}`)},
			stored: paused, want: paused,
		},
		"an item of a list": {
			before: entries{creator, appliedPorts}, now: entries{creator, owns("a", apply, v2, webPort)},
			stored: webAndB, want: webOnly,
		},
		"all items of a list": {
			before: entries{creator, appliedPorts}, now: entries{creator, appliedReplicas},
			stored: webAndB, want: bare,
		},
		"all ports, of which the number alone came back": {
			before: entries{creator, appliedPorts}, now: entries{creator, appliedReplicas},
			stored: webAndB, want: bare, merged: &spec{Ports: []v1alpha2.Port{onlyPort(80)}, Replicas: one},
		},
		"the number of the first port is a v1alpha1 manager's": {
			before: entries{portCreator, appliedPorts}, now: entries{portCreator, appliedReplicas},
			stored: webAndB, want: webOnly,
		},
		"an applier that changes from v1alpha1 to v1alpha2 and names its port": {
			before: entries{owns("a", apply, v1, portField)}, now: entries{owns("a", apply, v2, webPort)},
			stored: spec{Ports: []v1alpha2.Port{onlyPort(80)}, Replicas: one}, want: webOnly,
			merged: &spec{Ports: []v1alpha2.Port{onlyPort(80), web}, Replicas: one},
		},
		"one of two values in a structure": {
			before: entries{creator, owns("a", apply, v2, limits)}, now: entries{creator, owns("a", apply, v2, cpu)},
			stored: both, want: limitsOf(corev1.ResourceList{"cpu": resource.MustParse("1")}),
		},
		"all of a structure": {
			before: entries{creator, owns("a", apply, v2, limits)}, now: entries{creator, appliedReplicas},
			stored: both, want: bare,
		},
		"an atomic list": {
			before: entries{creator, owns("a", apply, v2, atomic)}, now: entries{creator, appliedReplicas},
			stored: spec{PodTemplate: tolerations, Replicas: one}, want: bare,
		},
		"nothing, where somebody resets all managers": {
			before: entries{appliedPaused}, now: entries{owns("b", update, v2, `{"f:metadata":{}}`)},
			stored: paused, want: paused,
		},
		"nothing, where an applier at v1alpha1 drops something": {
			before: entries{owns("a", apply, v1, portField)}, now: entries{owns("a", apply, v1, replicas)},
			stored: webOnly, want: webOnly,
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.before}, Spec: test.stored}
			object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.now}, Spec: *test.stored.DeepCopy()}
			if test.merged != nil {
				object.Spec = *test.merged
			}
			if err := RemoveDropped(old, object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, object.Spec); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestRemoveDroppedNeedsReadableFields(t *testing.T) {
	object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		owns("a", metav1.ManagedFieldsOperationApply, v1alpha2.GroupVersion.Version, "{"),
	}}}
	if err := RemoveDropped(&v1alpha2.NginxOperator{}, object); err == nil {
		t.Error("no error")
	}
}

func TestLosesPort(t *testing.T) {
	const (
		apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
		v1, v2        = "v1alpha1", "v1alpha2"
		portField     = `{"f:spec":{"f:port":{}}}`
		replicas      = `{"f:spec":{"f:replicas":{}}}`
		web           = `{"f:spec":{"f:ports":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:port":{}}}}}`
		http          = `{"f:spec":{"f:ports":{"k:{\"name\":\"http\"}":{".":{},"f:name":{},"f:port":{}}}}}`
	)
	for name, test := range map[string]struct {
		before, now metav1.ManagedFieldsEntry
		want        bool
	}{
		"a port with a name":         {owns("a", apply, v2, web), owns("a", apply, v1, portField), true},
		"the port that v1alpha1 has": {owns("a", apply, v2, http), owns("a", apply, v1, portField), false},
		"no port at v1alpha1":        {owns("a", apply, v2, web), owns("a", apply, v1, replicas), false},
		"no port at v1alpha2":        {owns("a", apply, v2, replicas), owns("a", apply, v1, portField), false},
		"another applier":            {owns("a", apply, v2, web), owns("b", apply, v1, portField), false},
		"an update":                  {owns("a", update, v2, web), owns("a", update, v1, portField), false},
		"the same version":           {owns("a", apply, v1, portField), owns("a", apply, v1, portField), false},
		"fields that cannot be read": {owns("a", apply, v2, "{"), owns("a", apply, v1, portField), false},
	} {
		t.Run(name, func(t *testing.T) {
			manager, found := LosesPort([]metav1.ManagedFieldsEntry{test.before}, []metav1.ManagedFieldsEntry{test.now})
			if found != test.want || found && manager != "a" {
				t.Errorf("%q, %t", manager, found)
			}
		})
	}
}
