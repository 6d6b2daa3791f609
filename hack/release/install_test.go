package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objectsOf returns the objects of a manifest, in order.
func objectsOf(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), object))
		out = append(out, object)
	}
	return out
}

// TestInstallManifests checks that the manifests run the operator by its digest and the operands by
// their tags, and that cert-manager's manifest adds only its objects and annotations.
func TestInstallManifests(t *testing.T) {
	p := realRelease(t)
	operator := "ghcr.io/example/nginx-operator@" + digestOf("ghcr.io/example/nginx-operator:v"+p.version)
	made, err := p.manifestFiles(operator)
	must(t, err)
	for name, text := range made {
		if !strings.HasPrefix(string(text), "# nginx-operator "+p.version+": kubectl apply --server-side -f "+
			"https://github.com/example/nginx-operator/releases/download/v"+p.version+"/"+name+"\n") {
			t.Errorf("%s begins with %.200s", name, text)
		}
		if strings.Contains(string(text), "ghcr.io/example/nginx-operator:") {
			t.Errorf("%s has the operator's image by tag", name)
		}
	}
	plain, withCertManager := objectsOf(t, string(made["install.yaml"])), objectsOf(t, string(made["install-cert-manager.yaml"]))
	if plain[0].GetKind() != "Namespace" || plain[1].GetKind() != "CustomResourceDefinition" {
		t.Errorf("the first objects are %s and %s", plain[0].GetKind(), plain[1].GetKind())
	}
	if level := plain[0].GetLabels()["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Errorf("the namespace enforces the level %q", level)
	}
	at := slices.IndexFunc(plain, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Deployment" })
	deployment := &appsv1.Deployment{}
	text, err := plain[at].MarshalJSON()
	if err == nil {
		err = yaml.Unmarshal(text, deployment)
	}
	must(t, err)
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != operator {
		t.Errorf("the operator is %s, want %s", container.Image, operator)
	}
	restrictedV2(t, deployment.Spec.Template.Spec)
	operands := 0
	for _, variable := range container.Env {
		if strings.HasPrefix(variable.Name, "RELATED_IMAGE_") {
			operands++
			if strings.Contains(variable.Value, "@") || !strings.Contains(variable.Value, ":") {
				t.Errorf("%s is %s and not a tag", variable.Name, variable.Value)
			}
		}
	}
	if operands == 0 {
		t.Error("the operator has no images for its operands")
	}
	key := func(object *unstructured.Unstructured) string { return object.GetKind() + " " + object.GetName() }
	injected, added := []string{}, []string{}
	for _, object := range withCertManager {
		if !slices.ContainsFunc(plain, func(other *unstructured.Unstructured) bool { return key(other) == key(object) }) {
			added = append(added, key(object))
		}
		if object.GetAnnotations()["cert-manager.io/inject-ca-from"] != "" {
			injected = append(injected, object.GetKind())
		}
	}
	slices.Sort(added)
	slices.Sort(injected)
	wantAdded := []string{"Certificate nginx-operator-serving-cert", "Issuer nginx-operator-selfsigned-issuer"}
	wantInjected := []string{"CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	if diff := cmp.Diff([][]string{wantAdded, wantInjected}, [][]string{added, injected}); diff != "" {
		t.Errorf("cert-manager's objects and annotations: %s", diff)
	}
}

// restrictedV2 requires a Pod to set no users and groups, so that OpenShift, which sets them, needs no
// manifest of its own. The namespace enforces the rest of the SecurityContextConstraints restricted-v2.
func restrictedV2(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	if pod.SecurityContext.RunAsUser != nil || pod.SecurityContext.FSGroup != nil {
		t.Errorf("restricted-v2 refuses the Pod: %+v", pod.SecurityContext)
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		if container.SecurityContext.RunAsUser != nil {
			t.Errorf("restricted-v2 refuses the container %s: %+v", container.Name, container.SecurityContext)
		}
	}
}
