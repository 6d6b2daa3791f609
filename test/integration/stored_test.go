package integration

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

// readWithin bounds the time to read one object.
const readWithin = 200 * time.Millisecond

// neverStored are the fields for which the schema accepts no value.
var neverStored = []string{"spec.resources.claims"}

// valid are values of fields whose rules are stricter than their type, by name or by path.
var valid = map[string]any{
	"operator": "In", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": int64(1), "inline": "server {}", "effect": "NoExecute",
	"loadBalancerClass": "example.com/lb", "externalTrafficPolicy": "Local", "name": "a", "key": "a", "secretName": "a",
	"loadBalancerSourceRanges": "192.0.2.0/24", "size": "16Mi", "mountPath": "/srv/a",
	"interval": "30s", "valid": "30s", "spec.config.values.name": "A",
}

// TestWhatCanBeStoredCanBeRead verifies that every object that can be stored can be read. For every
// field of the CRD, in both versions, it writes the extreme values of the field's type without any
// webhook, and decodes the values that the schema and its rules accept. A new field needs no new
// case.
func TestWhatCanBeStoredCanBeRead(t *testing.T) {
	t.Parallel()
	// In another API group, no webhook and no reconcile of the operator handles the objects.
	const group = "stored.example.com"
	crd, scheme := &apiextensionsv1.CustomResourceDefinition{}, runtime.NewScheme()
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: wellknown.CRDName}, crd))
	crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Spec.Names.Plural + "." + group}
	crd.Spec.Group, crd.Spec.Conversion = group, nil
	for version, kinds := range map[string][]runtime.Object{
		v1alpha1.GroupVersion.Version: {&v1alpha1.NginxOperator{}, &v1alpha1.NginxOperatorList{}},
		v1alpha2.GroupVersion.Version: {&v1alpha2.NginxOperator{}, &v1alpha2.NginxOperatorList{}},
	} {
		scheme.AddKnownTypes(schema.GroupVersion{Group: group, Version: version}, kinds...)
		metav1.AddToGroupVersion(scheme, schema.GroupVersion{Group: group, Version: version})
	}
	admin := must1(client.New(suite.config, client.Options{Scheme: scheme}))(t)
	must(t, harness.InstallCRD(t.Context(), suite.admin, crd))
	for _, version := range crd.Spec.Versions {
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		waitFor(t, func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			return admin.List(t.Context(), list)
		})
		w := &walker{t: t, admin: admin, decoder: serializer.NewCodecFactory(scheme).UniversalDeserializer(), kind: kind}
		for _, part := range []string{"spec", "status"} {
			w.walk(version.Schema.OpenAPIV3Schema.Properties[part], []step{{name: part}})
		}
		t.Logf("%s: %d values of %d fields were stored, %d refused", version.Name, w.stored, w.fields, w.refused)
		if w.fields < 10 || w.stored < w.fields {
			t.Errorf("%s: the walk went through %d fields only", version.Name, w.fields)
		}
	}
	must(t, admin.List(t.Context(), &v1alpha1.NginxOperatorList{}))
	must(t, admin.List(t.Context(), &v1alpha2.NginxOperatorList{}))
}

// step is one part of the path from the object to a field. around is the schema that contains the
// field, and in says how it contains the field.
type step struct {
	name   string
	around apiextensionsv1.JSONSchemaProps
	in     string // "", "list" or "map"
}

type walker struct {
	t                       *testing.T
	admin                   client.Client
	decoder                 runtime.Decoder
	kind                    schema.GroupVersionKind
	fields, stored, refused int
}

func (w *walker) walk(field apiextensionsv1.JSONSchemaProps, path []step) {
	for _, name := range slices.Sorted(maps.Keys(field.Properties)) {
		w.walk(field.Properties[name], append(slices.Clone(path), step{name: name, around: field}))
	}
	switch {
	case field.Items != nil:
		w.walk(*field.Items.Schema, append(slices.Clone(path), step{in: "list"}))
	case field.AdditionalProperties != nil:
		w.walk(*field.AdditionalProperties.Schema, append(slices.Clone(path), step{name: "cpu", in: "map"}))
	case len(field.Properties) == 0:
		w.try(field, path)
	}
}

// try writes the extreme values of one field.
func (w *walker) try(field apiextensionsv1.JSONSchemaProps, path []step) {
	name, stored := pathString(path), 0
	w.fields++
	of := path[len(path)-1]
	if of.in == "list" {
		of = path[len(path)-2]
	}
	values := extremes(field, of.name)
	if known, found := valid[name]; found {
		values = append(values, known)
	}
	for _, value := range values {
		if w.write(build(path, value), fmt.Sprintf("%s %s = %.40v", w.kind.Version, name, value)) && value != nil {
			stored++
		}
	}
	w.stored += stored
	never := slices.ContainsFunc(neverStored, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	if (stored == 0) != never {
		w.t.Errorf("%s %s: %d values were stored", w.kind.Version, name, stored)
	}
}

// write stores an object, and decodes the answer of the API server. It reports whether the API
// server accepted the object.
func (w *walker) write(fields map[string]any, what string) bool {
	object := &unstructured.Unstructured{Object: maps.Clone(fields)}
	object.SetGroupVersionKind(w.kind)
	object.SetNamespace("default")
	object.SetGenerateName("a")
	_, isStatus := fields["status"]
	err := w.admin.Create(w.t.Context(), object)
	if err == nil && isStatus {
		object.Object["status"] = fields["status"]
		if err = w.admin.Status().Update(w.t.Context(), object); err != nil {
			must(w.t, w.admin.Delete(w.t.Context(), object))
		}
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		w.refused++
		return false
	}
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	raw := must1(object.MarshalJSON())(w.t)
	// Check the bounds first, because reading a value outside of the bounds may never end.
	if w.kind.Version == v1alpha2.GroupVersion.Version {
		alone := make(chan *v1alpha2.NginxOperator, 1)
		go func() { alone <- codec.ReadAlone(raw) }()
		select {
		case got := <-alone:
			if why, unreadable := codec.Unreadable(got); unreadable {
				w.t.Errorf("%s: was stored and is out of bounds: %s", what, why)
				must(w.t, w.admin.Delete(w.t.Context(), object))
				return true
			}
		case <-time.After(time.Minute):
			w.t.Fatalf("%s: was stored, and to read it does not end", what)
		}
	}
	var failed error
	best := time.Hour
	// A slow value is slow each time, but a busy machine is slow only sometimes.
	for try := 0; try < 10 && failed == nil && best > readWithin; try++ {
		began := time.Now()
		_, _, failed = w.decoder.Decode(raw, nil, nil)
		best = min(best, time.Since(began))
	}
	if failed == nil && best > readWithin {
		w.t.Errorf("%s: it takes %s to read it", what, best)
	}
	if failed != nil {
		w.t.Errorf("%s: was stored and cannot be read: %v", what, failed)
		must(w.t, w.admin.Delete(w.t.Context(), object))
	}
	return true
}

// extremes returns values at the edges of a type, and values beyond the bounds of the schema.
func extremes(field apiextensionsv1.JSONSchemaProps, name string) []any {
	values := []any{nil}
	if known, found := valid[name]; found {
		values = append(values, known)
	}
	for _, one := range field.Enum {
		values = append(values, strings.Trim(string(one.Raw), `"`))
	}
	numbers := []any{
		int64(0), int64(1), int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt32) + 1, int64(math.MinInt32) - 1, 1e30, 1.5, 1e300,
	}
	for _, bound := range []*float64{field.Minimum, field.Maximum} {
		if bound != nil {
			numbers = append(numbers, int64(*bound), int64(*bound)-1, int64(*bound)+1)
		}
	}
	length := int(min(ptr.Deref(field.MaxLength, 100_000), 100_000))
	texts := []any{
		"", "a", strings.Repeat("a", length), strings.Repeat("\u00e4", length), strings.Repeat("9", min(length, 400)),
		"2026-01-01T00:00:00Z", "yesterday", "/cache",
	}
	amounts := []any{"1e1000000000", "1e-1000000000", "1e1.5", "1e99", "1e-99", "1.5Gi", "-1", "True", strings.Repeat("9", 32)}
	switch {
	case field.XIntOrString:
		return slices.Concat(values, numbers, texts, amounts)
	case field.Type == "integer", field.Type == "number":
		return slices.Concat(values, numbers)
	case field.Type == "boolean":
		return append(values, true, false)
	default:
		return slices.Concat(values, texts)
	}
}

// build returns an object in which one field has a value, and that sets only the required fields
// around it.
func build(path []step, value any) map[string]any {
	for i := len(path) - 1; i >= 0; i-- {
		switch at := path[i]; at.in {
		case "list":
			value = []any{value}
		case "map":
			value = map[string]any{at.name: value}
		default:
			fields := map[string]any{}
			for _, name := range at.around.Required {
				fields[name] = sample(name, at.around.Properties[name])
			}
			if slices.Contains([]string{"loadBalancerClass", "externalTrafficPolicy", "loadBalancerSourceRanges"}, at.name) {
				fields["type"] = "LoadBalancer"
			}
			needsSource := slices.Contains([]string{"mountPath", "name", "readOnly", "subPath"}, at.name)
			if _, isVolume := at.around.Properties["emptyDir"]; isVolume && needsSource {
				fields["emptyDir"], fields["mountPath"] = map[string]any{}, valid["mountPath"]
			}
			if _, isTLS := at.around.Properties["secretName"]; isTLS && slices.Contains([]string{"nodePort", "targetPort"}, at.name) {
				fields["port"] = int64(8443)
			}
			if at.name == "values" {
				fields["inline"] = valid["inline"]
			}
			if _, isVariable := at.around.Properties["valueFrom"]; isVariable {
				fields["name"] = "A"
				if at.name == "name" {
					fields["value"] = "a"
				}
			}
			if secret, isFile := at.around.Properties["secretRef"]; isFile && at.name == "path" {
				fields["secretRef"] = sample("secretRef", secret)
			}
			fields[at.name] = value
			value = fields
		}
	}
	fields, _ := value.(map[string]any)
	if spec, isSpec := fields["spec"].(map[string]any); isSpec && path[len(path)-1].name == "nodePort" {
		spec["service"] = map[string]any{"type": "NodePort"}
	}
	return fields
}

// sample returns a valid value for a required field.
func sample(name string, field apiextensionsv1.JSONSchemaProps) any {
	if known, found := valid[name]; found {
		return known
	}
	switch {
	case len(field.Enum) > 0:
		return strings.Trim(string(field.Enum[0].Raw), `"`)
	case field.Type == "integer":
		return int64(max(1, ptr.Deref(field.Minimum, 1)))
	case field.Type == "array":
		return []any{sample("", *field.Items.Schema)}
	case field.Type == "object":
		out := map[string]any{}
		for _, required := range field.Required {
			out[required] = sample(required, field.Properties[required])
		}
		return out
	case field.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	default:
		return "a"
	}
}

func pathString(path []step) string {
	var parts []string
	for _, one := range path {
		if one.name != "" {
			parts = append(parts, one.name)
		}
	}
	return strings.Join(parts, ".")
}
