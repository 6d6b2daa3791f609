package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

var (
	yamlFence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	separator = regexp.MustCompile(`(?m)^---$`)
)

// pages returns the pages that contain examples for users, by name: the README, the user guide, and
// the description in the ClusterServiceVersion.
func pages(t *testing.T) map[string]string {
	t.Helper()
	guide := must1(filepath.Glob("../../docs/guide/*.md"))(t)
	out := map[string]string{}
	fields := must1(filepath.Glob("../../docs/guide/fields/*.md"))(t)
	for _, page := range slices.Concat(guide, fields, []string{"../../README.md"}) {
		text := must1(os.ReadFile(page))(t)
		out[strings.TrimPrefix(page, "../../")] = string(text)
	}
	text := must1(os.ReadFile("../../config/manifests/bases/nginx-operator.clusterserviceversion.yaml"))(t)
	csv := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(text, &csv.Object))
	description, _, err := unstructured.NestedString(csv.Object, "spec", "description")
	must(t, err)
	out["ClusterServiceVersion"] = description
	return out
}

// TestDocumentationExamples verifies that the API server accepts each example of the documentation
// without a warning, and that the operator creates its children. The test creates the certificates
// that an example references.
func TestDocumentationExamples(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for page, text := range pages(t) {
		for _, fence := range yamlFence.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(fence[1], "kind: NginxOperator\n") {
				continue
			}
			found[page]++
			t.Run(fmt.Sprintf("%s/%d", page, found[page]), func(t *testing.T) {
				t.Parallel()
				namespace := newNamespace(t)
				for _, object := range decode(t, fence[1]) {
					exampleWorks(t, namespace, object)
				}
			})
		}
	}
	ofFields := 0
	for page, count := range found {
		if strings.HasPrefix(page, "docs/guide/fields/") {
			ofFields += count
		}
	}
	if ofFields < 15 || found["ClusterServiceVersion"] != 1 {
		t.Errorf("found %v; the guide has an example of each field, and the ClusterServiceVersion one", found)
	}
}

// samples returns the manifests of config/samples by name.
func samples(t *testing.T) map[string]string {
	t.Helper()
	files := must1(filepath.Glob("../../config/samples/*.yaml"))(t)
	out := map[string]string{}
	for _, file := range files {
		text := must1(os.ReadFile(file))(t)
		if name := filepath.Base(file); name != "kustomization.yaml" {
			out[name] = string(text)
		}
	}
	return out
}

// TestSamples verifies that the API server accepts each sample, that the operator creates its
// children, and that a second apply changes nothing.
func TestSamples(t *testing.T) {
	found := samples(t)
	if len(found) < 17 {
		t.Errorf("found %d samples, want 15 recipes and the two basic ones", len(found))
	}
	for name, text := range found {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			objects := decode(t, text)
			for _, object := range objects {
				exampleWorks(t, namespace, object)
			}
			for _, object := range objects {
				appliesWithoutDifference(t, object)
			}
		})
	}
}

// foreign matches the versions of APIs that this API server does not have.
var foreign = regexp.MustCompile(`^(autoscaling\.k8s\.io|cert-manager\.io|kustomize\.toolkit\.fluxcd\.io)/`)

// decode returns the objects of a manifest whose APIs this API server has.
func decode(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, document := range separator.Split(manifest, -1) {
		object := &unstructured.Unstructured{}
		must(t, yaml.UnmarshalStrict([]byte(document), &object.Object))
		if !foreign.MatchString(object.GetAPIVersion()) {
			useOwnNodePorts(t, object)
			out = append(out, object)
		}
	}
	return out
}

// applier is the field manager that applies manifests, like a GitOps controller.
const applier = client.FieldOwner("gitops")

// exampleWorks applies an object and waits for its children. A warning fails the test.
func exampleWorks(t *testing.T, namespace string, object *unstructured.Unstructured) {
	t.Helper()
	object.SetNamespace(namespace)
	warned := &recordedWarnings{}
	applied := object.DeepCopy()
	if object.GetKind() != "NginxOperator" {
		must(t, suite.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), applier))
		return
	}
	tls, _, err := unstructured.NestedSlice(object.Object, "spec", "tls")
	must(t, err)
	for _, each := range tls {
		secret, _, err := unstructured.NestedString(each.(map[string]any), "secretName")
		must(t, err)
		create(t, newSecret(namespace, secret, newCertificate(t)))
	}
	must(t, warningClient(t, warned).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), applier))
	paused, _, err := unstructured.NestedBool(object.Object, "spec", "paused")
	must(t, err)
	for _, warning := range warned.list() {
		// A paused object gets a warning that it is paused.
		if !paused {
			t.Errorf("%s is warned of: %q", object.GetName(), warning)
		}
	}
	waitFor(t, func() error { return hasItsChildren(t, namespace, object.GetName(), paused) })
}

// hasItsChildren returns an error if the operator has not created the children of an object, or if
// it has created children of a paused object.
func hasItsChildren(t *testing.T, namespace, name string, paused bool) error {
	object, err := waitForStatusOnce(t.Context(), namespace, name)
	if err != nil {
		return err
	}
	degraded := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionDegraded)
	if degraded == nil || degraded.Status != metav1.ConditionFalse {
		return fmt.Errorf("%s is degraded: %+v", object.Name, degraded)
	}
	children, err := childrenOf(t.Context(), namespace, object.Name)
	if err != nil {
		return err
	}
	if made := children.deployment != nil && children.service != nil; made == paused {
		return fmt.Errorf("%s has children: %t; paused: %t", object.Name, made, paused)
	}
	return nil
}

// appliesWithoutDifference requires that a reconciled manifest changes nothing when it is applied
// again, and that a changed manifest does. `kubectl diff --server-side`, Flux, and Argo CD's
// server-side diff make the same comparison.
func appliesWithoutDifference(t *testing.T, manifest *unstructured.Unstructured) {
	t.Helper()
	waitFor(t, func() error {
		difference, err := appliedAgain(t, manifest)
		if err == nil && difference != "" {
			err = fmt.Errorf("%s %s would change (-is +applied again):\n%s", manifest.GetKind(), manifest.GetName(), difference)
		}
		return err
	})
	changed := manifest.DeepCopy()
	changed.SetLabels(map[string]string{"changed": "true"})
	if difference, err := appliedAgain(t, changed); err != nil || difference == "" {
		t.Errorf("a label on %s %s shows no difference: %v", manifest.GetKind(), manifest.GetName(), err)
	}
}

// appliedAgain returns the difference between the stored object and a server-side dry run of an
// apply.
func appliedAgain(t *testing.T, manifest *unstructured.Unstructured) (string, error) {
	t.Helper()
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(manifest.GroupVersionKind())
	if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(manifest), stored); err != nil {
		return "", err
	}
	applied := manifest.DeepCopy()
	err := suite.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), applier, client.DryRunAll)
	if err != nil {
		return "", err
	}
	stored.SetManagedFields(nil)
	applied.SetManagedFields(nil)
	return cmp.Diff(stored.Object, applied.Object), nil
}

// TestDefaultsInsideLists verifies which defaults inside lists show up in a diff that compares
// lists as a whole. docs/guide/gitops.md names these fields, and the sample for GitOps sets them.
func TestDefaultsInsideLists(t *testing.T) {
	namespace := newNamespace(t)
	bare := decode(t, `
apiVersion: operator.example.com/v1alpha2
kind: NginxOperator
metadata: {name: bare}
spec:
  ports: [{name: http, port: 8080}, {name: admin, port: 9000}]
  tls: [{secretName: first}, {secretName: second}]
  podTemplate:
    tolerations: [{key: dedicated, operator: Exists}]
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
    imagePullSecrets: [{name: registry}]
`)[0]
	want := []string{"spec.ports[0].protocol", "spec.ports[1].protocol"}
	if got := appliedDifferences(t, namespace, bare); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the API server adds %v inside lists, want %v", got, want)
	}
	guide := pages(t)["docs/guide/gitops.md"]
	for _, field := range []string{"`ports[].protocol`", "`tls[].port`"} {
		if !strings.Contains(guide, field) {
			t.Errorf("docs/guide/gitops.md does not name %s", field)
		}
	}
	manifests := []string{samples(t)["gitops.yaml"]}
	for _, fence := range yamlFence.FindAllStringSubmatch(guide, -1) {
		if strings.Contains(fence[1], "kind: NginxOperator\nmetadata:") {
			manifests = append(manifests, fence[1])
		}
	}
	for _, manifest := range manifests {
		for _, object := range decode(t, manifest) {
			if object.GetKind() != "NginxOperator" {
				continue
			}
			if got := appliedDifferences(t, newNamespace(t), object); len(got) > 0 {
				t.Errorf("%s does not write out %v", object.GetName(), got)
			}
		}
	}
}

// appliedDifferences applies an object and returns the stored fields inside lists that the object
// does not declare.
func appliedDifferences(t *testing.T, namespace string, object *unstructured.Unstructured) []string {
	t.Helper()
	object.SetNamespace(namespace)
	stored := object.DeepCopy()
	must(t, suite.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(stored), applier))
	return addedInLists("spec", object.Object["spec"], stored.Object["spec"], false)
}

func addedInLists(path string, declared, stored any, inList bool) []string {
	var out []string
	switch stored := stored.(type) {
	case map[string]any:
		declared, _ := declared.(map[string]any)
		for name, value := range stored {
			if inner, found := declared[name]; found {
				out = append(out, addedInLists(path+"."+name, inner, value, inList)...)
			} else if inList {
				out = append(out, path+"."+name)
			}
		}
	case []any:
		declared, _ := declared.([]any)
		for i := range min(len(stored), len(declared)) {
			out = append(out, addedInLists(fmt.Sprintf("%s[%d]", path, i), declared[i], stored[i], true)...)
		}
	}
	slices.Sort(out)
	return out
}
