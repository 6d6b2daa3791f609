package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that an NginxOperator can reference and kustomize can rename, with a pattern
// for the last two names of a field that references one.
var kinds = map[string]*regexp.Regexp{
	"ConfigMap":             regexp.MustCompile(`(?i)^([a-z]*configMap[a-z]*\.name|[a-z]+\.[a-z]*configMapName)$`),
	"Secret":                regexp.MustCompile(`(?i)^([a-z]*secrets?[a-z]*\.name|[a-z]+\.[a-z]*secretName)$`),
	"ServiceAccount":        regexp.MustCompile(`(?i)^[a-z]+\.serviceAccountName$`),
	"PersistentVolumeClaim": regexp.MustCompile(`(?i)^[a-z]+\.claimName$`),
}

// TestKustomizeNames verifies that the name references of the page rename every reference of a
// NginxOperator, and that kustomize renames none without them.
func TestKustomizeNames(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```yaml\n(nameReference:\n.*?)^```$").FindStringSubmatch(read(t, "docs/guide/gitops.md"))
	if block == nil {
		t.Fatal("gitops.md has no name references")
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(read(t, "config/crd/bases/operator.example.com_nginxoperators.yaml")), crd); err != nil {
		t.Fatal(err)
	}
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema.Properties["spec"]
		spec, found := everyReference("spec", &schema)
		if version.Name == "v1alpha2" && found < 20 {
			t.Fatalf("found %d references", found)
		}
		object := map[string]any{
			"apiVersion": "operator.example.com/" + version.Name, "kind": "NginxOperator",
			"metadata": map[string]any{"name": "web"}, "spec": spec,
		}
		if renamed, _ := renamedReferences(t, object, ""); renamed > 0 {
			t.Errorf("%s: kustomize renames %d references on its own, so the page needs fewer", version.Name, renamed)
		}
		if renamed, left := renamedReferences(t, object, block[1]); renamed != found || len(left) > 0 {
			t.Errorf("%s: with the page, kustomize renames %d of %d references, and not %v", version.Name, renamed, found, left)
		}
	}
}

// everyReference returns a value of a schema that sets every reference to the lower-case kind of
// its object, and the number of references. A value without references is nil.
func everyReference(at string, schema *apiextensionsv1.JSONSchemaProps) (any, int) {
	if schema.Items != nil && schema.Items.Schema != nil {
		item, found := everyReference(at, schema.Items.Schema)
		if found == 0 {
			return nil, 0
		}
		return []any{item}, found
	}
	for kind, field := range kinds {
		names := strings.Split(at, ".")
		if schema.Type == "string" && field.MatchString(strings.Join(names[len(names)-2:], ".")) {
			return strings.ToLower(kind), 1
		}
	}
	object, sum := map[string]any{}, 0
	for name, property := range schema.Properties {
		if value, found := everyReference(at+"."+name, &property); found > 0 {
			object[name], sum = value, sum+found
		}
	}
	return object, sum
}

// renamedReferences renders an object with the objects that it references and a suffix for all
// names. It returns the number of renamed references, and the paths of the others.
func renamedReferences(t *testing.T, object map[string]any, references string) (renamed int, left []string) {
	t.Helper()
	dir := t.TempDir()
	kustomization := "nameSuffix: -renamed\nresources: [objects.yaml]\n" +
		"configMapGenerator: [{name: configmap, literals: [a=b]}]\nsecretGenerator: [{name: secret, literals: [a=b]}]\n"
	if references != "" {
		kustomization += "configurations: [references.yaml]\n"
	}
	manifest, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ServiceAccount", "PersistentVolumeClaim"} {
		manifest = append(manifest, "---\napiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+strings.ToLower(kind)+"}\n"...)
	}
	for name, text := range map[string]string{
		"kustomization.yaml": kustomization, "objects.yaml": string(manifest), "references.yaml": references,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range rendered.Resources() {
		if each.GetKind() != "NginxOperator" {
			continue
		}
		fields, err := each.Map()
		if err != nil {
			t.Fatal(err)
		}
		leaves("spec", fields["spec"], func(at, value string) {
			if strings.Contains(value, "-renamed") {
				renamed++
			} else {
				left = append(left, at)
			}
		})
	}
	return renamed, left
}

// leaves calls visit for each string.
func leaves(at string, value any, visit func(at, value string)) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			leaves(at+"."+name, inner, visit)
		}
	case []any:
		for _, inner := range value {
			leaves(at, inner, visit)
		}
	case string:
		visit(at, value)
	}
}
