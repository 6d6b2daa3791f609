package nginxoperator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/patch"
)

// notPatchable says why the children of a kind cannot be patched.
var notPatchable = map[string]string{
	"ConfigMap": "its name stands for its content",
}

func withPatches(patches ...v1alpha2.Patch) func(*v1alpha2.NginxOperatorSpec) {
	return func(spec *v1alpha2.NginxOperatorSpec) { spec.Patches = patches }
}

func patchOf(kind, text string) v1alpha2.Patch {
	return v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: kind}, Patch: text}
}

// Whoever adds a kind of child is told here what is missing so that it can be patched.
func TestEachKindCanBePatchedOrIsExcused(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	decodeYAML(t, readFile(t, "../../config/crd/bases/operator.example.com_nginxoperators.yaml"), crd)
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == v1alpha2.GroupVersion.Version
	})
	target := crd.Spec.Versions[at].Schema.OpenAPIV3Schema.Properties["spec"].Properties["patches"].Items.Schema.Properties["target"]
	var allowed []string
	for _, one := range target.Properties["kind"].Enum {
		allowed = append(allowed, strings.Trim(string(one.Raw), `"`))
	}
	slices.Sort(allowed)
	if diff := gocmp.Diff(patch.Kinds(), allowed); diff != "" {
		t.Errorf("the enum of PatchTarget.Kind differs from the table of internal/patch/kinds.go (-table +enum):\n%s", diff)
	}
	object := fullObject()
	in := newInputs(t, object, object.Spec.Config.Inline, false)
	var checked []string
	for _, child := range patchable(object, in) {
		checked = append(checked, child.GetObjectKind().GroupVersionKind().Kind)
		if got := (&Reconciler{}).Child(object, checked[len(checked)-1]); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", child) {
			t.Errorf("Child has no %T for the dry run, but a %T", child, got)
		}
	}
	slices.Sort(checked)
	if diff := gocmp.Diff(patch.Kinds(), checked); diff != "" {
		t.Errorf("patchable returns other kinds than the table of internal/patch/kinds.go has (-table +patchable):\n%s", diff)
	}
	for _, child := range desired(object, in) {
		kind := child.GetObjectKind().GroupVersionKind().Kind
		if _, excused := notPatchable[kind]; slices.Contains(patch.Kinds(), kind) == excused {
			t.Errorf("%s: give it an entry in internal/patch/kinds.go, the enum of PatchTarget.Kind and patchable, or say in notPatchable "+
				"why it has none", kind)
		}
	}
}

func TestPatched(t *testing.T) {
	object := newObject(withPatches(
		patchOf("Deployment", "spec: {minReadySeconds: 5}"), patchOf("PodDisruptionBudget", "spec: {maxUnavailable: 2}")))
	in := newInputs(t, object, "", false)
	children, err := patched(object, in)
	if err != nil {
		t.Fatal(err)
	}
	for i, child := range desired(object, in) {
		if deployment, isDeployment := child.(*appsv1.Deployment); isDeployment {
			deployment.Spec.MinReadySeconds = 5
		}
		if diff := gocmp.Diff(child, children[i]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	of := &declaration{object: object}
	if diff := gocmp.Diff([]string{"Deployment"}, patchedKinds(of, children)); diff != "" {
		t.Errorf("one replica has no budget (-want +got):\n%s", diff)
	}
	if got := (&Reconciler{Image: testImage}).Child(object, "Deployment").(*appsv1.Deployment); got.Spec.MinReadySeconds != 5 {
		t.Error("the dry run is of a Deployment that is not patched")
	}
}

// A patch of what depends on Pods that run is a failure of the configuration, and no child is made of it.
func TestPatchThatFitsNoMore(t *testing.T) {
	object := newObject(withPatches(patchOf("Deployment",
		`[{op: test, path: /spec/template/spec/containers/0/ports/0/name, value: http}, {op: add, path: /spec/minReadySeconds, value: 5}]`)))
	in := newInputs(t, object, "", false)
	if found := patchBlockers(object, in); len(found) > 0 {
		t.Fatal(found)
	}
	in.running.containers = []containerPort{{"web", 8080, 8080}}
	children, err := patched(object, in)
	if found := applyFailure(err, nil); children != nil || found == nil || found.reason != v1alpha2.ReasonInvalidConfiguration ||
		!strings.HasPrefix(found.message, "spec.patches[0].patch: ") {
		t.Errorf("got %v, %v", found, children)
	}
}

func TestCheckPatches(t *testing.T) {
	for name, test := range map[string]struct {
		change        func(*v1alpha2.NginxOperatorSpec)
		wrong, warned string
	}{
		"none":  {change: func(*v1alpha2.NginxOperatorSpec) {}},
		"right": {change: withPatches(patchOf("Service", "spec: {allocateLoadBalancerNodePorts: false}"))},
		"wrong": {change: withPatches(patchOf("Service", "{}"), patchOf("Deployment", "spec: {replicas: 2}")), wrong: "spec.patches[1].patch"},
		"wrong once there are two replicas": {
			change: withPatches(patchOf("PodDisruptionBudget", "spec: {selector: {a: b}}")), wrong: "spec.patches[0].patch",
		},
		"no such child": {
			change: withPatches(patchOf("PodDisruptionBudget", "spec: {maxUnavailable: 2}")),
			warned: `spec.patches[0].target: there is no PodDisruptionBudget, so the patch changes nothing; there are ` +
				`Service "web", NetworkPolicy "web", Deployment "web"`,
		},
		"no such name": {
			change: withPatches(v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: "Service", Name: "wbe"}, Patch: "{}"}),
			warned: `there is no Service wbe, so the patch changes nothing; there are Service "web"`,
		},
		"no policy": {change: func(spec *v1alpha2.NginxOperatorSpec) {
			spec.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone}
			spec.Patches = []v1alpha2.Patch{patchOf("NetworkPolicy", "{}")}
		}, warned: "there is no NetworkPolicy"},
		"the index of the content's volume": {change: func(spec *v1alpha2.NginxOperatorSpec) {
			spec.Replicas = ptr.To[int32](2)
			spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
			spec.Patches = []v1alpha2.Patch{patchOf("Deployment", "[{op: test, path: /spec/template/spec/volumes/2/name, value: content}]")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			errs, warnings := (&Reconciler{Image: testImage}).CheckPatches(newObject(test.change))
			if (len(errs) > 0) != (test.wrong != "") || len(errs) > 0 && errs[0].Field != test.wrong {
				t.Errorf("want %q, got %v", test.wrong, errs)
			}
			if got := strings.Join(warnings, "\n"); (got != "") != (test.warned != "") || !strings.Contains(got, test.warned) {
				t.Errorf("want %q, got %q", test.warned, got)
			}
		})
	}
}
