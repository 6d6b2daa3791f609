package patch

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/test/golden"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func fieldsOf(t testing.TB, object client.Object) map[string]any {
	t.Helper()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pod returns a strategic merge patch of the Pod.
func pod(fields string) string { return "spec: {template: {spec: {" + fields + "}}}" }

// nginx returns a strategic merge patch of the nginx container.
func nginx(fields string) string { return pod("containers: [{name: nginx, " + fields + "}]") }

const confined = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"

// TestApply verifies that each patch changes only the fields that it sets.
func TestApply(t *testing.T) {
	for name, test := range map[string]struct {
		kind, patch string
		want        map[string]any // changed values by path
	}{
		"strategic": {"Deployment", pod(`hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]`), map[string]any{
			"spec.template.spec.hostAliases": []any{map[string]any{"ip": "10.0.0.1", "hostnames": []any{"db"}}},
		}},
		"as JSON": {"Deployment", `{"spec": {"minReadySeconds": 5}}`, map[string]any{"spec.minReadySeconds": int64(5)}},
		"operations": {
			"Deployment", `[{op: add, path: /spec/template/spec/dnsConfig, value: {options: [{name: ndots, value: "1"}]}}]`,
			map[string]any{"spec.template.spec.dnsConfig": map[string]any{
				"options": []any{map[string]any{"name": "ndots", "value": "1"}},
			}},
		},
		"a comment and a document mark": {
			"Service", "# why\n---\nspec:\n  allocateLoadBalancerNodePorts: false\n",
			map[string]any{"spec.allocateLoadBalancerNodePorts": false},
		},
		"labels beside ours": {
			"Deployment", `{metadata: {labels: {team: shop}}, spec: {template: {metadata: {annotations: {a/b: "1"}}}}}`,
			map[string]any{"metadata.labels.team": "shop", "spec.template.metadata.annotations.a/b": "1"},
		},
		"texts that look like something else": {
			"Deployment", `{metadata: {annotations: {a: "1e3", b: "yes", c: "null", d: "2026-01-01", "on": "~"}}}`,
			map[string]any{
				"metadata.annotations.a": "1e3", "metadata.annotations.b": "yes", "metadata.annotations.c": "null",
				"metadata.annotations.d": "2026-01-01", "metadata.annotations.on": "~",
			},
		},
		"a large number": {
			"Deployment", pod("securityContext: {runAsUser: 1000650000}"),
			map[string]any{"spec.template.spec.securityContext.runAsUser": int64(1000650000)},
		},
		"null takes away": {
			"Deployment", pod("enableServiceLinks: null"), map[string]any{"spec.template.spec.enableServiceLinks": nil},
		},
		"both names of the service account": {"Deployment", pod("serviceAccountName: robot"), map[string]any{
			"spec.template.spec.serviceAccountName": "robot", "spec.template.spec.serviceAccount": "robot",
		}},
		"the budget": {"PodDisruptionBudget", `{spec: {maxUnavailable: null, minAvailable: 50%}}`, map[string]any{
			"spec.minAvailable": "50%", "spec.maxUnavailable": nil,
		}},
		"egress": {"NetworkPolicy", `[{op: add, path: /spec/policyTypes/-, value: Egress}]`, map[string]any{
			"spec.policyTypes": []any{"Ingress", "Egress"},
		}},
		"nothing": {"Service", "{}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			given := children()
			got, errs := Apply(patches(test.kind, test.patch), given, at)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := gocmp.Diff(children(), given); diff != "" {
				t.Errorf("changed what it was given (-want +got):\n%s", diff)
			}
			for i, child := range given {
				want := fieldsOf(t, child)
				if child.GetObjectKind().GroupVersionKind().Kind == test.kind {
					for at, value := range test.want {
						set(t, want, at, value)
					}
				}
				if diff := gocmp.Diff(want, fieldsOf(t, got[i])); diff != "" {
					t.Errorf("%T (-want +got):\n%s", child, diff)
				}
			}
		})
	}
}

func set(t *testing.T, object map[string]any, at string, value any) {
	t.Helper()
	keys := strings.Split(at, ".")
	if value == nil {
		unstructured.RemoveNestedField(object, keys...)
	} else if err := unstructured.SetNestedField(object, value, keys...); err != nil {
		t.Fatal(err)
	}
}

// TestApplyKeepsTheOrder verifies that new elements follow the operator's, in each list whose order
// matters.
func TestApplyKeepsTheOrder(t *testing.T) {
	got, errs := Apply(patches("Deployment", pod(`
  initContainers: [{name: first, image: busybox:1, `+confined+`}],
  containers: [{name: log, image: busybox:1, `+confined+`}, {name: nginx, volumeMounts: [{name: cache, mountPath: /var/cache/nginx}]}],
  volumes: [{name: cache, emptyDir: {sizeLimit: 1Gi}}]`)), children(), at)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	names := func(list string, key string) []string {
		var out []string
		for _, element := range get(fieldsOf(t, got[2]), list).([]any) {
			out = append(out, element.(map[string]any)[key].(string))
		}
		return out
	}
	mounts := get(fieldsOf(t, got[2]), "spec.template.spec.containers").([]any)[0].(map[string]any)["volumeMounts"].([]any)
	if last := mounts[len(mounts)-1].(map[string]any)["name"]; last != "cache" || len(mounts) != 3 {
		t.Errorf("mounts: %v", mounts)
	}
	for list, want := range map[string][]string{
		"containers": {"nginx", "log"}, "volumes": {"config", "tmp", "cache"}, "initContainers": {"first"},
	} {
		if diff := gocmp.Diff(want, names("spec.template.spec."+list, "name")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list, diff)
		}
	}
}

// TestApplyInOrder verifies that patches are applied in order, each to the result of the previous
// one.
func TestApplyInOrder(t *testing.T) {
	got, errs := Apply(patches("Deployment", "{spec: {minReadySeconds: 3}}",
		`[{op: test, path: /spec/minReadySeconds, value: 3}, {op: replace, path: /spec/minReadySeconds, value: 4}]`), children(), at)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if n := get(fieldsOf(t, got[2]), "spec.minReadySeconds"); n != int64(4) {
		t.Errorf("got %v", n)
	}
}

func TestHits(t *testing.T) {
	child := children()[2]
	for target, want := range map[v1alpha2.PatchTarget]bool{
		{Kind: "Deployment"}: true, {Kind: "Deployment", Name: "web"}: true, {Kind: "Deployment", Name: "other"}: false, {Kind: "Service"}: false,
		{Name: "web"}: false,
	} {
		if Hits(target, child) != want {
			t.Errorf("%v: want %t", target, want)
		}
	}
}

// keys returns n fields of a mapping.
func keys(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("a%d: a", i))
	}
	return strings.Join(out, ",")
}

// refused returns patches that are always rejected. testdata/messages.txt has their messages.
func refused() map[string]struct{ kind, patch string } {
	many := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	op := func(op, path, rest string) string { return fmt.Sprintf(`[{"op": %q, "path": %q%s}]`, op, path, rest) }
	return map[string]struct{ kind, patch string }{
		// The identity and the owner of the child.
		"kind":       {"Service", "kind: Secret"},
		"name":       {"Deployment", "metadata: {name: other}"},
		"namespace":  {"Deployment", "metadata: {namespace: kube-system}"},
		"owner":      {"Deployment", "metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]}"},
		"finalizers": {"Service", "metadata: {finalizers: [example.com/never]}"},
		"status":     {"Deployment", "status: {replicas: 1}"},
		// Labels and annotations.
		"a label of ours":       {"Deployment", "metadata: {labels: {app.kubernetes.io/instance: other}}"},
		"a label less":          {"Service", "metadata: {labels: null}"},
		"a Pod's label":         {"Deployment", "spec: {template: {metadata: {labels: {app.kubernetes.io/name: a}}}}"},
		"a recommended label":   {"Deployment", "metadata: {labels: {app.kubernetes.io/created-by: me}}"},
		"our annotation":        {"Deployment", "metadata: {annotations: {operator.example.com/last-declared: '{}'}}"},
		"our annotation less":   {"Deployment", "metadata: {annotations: {operator.example.com/replicas: null}}"},
		"the revision":          {"Deployment", `metadata: {annotations: {deployment.kubernetes.io/revision: "9"}}`},
		"an annotation of spec": {"Deployment", "spec: {template: {metadata: {annotations: {example.com/team: other}}}}"},
		"the Pod's name":        {"Deployment", "spec: {template: {metadata: {name: a}}}"},
		// Fields that the spec sets, and fields that the operator relies on.
		"selector":           {"Deployment", "spec: {selector: null}"},
		"selector of others": {"Service", "spec: {selector: {a: b}}"},
		"podSelector":        {"NetworkPolicy", "spec: {podSelector: {$patch: replace}}"},
		"budget's selector":  {"PodDisruptionBudget", "spec: {selector: null}"},
		"the whole spec":     {"Deployment", "spec: {$patch: delete}"},
		"replicas":           {"Deployment", "spec: {replicas: 5}"},
		"strategy":           {"Deployment", "spec: {strategy: {$patch: replace, type: Recreate}}"},
		"paused":             {"Deployment", "spec: {paused: true}"},
		"deadline":           {"Deployment", "spec: {progressDeadlineSeconds: 600}"},
		"history":            {"Deployment", "spec: {revisionHistoryLimit: 100000}"},
		"drain":              {"Deployment", pod("terminationGracePeriodSeconds: 1")},
		"placement":          {"Deployment", pod("nodeSelector: {a: b}")},
		"ports":              {"Service", "spec: {ports: [{port: 81}]}"},
		"type":               {"Service", "spec: {type: ExternalName, externalName: a.example.com}"},
		"external addresses": {"Service", "spec: {externalIPs: [10.0.0.1]}"},
		"Pods that fail":     {"Service", "spec: {publishNotReadyAddresses: true}"},
		"ingress":            {"NetworkPolicy", "spec: {ingress: [{}], policyTypes: null}"},
		// The nginx container.
		"image":               {"Deployment", nginx("image: evil")},
		"command":             {"Deployment", nginx("command: [sh]")},
		"args":                {"Deployment", nginx("args: [-h]")},
		"container ports":     {"Deployment", nginx("ports: [{containerPort: 81}]")},
		"resources":           {"Deployment", nginx("resources: {limits: {cpu: 1}}")},
		"probe":               {"Deployment", nginx("readinessProbe: null")},
		"lifecycle":           {"Deployment", nginx("lifecycle: {$patch: delete}")},
		"last words":          {"Deployment", nginx("terminationMessagePolicy: File")},
		"no container":        {"Deployment", pod("containers: [{name: nginx, $patch: delete}]")},
		"containers replaced": {"Deployment", pod("containers: [{$patch: replace}, {name: nginx, image: evil}]")},
		"no volume":           {"Deployment", pod("volumes: [{name: config, $patch: delete}]")},
		"another volume":      {"Deployment", pod("volumes: [{name: config, configMap: {name: other}}]")},
		"no mount":            {"Deployment", nginx("volumeMounts: null")},
		"mounted over":        {"Deployment", nginx("volumeMounts: [{name: tmp, mountPath: /etc/}]")},
		"mounted within":      {"Deployment", nginx("volumeMounts: [{name: tmp, mountPath: /etc/nginx-operator/nginx.conf}]")},
		"port of a sidecar": {
			"Deployment", pod("containers: [{name: log, image: a, " + confined + ", ports: [{name: health, containerPort: 1}]}]"),
		},
		"port of an init": {
			"Deployment", pod("initContainers: [{name: log, image: a, restartPolicy: Always, " + confined + ", ports: [{containerPort: 80}]}]"),
		},
		"sysctls":               {"Deployment", pod("securityContext: {sysctls: []}")},
		"one nginx more":        {"Deployment", op("add", "/spec/template/spec/containers/-", `, "value": {"name": "nginx", "image": "a"}`)},
		"an element of nothing": {"Deployment", pod("volumes: [{emptyDir: {}}]")},
		// Pod Security.
		"privileged":               {"Deployment", nginx("securityContext: {privileged: true, allowPrivilegeEscalation: true}")},
		"host path":                {"Deployment", pod("volumes: [{name: a, hostPath: {path: /}}]")},
		"sidecar as root":          {"Deployment", pod("containers: [{name: log, image: a}]")},
		"root of a user namespace": {"Deployment", pod("hostUsers: false, securityContext: {runAsNonRoot: false, runAsUser: 0}")},
		"as if for Windows":        {"Deployment", pod("os: {name: windows}, containers: [{name: log, image: a}]")},
		// Fields that the API does not have, and values that do not fit their types.
		"an unknown field":    {"Deployment", pod("hostAlias: []")},
		"unknown directive":   {"Deployment", pod("$retainKeys: [volumes]")},
		"another case":        {"Deployment", "spec: {Replicas: 3}"},
		"a wrong type":        {"Deployment", "spec: {minReadySeconds: soon}"},
		"an endless number":   {"Deployment", "spec: {minReadySeconds: 1e999999999}"},
		"a list for a map":    {"Deployment", "spec: []"},
		"a text for all":      {"Deployment", op("replace", "/spec", `, "value": "a"`)},
		"an endless quantity": {"Deployment", pod(`volumes: [{name: a, emptyDir: {sizeLimit: "1e-1000000000"}}]`)},
		"one in a map":        {"Deployment", pod(`overhead: {cpu: 1e1000000000}`)},
		"one of a divisor": {
			"Deployment", nginx(`env: [{name: a, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1e-999999999"}}}]`),
		},
		"a long list":            {"Deployment", pod("dnsConfig: {searches: [" + many(65, "a") + "]}")},
		"a path into nothing":    {"Deployment", op("add", "/spec/nothing/at/all", `, "value": 1`)},
		"an index beyond":        {"Deployment", op("add", "/spec/template/spec/containers/99999999999999999999", `, "value": {}`)},
		"a test that fails":      {"Deployment", op("test", "/spec/replicas", `, "value": 2`)},
		"deletion of the object": {"Deployment", "$patch: delete"},
		"an unknown $patch":      {"Deployment", "$patch: explode"},
		"$patch of a wrong type": {"Deployment", "$patch: {a: b}"},
		// The form of the patch.
		"empty":                            {"Deployment", ""},
		"null":                             {"Deployment", "null"},
		"no YAML":                          {"Deployment", "spec: ["},
		"control character":                {"Deployment", "spec: \"\x00\""},
		"two documents":                    {"Deployment", "spec: {}\n---\nspec: {}"},
		"a field twice":                    {"Deployment", "spec: {minReadySeconds: 1}\nspec: {minReadySeconds: 2}"},
		"aliases":                          {"Deployment", "a: &a [x]\nb: [*a, *a]"},
		"a merge key":                      {"Deployment", "spec:\n  <<: {replicas: 3}"},
		"depth":                            {"Deployment", strings.Repeat("{a: ", 40) + "1" + strings.Repeat("}", 40)},
		"many values":                      {"Deployment", "metadata: {labels: {" + keys(300) + "}}"},
		"too long":                         {"Deployment", "a: " + strings.Repeat("x", maxCharacters)},
		"no operation":                     {"Deployment", "[1]"},
		"another op":                       {"Deployment", op("merge", "/spec", "")},
		"copy":                             {"Deployment", `[{op: copy, from: /spec, path: /spec/template}]`},
		"the whole object":                 {"Deployment", op("replace", "", `, "value": {}`)},
		"no path":                          {"Deployment", "[{op: remove}]"},
		"no from":                          {"Deployment", "[{op: move, path: /spec/template}]"},
		"a map for a list":                 {"Deployment", pod("containers: {name: log}")},
		"a text for a list":                {"Deployment", pod("containers: log")},
		"an unknown $patch of a container": {"Deployment", pod("containers: [{name: nginx, $patch: explode}]")},
		"no such key":                      {"Deployment", op("remove", "/spec/nothing", "")},
		"a container twice":                {"Deployment", op("add", "/spec/template/spec/containers/-", `, "value": {"name": "nginx"}`)},
		"a container without a name":       {"Deployment", op("add", "/spec/template/spec/containers/-", `, "value": {"image": "a"}`)},
		"two of the same key": {
			"Deployment", "spec:\n  minReadySeconds: 1\n  minReadySeconds: 2\n  paused: true\n  paused: false\n",
		},
		"invalid YAML on another line": {"Deployment", "spec:\n  template:\n    spec: [\n"},
		"not a kind":                   {"Secret", "data: {}"},
	}
}

// TestRefused verifies the messages about rejected patches.
func TestRefused(t *testing.T) {
	cases := map[string]fixture.Case{}
	for name, test := range refused() {
		patched, errs := Apply(patches(test.kind, test.patch), children(), at)
		if len(errs) == 0 || patched != nil {
			t.Errorf("%s: errors %v", name, errs)
		}
		for _, err := range errs {
			if !strings.HasPrefix(err.Field, "spec.patches") || len(err.Detail) > maxMessage+8 {
				t.Errorf("%s: %s: %s", name, err.Field, err.Detail)
			}
		}
		cases[name] = caseOf(test.kind, errs, test.patch)
	}

	many := make([]v1alpha2.Patch, maxPatches+1)
	cases["too many patches"] = caseOf("Service", Check(many, at), slices.Repeat([]string{""}, len(many))...)
	half := "metadata: {labels: {" + keys(maxValues/2) + "}}"
	cases["too many values together"] = caseOf("Service", Check(patches("Service", half, half), at), half, half)
	wide := "metadata: {annotations: {a: '" + strings.Repeat("\U0001F600", maxCharacters-50) + "'}}"
	cases["too many bytes together"] = caseOf("Service", Check(patches("Service", wide, wide), at), wide, wide)
	for name, test := range refusedSinceStored() {
		if len(test.fields) > 0 {
			cases["new: "+name] = caseOf(test.kind, errorsOf(Refused(patches(test.kind, test.patches...), children(), at)), test.patches...)
		}
	}
	fixture.GoldenCases(t, "messages.txt", cases)
}

// caseOf returns a case of the golden file.
func caseOf(kind string, errs field.ErrorList, texts ...string) fixture.Case {
	entry := fixture.Case{Input: kind + ": " + strings.Join(texts, "\n"+kind+": ")}
	for _, err := range errs {
		entry.Messages = append(entry.Messages, err.Error())
	}
	return entry
}

// TestMessages verifies that each message is in the golden file.
func TestMessages(t *testing.T) {
	golden.Messages(t, map[string]string{
		"failed to create the checks of Pod Security: …": "the checks are constants",
		"error converting YAML to JSON: ":                "a part of an error that is not in the message",
		"unmarshal errors:\n":                            "a part of an error that is not in the message",
		": node contents:":                               "a part of an error that is not in the message",
	}, "testdata/messages.txt")
}

// TestRefusedByIndex verifies that the error references the wrong patch by its index.
func TestRefusedByIndex(t *testing.T) {
	three := patches("Deployment", "{spec: {minReadySeconds: 3}}", "{spec: {replicas: 5}}", "{spec: {minReadySeconds: 4}}")
	_, errs := Apply(three, children(), at)
	if len(errs) != 1 || errs[0].Field != "spec.patches[1].patch" {
		t.Error(errs)
	}
	half := "{metadata: {labels: {" + keys(maxValues/2) + "}}}"
	if errs = Check(patches("Service", half), at); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestApplySideBySide verifies that Apply can run concurrently, because reconciles and reviews do.
func TestApplySideBySide(t *testing.T) {
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			if _, errs := Apply(patches("Deployment", pod("hostAliases: [{ip: 10.0.0.1}]"), "[{op: add, path: /spec/minReadySeconds, value: 3}]"),
				children(), at); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
	done.Wait()
}

// TestProtectedFieldsExist verifies that the API has each protected field. A misspelled name would
// protect nothing.
func TestProtectedFieldsExist(t *testing.T) {
	exists := func(in reflect.Type, at string) bool {
		for _, name := range strings.Split(at, ".") {
			for in.Kind() == reflect.Pointer {
				in = in.Elem()
			}
			field, found := typeOf(in, name)
			if !found {
				return false
			}
			in = field.Type
		}
		return true
	}
	for name, rules := range kinds {
		object := rules.empty()
		if got := reflect.TypeOf(object).Elem().Name(); got != name {
			t.Errorf("%s: makes a %s", name, got)
		}
		for _, own := range append(rules.kept, rules.added...) {
			if !exists(reflect.TypeOf(object), own.field) {
				t.Errorf("%s: there is no %s", name, own.field)
			}
		}
	}
	for _, own := range keptOfNginx {
		if !exists(reflect.TypeFor[corev1.Container](), own.field) {
			t.Errorf("a container has no %s", own.field)
		}
	}
}

// TestLongLists verifies that only lists with a merge key, which are merged element by element, are
// bounded.
func TestLongLists(t *testing.T) {
	list := func(n int) []any {
		var out []any
		for i := range n {
			out = append(out, map[string]any{"name": strconv.Itoa(i), "ip": strconv.Itoa(i)})
		}
		return out
	}
	for n, valid := range map[int]bool{maxMerged: true, maxMerged + 1: false} {
		volumes := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": list(n)}}}}
		if err := readable(reflect.TypeFor[appsv1.Deployment](), volumes, ""); (err == nil) != valid {
			t.Errorf("%d volumes: %v", n, err)
		}
		rules := map[string]any{"spec": map[string]any{"ingress": list(n)}}
		if err := readable(reflect.TypeFor[networkingv1.NetworkPolicy](), rules, ""); err != nil {
			t.Errorf("%d rules: %v", n, err)
		}
	}
}
