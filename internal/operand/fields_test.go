package operand

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// fieldsPage returns the reference of the fields, which explains each field with an example.
func fieldsPage(t *testing.T) string {
	t.Helper()
	page, err := docs.Fields(os.DirFS("../../docs/guide"))
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// example is a declaration with the ConfigMaps that it references.
type example struct {
	section, name string
	spec          map[string]any
	configMaps    map[string]*corev1.ConfigMap
}

// examplesOf returns the declarations in the examples of a page.
func examplesOf(t *testing.T, page string) []example {
	t.Helper()
	var out []example
	for _, found := range docs.Examples(page) {
		configMaps := map[string]*corev1.ConfigMap{}
		for _, document := range found.Documents {
			object := struct {
				metav1.TypeMeta
				metav1.ObjectMeta `json:"metadata"`
				Spec              map[string]any
			}{}
			decodeYAML(t, document, &object)
			switch object.GroupVersionKind() {
			case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
				configMaps[object.Name] = &corev1.ConfigMap{}
				decodeYAML(t, document, configMaps[object.Name])
			case v1alpha2.GroupVersion.WithKind("NginxOperator"):
				out = append(out, example{found.Section, object.Name, object.Spec, configMaps})
			}
		}
	}
	return out
}

func decodeYAML(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// children returns the rendered children of an instance as lines. Each line is the path and the
// value of a leaf.
func (e example) children(t *testing.T, fields map[string]any) sets.Set[string] {
	t.Helper()
	object := fixture.NewObject()
	object.Name, object.Spec = e.name, v1alpha2.NginxOperatorSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &object.Spec, true); err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	out, seen := sets.New[string](), map[string]int{}
	in := e.inputs(t, object)
	all, err := Children(object, in)
	if err != nil { // a field of a patch was removed
		all = Desired(object, in)
	}
	for _, child := range all {
		kind := child.GetObjectKind().GroupVersionKind().Kind
		if seen[kind]++; seen[kind] > 1 {
			kind = fmt.Sprintf("%s %d", kind, seen[kind])
		}
		out.Insert(leavesOf(t, kind, child)...)
	}
	return out
}

func leavesOf(t *testing.T, name string, object client.Object) []string {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return lines(name, fields)
}

// inputs returns the inputs that a reconcile would read for the object.
func (e example) inputs(t *testing.T, object *v1alpha2.NginxOperator) Inputs {
	t.Helper()
	var servers nginxconf.Servers
	if config := object.Spec.Config; config != nil {
		servers = nginxconf.Whole(config.Inline)
		if named := config.ConfigMapRef; named != nil && e.configMaps[named.Name] != nil {
			source, key := e.configMaps[named.Name], defaults.ConfigKey(named)
			servers = nginxconf.Whole(source.Data[key])
			for _, matching := range KeysOf(source, key) {
				if nginxconf.IsKeyMask(key) {
					servers = append(servers, nginxconf.Part{Key: matching, Text: source.Data[matching]})
				}
			}
		}
	}
	servers = e.withValues(object, servers)
	in := newInputsOf(t, object, servers, false)
	if object.Spec.Content != nil {
		source := ptr.Deref(e.configMaps[object.Spec.Content.ConfigMapRef.Name], corev1.ConfigMap{})
		in.Content = ptr.To(NewContent(&source, object.Spec.Content.ConfigMapRef.Items))
	}
	copied := map[string][]byte{}
	for _, file := range object.Spec.Files {
		switch {
		case file.SecretRef != nil:
			in.SecretsHash = "fedcba9876543210"
		case nginxconf.HasMask(file):
			source := ptr.Deref(e.configMaps[file.ConfigMapRef.Name], corev1.ConfigMap{})
			in.Directories = append(in.Directories, NewDirectory(file, &source))
		case file.ConfigMapRef != nil:
			source := ptr.Deref(e.configMaps[file.ConfigMapRef.Name], corev1.ConfigMap{})
			copied[file.Path], _ = KeyOf(&source, file.ConfigMapRef.Key)
		}
	}
	if len(copied) > 0 {
		in.Files = ptr.To(NewDeclaredFiles(copied))
	}
	if len(object.Spec.TLS) > 0 {
		in.CertificatesHash = "0123456789abcdef"
	}
	return in
}

// withValues returns a configuration with its values.
func (e example) withValues(object *v1alpha2.NginxOperator, servers nginxconf.Servers) nginxconf.Servers {
	values := nginxconf.Literals(&object.Spec)
	for _, declared := range ptr.Deref(object.Spec.Config, v1alpha2.Config{}).Values {
		switch from := ptr.Deref(declared.ValueFrom, v1alpha2.ConfigValueSource{}); {
		case from.FieldRef != nil && from.FieldRef.FieldPath != "":
			values[declared.Name] = nginxconf.Value{Text: object.Namespace}
		case from.ConfigMapKeyRef != nil && e.configMaps[from.ConfigMapKeyRef.Name] != nil:
			text := e.configMaps[from.ConfigMapKeyRef.Name].Data[from.ConfigMapKeyRef.Key]
			values[declared.Name] = nginxconf.Value{Text: text, Foreign: true}
		}
	}
	expanded, _, _ := servers.Expand(&object.Spec, values)
	return expanded
}

// lines returns the leaves of a JSON value. A text of several lines results in several leaves.
func lines(path string, value any) []string {
	var out []string
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			out = append(out, lines(path+"."+key, inner)...)
		}
	case []any:
		for i, inner := range value {
			out = append(out, lines(fmt.Sprintf("%s[%d]", path, i), inner)...)
		}
	default:
		for _, line := range strings.Split(strings.TrimSpace(fmt.Sprint(value)), "\n") {
			out = append(out, path+": "+line)
		}
	}
	return out
}

// TestExamplesOfFields compares the children of each example in the documentation with the children
// of an empty spec.
func TestExamplesOfFields(t *testing.T) {
	var text strings.Builder
	for _, e := range examplesOf(t, fieldsPage(t)) {
		text.WriteString("# " + e.section + ": " + e.name + "\n")
		before, after := e.children(t, nil), e.children(t, e.spec)
		for _, line := range slices.Sorted(maps.Keys(before.Difference(after))) {
			text.WriteString("- " + line + "\n")
		}
		for _, line := range slices.Sorted(maps.Keys(after.Difference(before))) {
			text.WriteString("+ " + line + "\n")
		}
	}
	fixture.Golden(t, "fields.txt", text.String())
}
