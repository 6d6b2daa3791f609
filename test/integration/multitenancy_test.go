package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness/policy"
)

// tenantNamespace is the namespace in the manifests of docs/guide/multi-tenancy.md.
const tenantNamespace = "shop"

// TestMultiTenancy applies the manifests of docs/guide/multi-tenancy.md, and verifies that the
// roles, the limits, and the policy do what the page says.
func TestMultiTenancy(t *testing.T) {
	const patched = "{patches: [{target: {kind: Service}, patch: 'metadata: {labels: {a: b}}'}]}"
	applyMultiTenancy(t, "Namespace", "RoleBinding", "LimitRange", "ResourceQuota")
	t.Cleanup(func() {
		must(t, suite.admin.DeleteAllOf(context.Background(), &v1alpha2.NginxOperator{}, client.InNamespace(tenantNamespace)))
	})
	create(t, specManifest(t, "v1alpha2", tenantNamespace, "legacy", patched))
	applyMultiTenancy(t, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	editor, viewer := groupClient(t, "shop-editors"), groupClient(t, "shop-viewers")
	write := func(c client.Client, namespace, spec string) error {
		return c.Create(t.Context(), specManifest(t, "v1alpha2", namespace, "web", spec), client.DryRunAll)
	}
	waitFor(t, func() error {
		if write(editor, tenantNamespace, "{image: 'docker.io/library/nginx:1'}") == nil {
			return fmt.Errorf("the policy is not in effect")
		}
		return nil
	})

	for spec, want := range policy.TenantSpecs() {
		switch err := write(editor, tenantNamespace, spec); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", spec, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: want a refusal with %q, got %v", spec, want, err)
		}
	}
	for who, err := range map[string]error{
		"an editor in another namespace": write(editor, newNamespace(t), "{}"),
		"a viewer":                       write(viewer, tenantNamespace, "{}"),
		"an editor of ConfigMaps":        editor.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(tenantNamespace)),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: want Forbidden, got %v", who, err)
		}
	}
	must(t, viewer.List(t.Context(), &v1alpha2.NginxOperatorList{}, client.InNamespace(tenantNamespace)))
	must(t, write(suite.admin, newNamespace(t), "{image: 'docker.io/library/nginx:1'}"))

	tenantCannotUseV1alpha1(t, editor)
	tenantKeepsLegacyObject(t, editor)
	tenantPodsGetLimits(t)
}

// applyMultiTenancy applies the manifests of the page that have one of the kinds, and deletes the
// policy when the test ends.
func applyMultiTenancy(t *testing.T, kinds ...string) {
	t.Helper()
	page := must1(os.ReadFile("../../docs/guide/multi-tenancy.md"))(t)
	applied := map[string]bool{}
	for _, fence := range yamlFence.FindAllStringSubmatch(string(page), -1) {
		for _, object := range decode(t, fence[1]) {
			for _, kind := range kinds {
				if object.GetKind() != kind {
					continue
				}
				applied[kind] = true
				must(t, suite.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), applier))
				if object.GetNamespace() == "" && kind != "Namespace" {
					t.Cleanup(func() { must(t, suite.admin.Delete(context.Background(), object)) })
				}
			}
		}
	}
	if len(applied) != len(kinds) {
		t.Fatalf("the page has only %v of the kinds %v", applied, kinds)
	}
}

// groupClient returns a client that acts as a user in a group.
func groupClient(t *testing.T, group string) client.Client {
	t.Helper()
	config := rest.CopyConfig(suite.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{group}}
	return must1(client.New(config, client.Options{Scheme: scheme.New()}))(t)
}

// tenantCannotUseV1alpha1 verifies that the policy also evaluates fields in the annotation of
// v1alpha1.
func tenantCannotUseV1alpha1(t *testing.T, editor client.Client) {
	t.Helper()
	const allowed, refused = "docker.io/nginxinc/nginx-unprivileged:1.30.7", "docker.io/library/nginx:1"
	create(t, specManifest(t, "v1alpha2", tenantNamespace, "allowed", "{image: '"+allowed+"'}"))
	old := specManifest(t, "v1alpha1", tenantNamespace, "allowed", "{}")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	annotations := old.GetAnnotations()
	stored := annotations["operator.example.com/v1alpha2"]
	annotations["operator.example.com/v1alpha2"] = strings.ReplaceAll(stored, allowed, refused)
	if annotations["operator.example.com/v1alpha2"] == stored {
		t.Fatalf("the annotation has no image: %q", stored)
	}
	forged := specManifest(t, "v1alpha1", tenantNamespace, "forged", "{port: 8080}")
	forged.SetAnnotations(annotations)
	err := editor.Create(t.Context(), forged, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "image "+refused+" is not allowed") {
		t.Errorf("an image in the annotation of v1alpha1: want a refusal, got %v", err)
	}
	must(t, editor.Create(t.Context(), specManifest(t, "v1alpha1", tenantNamespace, "old", "{port: 8080}"), client.DryRunAll))
}

// tenantKeepsLegacyObject verifies that an object that was stored before the policy can be labeled,
// scaled, and deleted, but not changed otherwise.
func tenantKeepsLegacyObject(t *testing.T, editor client.Client) {
	t.Helper()
	legacy := &unstructured.Unstructured{}
	legacy.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
	legacy.SetNamespace(tenantNamespace)
	legacy.SetName("legacy")
	patch := func(text string) error {
		return editor.Patch(t.Context(), legacy.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	must(t, patch(`{"metadata":{"labels":{"a":"b"}}}`))
	scale := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))
	must(t, editor.SubResource("scale").Patch(t.Context(), legacy.DeepCopy(), scale))
	if err := patch(`{"spec":{"drainSeconds":30}}`); err == nil || !strings.Contains(err.Error(), "spec.patches is not allowed") {
		t.Errorf("a change of an object with patches: want a refusal, got %v", err)
	}
	must(t, editor.Delete(t.Context(), legacy))
}

// tenantPodsGetLimits verifies that the quota rejects a Pod of an instance without a memory limit,
// and that the LimitRange adds the limit. No controller computes the status of the quota here.
func tenantPodsGetLimits(t *testing.T) {
	t.Helper()
	quota := &corev1.ResourceQuota{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: tenantNamespace, Name: "tenant"}, quota))
	quota.Status.Hard = quota.Spec.Hard.DeepCopy()
	quota.Status.Used = corev1.ResourceList{}
	for name := range quota.Spec.Hard {
		quota.Status.Used[name] = resource.Quantity{}
	}
	must(t, suite.admin.Status().Update(t.Context(), quota))
	template := waitForChildren(t, tenantNamespace, "allowed").deployment.Spec.Template
	newPod := func() error {
		pod := &corev1.Pod{Spec: template.Spec}
		pod.Namespace, pod.Name, pod.Labels = tenantNamespace, "web", template.Labels
		return suite.admin.Create(t.Context(), pod, client.DryRunAll)
	}
	waitFor(t, newPod)
	limits := &corev1.LimitRange{}
	limits.Namespace, limits.Name = tenantNamespace, "tenant"
	must(t, suite.admin.Delete(t.Context(), limits))
	waitFor(t, func() error {
		if err := newPod(); err == nil || !strings.Contains(err.Error(), "must specify limits.memory") {
			return fmt.Errorf("a Pod without a limit: want a refusal by the quota, got %w", err)
		}
		return nil
	})
}
