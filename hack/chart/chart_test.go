package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/example/nginx-operator/hack/kustomize"
	"github.com/example/nginx-operator/test/harness/policy"
)

// TestChartEqualsConfig verifies that config/ is the only source. The rendered chart has the same
// objects, except the Namespace, Helm's labels, and the annotation that keeps the CRD.
// TestPoliciesOfWatchNamespaces compares the policies of a limited installation.
func TestChartEqualsConfig(t *testing.T) {
	installed, err := kustomize.Render(filepath.Join(repository, "config"), types.Kustomization{Resources: []string{"default"}})
	must(t, err)
	all, err := render(repository)
	must(t, err)
	for name, test := range map[string]struct {
		objects []string
		values  string
	}{
		"default":    {values: ""},
		"everything": {values: "monitoring: {enabled: true}\nnetworkPolicy: {enabled: true}\n"},
	} {
		resources := installed.Resources()
		if name == "everything" {
			resources = all
		}
		var texts []string
		for _, object := range resources {
			if kind := object.GetKind(); kind != "Namespace" && kind != policyKind && kind != policyBindingKind {
				texts = append(texts, object.MustYaml())
			}
		}
		want := byKey(t, decoded(t, strings.Join(texts, "---\n")))
		for _, program := range versions {
			t.Run(name+" "+program, func(t *testing.T) {
				objects := rendered(t, program, test.values)
				for _, object := range objects {
					withoutHelm(t, object)
				}
				if diff := cmp.Diff(want, byKey(t, objects)); diff != "" {
					t.Errorf("objects (-config +chart):\n%s", diff)
				}
			})
		}
	}
}

// byKey returns objects by their kinds, namespaces, and names.
func byKey(t *testing.T, objects []client.Object) map[string]client.Object {
	t.Helper()
	out := map[string]client.Object{}
	for _, object := range objects {
		key := strings.Join([]string{object.GetObjectKind().GroupVersionKind().String(), object.GetNamespace(), object.GetName()}, " ")
		if _, twice := out[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		out[key] = object
	}
	return out
}

// withoutHelm requires and removes what the chart adds to each object.
func withoutHelm(t *testing.T, object client.Object) {
	t.Helper()
	labels := object.GetLabels()
	const prefix = "app.kubernetes.io/"
	for _, label := range []string{prefix + "instance", prefix + "managed-by", prefix + "version", "helm.sh/chart"} {
		if labels[label] == "" {
			t.Errorf("%T %s does not have the label %s", object, object.GetName(), label)
		}
		delete(labels, label)
	}
	if _, crd := object.(*apiextensionsv1.CustomResourceDefinition); crd {
		annotations := object.GetAnnotations()
		if annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("Helm deletes the CRD: %v", annotations)
		}
		delete(annotations, "helm.sh/resource-policy")
	}
}

// TestLint verifies that neither version of Helm has a warning.
func TestLint(t *testing.T) {
	for _, program := range versions {
		for name, values := range map[string]string{"default": "", "full": full} {
			t.Run(program+" "+name, func(t *testing.T) {
				chart := filepath.Join(repository, chartDir)
				if out, err := helm(t, program, "lint", "--strict", "--values", valuesFile(t, values), chart); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// TestNames verifies that another namespace is everywhere, and that the name of the release is not
// a part of any name.
func TestNames(t *testing.T) {
	out, err := helm(t, "helm", "template", "other", filepath.Join(repository, chartDir), "--namespace", "somewhere",
		"--kube-version", "1.37.0", "--values", valuesFile(t, "monitoring: {enabled: true}\nnetworkPolicy: {enabled: true}\n"))
	must(t, err)
	if strings.Contains(out, configNamespace) {
		t.Error("the namespace of config/default is in the objects")
	}
	for _, object := range decoded(t, out) {
		if namespace := object.GetNamespace(); namespace != "" && namespace != "somewhere" || strings.Contains(object.GetName(), "other") {
			t.Errorf("%T %s is in %s", object, object.GetName(), namespace)
		}
	}
}

// TestWatchNamespaces verifies that with watched namespaces only RoleBindings in these namespaces
// grant the manager role, and that the flag has the same namespaces.
func TestWatchNamespaces(t *testing.T) {
	objects := rendered(t, "helm", full)
	var namespaces []string
	for _, object := range objects {
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			if binding.RoleRef.Name == managerRole {
				t.Errorf("ClusterRoleBinding %s grants %s in all namespaces", binding.Name, managerRole)
			}
		case *rbacv1.RoleBinding:
			if binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == managerRole {
				namespaces = append(namespaces, binding.Namespace)
				if subject := binding.Subjects[0]; len(binding.Subjects) != 1 || subject.Namespace != configNamespace {
					t.Errorf("the subjects are %v", binding.Subjects)
				}
			}
		}
	}
	if !slices.Equal(namespaces, []string{"team-a", "1234", configNamespace}) {
		t.Errorf("the manager role is granted in %v", namespaces)
	}
	// In the operator's own namespace, the binding of its Role has another name.
	byKey(t, objects)
}

// TestPoliciesOfWatchNamespaces verifies that with watched namespaces the chart contains the
// policies of config/, and that they apply to the operator's account and accept its Service.
func TestPoliciesOfWatchNamespaces(t *testing.T) {
	all, err := render(repository)
	must(t, err)
	var texts []string
	for _, object := range all {
		if kind := object.GetKind(); kind == policyKind || kind == policyBindingKind {
			texts = append(texts, object.MustYaml())
		}
	}
	want := byKey(t, decoded(t, strings.Join(texts, "---\n")))
	if len(want) != 4 {
		t.Fatalf("config/ has %d policies and bindings, want 4", len(want))
	}
	for _, program := range versions {
		t.Run(program, func(t *testing.T) {
			out, err := helm(t, program, "template", "other", filepath.Join(repository, chartDir), "--namespace", "somewhere",
				"--kube-version", "1.37.0", "--values", valuesFile(t, "watchNamespaces: [team-a]\n"))
			must(t, err)
			objects := decoded(t, out)
			account := find[*appsv1.Deployment](t, objects, "nginx-operator-controller-manager").Spec.Template.Spec.ServiceAccountName
			var policies []client.Object
			for _, object := range objects {
				switch object := object.(type) {
				case *admissionregistrationv1.ValidatingAdmissionPolicy:
					withoutHelm(t, object)
					policies = append(policies, object)
				case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
					withoutHelm(t, object)
					policies = append(policies, object)
				}
			}
			if diff := cmp.Diff(want, byKey(t, policies)); diff != "" {
				t.Errorf("policies (-config +chart):\n%s", diff)
			}

			configuration := find[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "nginx-operator-mutating-webhook-configuration")
			source := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "nginx-operator-own-webhooks")
			compiled, err := policy.Compile(source, policy.Newest())
			must(t, err)
			for user, applies := range map[string]bool{
				"system:serviceaccount:somewhere:" + account: true, "system:serviceaccount:somewhere:default": false,
			} {
				matches, refusals, err := compiled.Evaluate(t.Context(), policy.Request{User: user, Object: configuration, OldObject: configuration})
				if err != nil || matches != applies || len(refusals) > 0 {
					t.Errorf("%s: the policy applies: %t, refusals %q, %v", user, matches, refusals, err)
				}
			}
			moved := configuration.DeepCopy()
			moved.Webhooks[0].ClientConfig.Service.Namespace = "elsewhere"
			request := policy.Request{User: "system:serviceaccount:somewhere:" + account, Object: moved, OldObject: configuration}
			if _, refusals, err := compiled.Evaluate(t.Context(), request); err != nil || len(refusals) == 0 {
				t.Errorf("a Service of another namespace is allowed: %v", err)
			}
		})
	}
}

// TestSwitches verifies that each part can be left out.
func TestSwitches(t *testing.T) {
	counts := func(values string) map[string]int {
		out := map[string]int{}
		for _, object := range rendered(t, "helm", values) {
			out[object.GetObjectKind().GroupVersionKind().Kind]++
		}
		return out
	}
	for values, kind := range map[string]string{
		"crds: {enabled: false}":                               "CustomResourceDefinition",
		"monitoring: {enabled: true, rules: {enabled: false}}": "PrometheusRule",
	} {
		if got := counts(values); got[kind] != 0 || got["Deployment"] != 1 {
			t.Errorf("%s: %v", values, got)
		}
	}
	if got := counts("monitoring: {enabled: true, dashboards: {enabled: false}}"); got["ConfigMap"] != 1 || got["PrometheusRule"] != 1 {
		t.Errorf("without dashboards: %v", got)
	}
}
