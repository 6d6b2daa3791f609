//go:build !race

package patch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// dear returns patches that are expensive for one of the functions that process a patch. Each has
// the kind of its target and its text.
func dear() map[string][2]string {
	list := func(n int, element func(i int) string) string {
		var out []string
		for i := range n {
			out = append(out, element(i))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	same := func(text string) func(int) string { return func(int) string { return text } }
	fill := func(text string) string { return strings.Repeat(text, maxCharacters/len(text)) }
	return map[string][2]string{
		"containers": {"Deployment", pod("containers: " + list(60, func(i int) string { return fmt.Sprintf("{name: c%d}", i) }))},
		"volumes":    {"Deployment", pod("volumes: " + list(60, func(i int) string { return fmt.Sprintf("{name: v%d}", i) }))},
		"variables":  {"Deployment", nginx("env: " + list(60, func(i int) string { return fmt.Sprintf("{name: v%d}", i) }))},
		"labels":     {"Service", "metadata: {labels: {" + keys(250) + "}}"},
		"lists": {"Deployment", pod("containers: " + list(5, func(i int) string {
			env := list(20, func(i int) string { return fmt.Sprintf("{name: v%d}", i) })
			return fmt.Sprintf("{name: c%d, image: a, %s, env: %s}", i, confined, env)
		}))},
		"half a list":  {"Deployment", nginx("env: " + list(30, func(i int) string { return fmt.Sprintf("{name: v%d}", i) }))},
		"few":          {"Deployment", pod(`hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]`)},
		"replace":      {"Deployment", list(50, same(`{"op":"replace","path":"/spec/template/spec/containers/0","value":{}}`))},
		"add":          {"Deployment", list(45, same(`{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"a"}}`))},
		"move":         {"Deployment", list(60, same(`{"op":"move","from":"/spec/template","path":"/spec/template"}`))},
		"test":         {"Deployment", list(60, same(`{op: test, path: /kind, value: Deployment}`))},
		"escapes":      {"Service", `{"metadata":{"annotations":{"a":"` + strings.Repeat(`\u0001`, 1300) + `"}}}`},
		"wide letters": {"Service", `{metadata: {annotations: {a: "` + strings.Repeat("\U0001F600", 8000) + `"}}}`},
		"brackets":     {"Deployment", fill("[")},
		"braces":       {"Deployment", fill("{a: ")},
		"indentation":  {"Deployment", fill("- ")},
		"keys":         {"Deployment", fill("a:\n")},
		"question":     {"Deployment", fill("? ")},
		"anchors":      {"Deployment", fill("&a ")},
		"tags":         {"Deployment", fill("! ")},
		"comments":     {"Deployment", fill("#\n")},
		"folded":       {"Deployment", "a: >\n" + fill(" x\n\n")[:8000]},
		"quotes":       {"Deployment", fill("'")},
		"documents":    {"Deployment", fill("---\n")},
		"laughs":       {"Deployment", "a: &a [x,x,x,x,x,x,x,x]\n" + "b: &b [*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]"},
		"a quantity":   {"Deployment", pod(`overhead: {cpu: "1e-1000000000"}`)},
		"an exponent":  {"Deployment", "spec: {minReadySeconds: 1e" + strings.Repeat("9", 8000) + "}"},
		"digits":       {"Deployment", "spec: {minReadySeconds: " + strings.Repeat("9", 8000) + "}"},
		"a long path":  {"Deployment", `[{op: add, path: "` + strings.Repeat("/a", 4000) + `", value: 1}]`},
	}
}

// FuzzApply verifies that no patch is expensive or causes a panic, and that an admitted patch
// retains the identity of the child.
func FuzzApply(f *testing.F) {
	dearest := dear()
	for _, name := range slices.Sorted(maps.Keys(dearest)) {
		f.Add(dearest[name][0], dearest[name][1], dearest[name][1])
	}
	of := refused()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		f.Add(of[name].kind, of[name].patch, "{spec: {minReadySeconds: 3}}")
	}
	f.Add("Deployment", pod("hostAliases: [{ip: 10.0.0.1}]"), "[{op: remove, path: /spec/template/spec/enableServiceLinks}]")
	if _, errs := Apply(patches("Deployment", "{}"), children(), at); len(errs) > 0 { // reads the schema, once per process
		f.Fatal(errs)
	}
	f.Fuzz(func(t *testing.T, kind, first, second string) {
		given := children()
		var got []client.Object
		var errs field.ErrorList
		boundstest.Cheap(t, func() { got, errs = Apply(patches(kind, first, second), given, at) })
		if len(errs) > 0 {
			return
		}
		again, _ := Apply(patches(kind, first, second), given, at)
		for i, child := range got {
			before := given[i]
			if child.GetName() != before.GetName() || child.GetNamespace() != before.GetNamespace() || len(child.GetFinalizers()) > 0 ||
				child.GetObjectKind().GroupVersionKind() != before.GetObjectKind().GroupVersionKind() || len(child.GetOwnerReferences()) > 0 {
				t.Errorf("is another object: %v", child)
			}
			for key, value := range before.GetLabels() {
				if child.GetLabels()[key] != value {
					t.Errorf("has another label %s", key)
				}
			}
			// Each reconcile must get the same result.
			if diff := gocmp.Diff(fieldsOf(t, child), fieldsOf(t, again[i])); diff != "" {
				t.Errorf("differs when it is made again:\n%s", diff)
			}
		}
	})
}
