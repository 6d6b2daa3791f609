package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	activity "github.com/example/nginx-operator/examples/activity/controller"
)

// What the manager looks for is what examples/config installs, and nothing else has its name: the product is beside it.
func TestConfig(t *testing.T) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "config")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, resource := range rendered.Resources() {
		found[resource.GetKind()+" "+resource.GetNamespace()+"/"+resource.GetName()] = true
		if resource.GetKind() != "Deployment" {
			continue
		}
		raw, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict(raw, deployment); err != nil {
			t.Fatal(err)
		}
		checkEnvironment(t, deployment.Spec.Template.Spec.Containers[0].Env)
	}
	for _, want := range []string{
		"Namespace /" + systemNamespace,
		"Service " + systemNamespace + "/" + webhookService,
		"MutatingWebhookConfiguration /" + mutatingName,
		"ValidatingWebhookConfiguration /" + validatingName,
		"CustomResourceDefinition /foos.tutorial.my.domain",
		"CustomResourceDefinition /activities.ego.example.com",
		"CustomResourceDefinition /myapps.example.com",
		"CustomResourceDefinition /sidecarsets.apps.kruise.io",
	} {
		if !found[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

// checkEnvironment requires that the manifest and the code agree on what an Activity runs in.
func checkEnvironment(t *testing.T, env []corev1.EnvVar) {
	t.Helper()
	values := map[string]string{}
	for _, one := range env {
		values[one.Name] = one.Value
	}
	if values[activity.ImageEnv] != activity.DefaultImage {
		t.Errorf("%s is %q, the default %q", activity.ImageEnv, values[activity.ImageEnv], activity.DefaultImage)
	}
	if _, found := values["POD_NAMESPACE"]; !found {
		t.Error("the manager does not know its namespace")
	}
}
