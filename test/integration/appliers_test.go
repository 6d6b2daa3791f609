package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// apply applies a manifest like kubectl apply --server-side.
func apply(t *testing.T, manager string, object *unstructured.Unstructured, options ...client.PatchOption) error {
	t.Helper()
	raw := must1(json.Marshal(object))(t)
	return suite.admin.Patch(t.Context(), object, client.RawPatch(types.ApplyPatchType, raw), append(options, client.FieldOwner(manager))...)
}

func mustApply(t *testing.T, manager string, object *unstructured.Unstructured, options ...client.PatchOption) {
	t.Helper()
	must(t, apply(t, manager, object, options...))
}

// TestAppliersInBothVersions verifies that the applier that sets a field owns it, in whatever
// version the applier writes.
func TestAppliersInBothVersions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	spec := func() v1alpha2.NginxOperatorSpec { return readV1alpha2(t, namespace, "web").Spec }
	mustApply(t, "old", specManifest(t, "v1alpha1", namespace, "web", "{port: 8000, forceRedeploy: now}"))
	mustApply(t, "new", specManifest(t, "v1alpha2", namespace, "web", "{drainSeconds: 60, replicas: 2}"))
	want := v1alpha2.NginxOperatorSpec{
		Replicas: ptr.To[int32](2), ForceRedeploy: "now", DrainSeconds: ptr.To[int32](60),
		Ports: []v1alpha2.Port{{Name: "http", Port: 8000, Protocol: corev1.ProtocolTCP}},
	}
	if diff := cmp.Diff(want, spec()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for name, object := range map[string]*unstructured.Unstructured{
		"port at v1alpha2": specManifest(t, "v1alpha2", namespace, "web",
			"{drainSeconds: 60, replicas: 2, ports: [{name: http, port: 8001}]}"),
		"replicas at v1alpha1": specManifest(t, "v1alpha1", namespace, "web", "{port: 8000, forceRedeploy: now, replicas: 3}"),
	} {
		manager := map[string]string{"port at v1alpha2": "new", "replicas at v1alpha1": "old"}[name]
		if err := apply(t, manager, object); !apierrors.IsConflict(err) {
			t.Errorf("%s belongs to the other: %v", name, err)
		}
	}
	mustApply(t, "old", specManifest(t, "v1alpha1", namespace, "web", "{port: 8001}"))
	want.Ports[0].Port, want.ForceRedeploy = 8001, ""
	if diff := cmp.Diff(want, spec()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	checkManagedFields(t, readV1alpha2(t, namespace, "web"))
}

// TestApplierAtV1alpha2Drops verifies that fields that a v1alpha2 applier drops from its manifest
// are removed, although v1alpha1 clients have written the object as well. The port that a v1alpha1
// client set belongs to that client and stays.
func TestApplierAtV1alpha2Drops(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newObject(namespace, "web"))
	mustApply(t, "new", specManifest(t, "v1alpha2", namespace, "web",
		"{drainSeconds: 60, ports: [{name: web, port: 8000}, {name: other, port: 8001}], service: {type: NodePort}, "+
			"resources: {limits: {cpu: '0.5', memory: 64Mi}}}"),
		client.ForceOwnership)
	for _, step := range []struct {
		spec string
		want v1alpha2.NginxOperatorSpec
	}{
		{"{ports: [{name: other, port: 8001}], resources: {limits: {memory: 64Mi}}}", v1alpha2.NginxOperatorSpec{
			Replicas: ptr.To[int32](1),
			Ports: []v1alpha2.Port{
				{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP},
				{Name: "other", Port: 8001, Protocol: corev1.ProtocolTCP},
			},
			Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		}},
		{"{drainSeconds: 30}", v1alpha2.NginxOperatorSpec{
			Replicas:     ptr.To[int32](1),
			Ports:        []v1alpha2.Port{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}},
			DrainSeconds: ptr.To[int32](30),
		}},
	} {
		mustApply(t, "new", specManifest(t, "v1alpha2", namespace, "web", step.spec))
		if diff := cmp.Diff(step.want, readV1alpha2(t, namespace, "web").Spec); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.spec, diff)
		}
	}
}

// TestApplierChangesItsVersion verifies that an applier can move from v1alpha1 to v1alpha2, with a
// named port or the default name, and back.
func TestApplierChangesItsVersion(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for _, port := range []string{"web", "http"} {
		old := func() *unstructured.Unstructured {
			return specManifest(t, "v1alpha1", namespace, port, "{port: 8000, replicas: 2}")
		}
		mustApply(t, "gitops", old())
		mustApply(t, "gitops", specManifest(t, "v1alpha2", namespace, port,
			"{ports: [{name: "+port+", port: 8000}], replicas: 2, drainSeconds: 60}"))
		want := v1alpha2.NginxOperatorSpec{
			Replicas:     ptr.To[int32](2),
			Ports:        []v1alpha2.Port{{Name: port, Port: 8000, Protocol: corev1.ProtocolTCP}},
			DrainSeconds: ptr.To[int32](60),
		}
		if diff := cmp.Diff(want, readV1alpha2(t, namespace, port).Spec); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		// If the port is named web, the apply must fail, because the API server would reset the
		// port to 8080.
		err := apply(t, "gitops", old())
		if port == "web" && (err == nil || !strings.Contains(err.Error(), "with another field manager")) || port == "http" && err != nil {
			t.Errorf("back to v1alpha1 with port %s: %v", port, err)
		}
		mustApply(t, "another", old(), client.ForceOwnership)
		if diff := cmp.Diff(want, readV1alpha2(t, namespace, port).Spec); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// TestApplyTwiceChangesNothing verifies that a second apply changes nothing, even if the Go types
// would encode the values differently.
func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for version, spec := range map[string]string{
		"v1alpha1": "{port: 8080, forceRedeploy: ''}",
		"v1alpha2": "{paused: false, resources: {limits: {cpu: '0.5', memory: 1024Mi}}, podTemplate: {labels: {}}, " +
			"ports: [{name: http, port: 8080}]}",
	} {
		mustApply(t, "gitops", specManifest(t, version, namespace, version, spec))
		before := readV1alpha2(t, namespace, version).Generation
		mustApply(t, "gitops", specManifest(t, version, namespace, version, spec))
		if after := readV1alpha2(t, namespace, version).Generation; after != before {
			t.Errorf("%s: generation %d, was %d", version, after, before)
		}
	}
}
