package operand

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
)

var (
	// changesNoChild has the fields that no desired function reads, with the reason.
	changesNoChild = map[string]string{
		"paused":                    "the operands stay as they are while it is set",
		"rollout.automaticRollback": "it is about what becomes of children that fail",
		"patches[].target.name":     "there is one child of each kind",
	}
	// nothingWithoutIt has the text and number fields without a default. If such a field is not
	// set, the feature is absent.
	nothingWithoutIt = map[string]string{
		"autoscaling.targetMemoryUtilizationPercentage": "no target for memory",
		"config.inline":                 "configMapRef is given in its place",
		"config.values[].value":         "valueFrom is given in its place",
		"forceRedeploy":                 "no redeployment",
		"nginx.events":                  "no file of the user's",
		"nginx.main":                    "no file of the user's",
		"podTemplate.priorityClassName": "no priority class",
		"ports[].appProtocol":           "the Service has none",
	}
	// defaultsElsewhere has the fields whose default no example's children show, with the reason.
	defaultsElsewhere = map[string]string{ //nolint:gosec // the Secret of a volume is no credential
		"autoscaling.targetCPUUtilizationPercentage":  "only without a target for memory",
		"autoscaling.behavior.scaleUp.selectPolicy":   "the API server's",
		"autoscaling.behavior.scaleDown.selectPolicy": "the API server's",
		"service.externalTrafficPolicy":               "the API server's, for it depends on the type",
		"service.internalTrafficPolicy":               "the API server's",
		"service.sessionAffinity":                     "the API server's",
		"service.ipFamilyPolicy":                      "the API server's",
		"volumes[].configMap.defaultMode":             "the API server's",
		"volumes[].secret.defaultMode":                "the API server's",
		"volumes[].projected.defaultMode":             "the API server's",
		"tls[].port":                                  "that of the first certificate, without config",
	}
)

// apiField is a leaf field of the spec: its type is not a structure of this API.
type apiField struct {
	// path is the path of the field, for example ports[].name.
	path     string
	schema   apiextensionsv1.JSONSchemaProps
	required bool
}

// fieldsOf returns the leaf fields of an API type, with their schemas.
func fieldsOf(t *testing.T, in reflect.Type, schema *apiextensionsv1.JSONSchemaProps, path string) []apiField {
	t.Helper()
	var out []apiField
	for _, field := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := strings.TrimPrefix(path+"."+name, ".")
		property, found := schema.Properties[name]
		if !found {
			t.Errorf("spec.%s: the CRD does not have it; run make generate", at)
			continue
		}
		inner, below, suffix := field.Type, &property, ""
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice && property.Items != nil {
			inner, below, suffix = inner.Elem(), property.Items.Schema, "[]"
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == reflect.TypeFor[v1alpha2.NginxOperator]().PkgPath() {
			out = append(out, fieldsOf(t, inner, below, at+suffix)...)
			continue
		}
		out = append(out, apiField{at, property, slices.Contains(schema.Required, name)})
	}
	return out
}

// holders returns the objects in a JSON value that may have a field.
func holders(value any, keys []string) []map[string]any {
	switch value := value.(type) {
	case []any:
		var out []map[string]any
		for _, element := range value {
			out = append(out, holders(element, keys)...)
		}
		return out
	case map[string]any:
		if len(keys) == 1 {
			return []map[string]any{value}
		}
		return holders(value[keys[0]], keys[1:])
	}
	return nil
}

func (f apiField) keys() []string { return strings.Split(strings.ReplaceAll(f.path, "[]", ""), ".") }

func (f apiField) name() string { return f.keys()[len(f.keys())-1] }

// isIn reports whether a spec sets the field.
func (f apiField) isIn(spec map[string]any) bool {
	return slices.ContainsFunc(holders(spec, f.keys()), func(holder map[string]any) bool { return holder[f.name()] != nil })
}

// with returns a copy of a spec in which the field has another value, or is removed if value is
// nil.
func (f apiField) with(spec map[string]any, value any) map[string]any {
	out := runtime.DeepCopyJSON(spec)
	for _, holder := range holders(out, f.keys()) {
		if delete(holder, f.name()); value != nil {
			holder[f.name()] = value
		}
	}
	return out
}

var saysDefault = regexp.MustCompile(`[Dd]efaults\s+to\s+(\S+)`)

// defaultValue returns the default in the comment of a text, number, or boolean field. said reports
// whether the comment has a default. value is nil if it has none, or describes the default in
// words.
func (f apiField) defaultValue() (value any, said bool) {
	found := saysDefault.FindStringSubmatch(f.schema.Description)
	if found == nil {
		return nil, false
	}
	text := strings.TrimRight(found[1], ".,;")
	isChoice := slices.ContainsFunc(f.schema.Enum, func(one apiextensionsv1.JSON) bool { return string(one.Raw) == `"`+text+`"` })
	switch {
	case f.schema.Type == "integer" || f.schema.Type == "boolean":
		if json.Unmarshal([]byte(text), &value) != nil {
			return nil, true
		}
	case f.schema.Default != nil || isChoice:
		return text, true
	}
	return value, true
}

// sectionsOf returns the second-level sections of a page by their headings.
func sectionsOf(page string) map[string]string {
	out := map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		out[heading] = text
	}
	return out
}

// TestNoFieldIsForgotten reports the missing parts of a new field of the spec. The examples of
// docs/guide/fields are the test cases for drift, for fields that are set and removed, and for the
// golden file of the effects of fields. So a new field needs only an example.
func TestNoFieldIsForgotten(t *testing.T) {
	spec := specSchema(t)
	page := fieldsPage(t)
	examples, samples, sections := examplesOf(t, page), samplesOf(t), sectionsOf(page)
	excused := slices.Concat(slices.Collect(maps.Values(withoutRecipe))...)
	unused := sets.New(excused...)
	fields := fieldsOf(t, reflect.TypeFor[v1alpha2.NginxOperatorSpec](), &spec, "")
	for _, field := range fields {
		t.Run(field.path, func(t *testing.T) {
			field.isExplained(t, sections[field.keys()[0]])
			field.hasExample(t, examples)
			field.hasDefault(t, examples, sections[field.keys()[0]])
			inSample := slices.ContainsFunc(samples, func(e example) bool { return field.isIn(e.spec) })
			excuse := slices.IndexFunc(excused, func(path string) bool {
				return path == field.path || strings.HasSuffix(path, ".") && strings.HasPrefix(field.path, path)
			})
			if inSample == (excuse >= 0) {
				t.Errorf("spec.%s: a recipe of config/samples uses it: %t; use it in one, or add it to withoutRecipe with the reason, "+
					"not both", field.path, inSample)
			}
			if excuse >= 0 {
				unused.Delete(excused[excuse])
			}
		})
	}
	if len(unused) > 0 || len(fields) < 20 {
		t.Errorf("found %d fields, and not these of withoutRecipe: %v", len(fields), sets.List(unused))
	}
}

// specSchema returns the schema of a spec.
func specSchema(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	decodeYAML(t, readFile(t, "../../config/crd/bases/operator.example.com_nginxoperators.yaml"), crd)
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == v1alpha2.GroupVersion.Version
	})
	return crd.Spec.Versions[at].Schema.OpenAPIV3Schema.Properties["spec"]
}

// samplesOf returns the v1alpha2 declarations in config/samples.
func samplesOf(t *testing.T) []example {
	t.Helper()
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []example
	for _, file := range files {
		out = append(out, examplesOf(t, "```yaml\n"+readFile(t, file)+"```\n")...)
	}
	return out
}

func (f apiField) isExplained(t *testing.T, section string) {
	t.Helper()
	if !regexp.MustCompile(`\b`+regexp.QuoteMeta(f.name())+`\b`).MatchString(section) && len(f.keys()) > 1 || section == "" {
		t.Errorf("spec.%s: docs/guide/fields does not explain it; name it in a section ## %s", f.path, f.keys()[0])
	}
}

// hasExample requires an example that shows the effect of the field: without the field, the
// children differ.
func (f apiField) hasExample(t *testing.T, examples []example) {
	t.Helper()
	using := slices.DeleteFunc(slices.Clone(examples), func(e example) bool { return !f.isIn(e.spec) })
	if len(f.schema.Enum) == 1 {
		return // a single possible value has no effect to show
	}
	if len(using) == 0 {
		t.Errorf("spec.%s: no example in docs/guide/fields sets it, so that no test of drift or removal has it; add it to one", f.path)
		return
	}
	changes := slices.ContainsFunc(using, func(e example) bool {
		return !e.children(t, e.spec).Equal(e.children(t, f.with(e.spec, nil)))
	})
	if _, none := changesNoChild[f.path]; changes == none {
		t.Errorf("spec.%s: an example in docs/guide/fields shows what it changes in a child: %t; give it its effect in a desired function, "+
			"or name it in changesNoChild", f.path, changes)
	}
}

// hasDefault requires that the comment, the schema, the page, and the code agree on the default of
// the field.
func (f apiField) hasDefault(t *testing.T, examples []example, section string) {
	t.Helper()
	isScalar := slices.Contains([]string{"string", "integer", "number", "boolean"}, f.schema.Type)
	value, said := f.defaultValue()
	if _, nothing := nothingWithoutIt[f.path]; isScalar && !f.required && said == nothing {
		t.Errorf("spec.%s: its comment says what it defaults to: %t; write Defaults to ... there, or name it in nothingWithoutIt", f.path, said)
	}
	if f.required || value == nil {
		return
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if stored := f.schema.Default; stored != nil && string(stored.Raw) != string(raw) {
		t.Errorf("spec.%s: its comment says that it defaults to %s, and the schema %s; make the two agree", f.path, raw, stored.Raw)
	}
	if word := strings.Trim(string(raw), `"`); !regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(section) {
		t.Errorf("spec.%s: the section ## %s of docs/guide/fields does not say that it defaults to %s", f.path, f.keys()[0], word)
	}
	if _, elsewhere := defaultsElsewhere[f.path]; elsewhere {
		return
	}
	for _, e := range examples {
		given, without := e.children(t, f.with(e.spec, value)), e.children(t, f.with(e.spec, nil))
		if !given.Equal(without) {
			t.Errorf("spec.%s: without it the children of the example %s are others than with its default %s; "+
				"return that in internal/defaults\n%v\n%v", f.path, e.name, raw,
				given.Difference(without).UnsortedList(), without.Difference(given).UnsortedList())
			return // other examples would report the same error
		}
	}
}
