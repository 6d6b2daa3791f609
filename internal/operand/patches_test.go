package operand

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/patch"
)

// notPatchable has the reason why the children of a kind cannot be patched.
var notPatchable = map[string]string{
	"ConfigMap": "its name stands for its content",
}

// TestEachKindCanBePatchedOrIsExcused reports the missing parts of a new kind of child for patches.
func TestEachKindCanBePatchedOrIsExcused(t *testing.T) {
	var allowed []string
	for _, kind := range specSchema(t).Properties["patches"].Items.Schema.Properties["target"].Properties["kind"].Enum {
		allowed = append(allowed, strings.Trim(string(kind.Raw), `"`))
	}
	slices.Sort(allowed)
	if diff := gocmp.Diff(patch.Kinds(), allowed); diff != "" {
		t.Errorf("the enum of PatchTarget.Kind differs from the table of internal/patch/kinds.go (-table +enum):\n%s", diff)
	}
	object := fullObject()
	in := newInputs(t, object, object.Spec.Config.Inline, false)
	var checked []string
	for _, child := range patchable(object, in) {
		checked = append(checked, KindOf(child))
	}
	slices.Sort(checked)
	if diff := gocmp.Diff(patch.Kinds(), checked); diff != "" {
		t.Errorf("patchable returns other kinds than the table of internal/patch/kinds.go has (-table +patchable):\n%s", diff)
	}
	for _, child := range Desired(object, in) {
		kind := KindOf(child)
		if _, excused := notPatchable[kind]; slices.Contains(patch.Kinds(), kind) == excused {
			t.Errorf("%s: give it an entry in internal/patch/kinds.go, the enum of PatchTarget.Kind and patchable, or say in notPatchable "+
				"why it has none", kind)
		}
	}
}

func TestPatched(t *testing.T) {
	object := fixture.NewObject(fixture.WithPatches(
		fixture.PatchOf("Deployment", "spec: {minReadySeconds: 5}"), fixture.PatchOf("PodDisruptionBudget", "spec: {maxUnavailable: 2}")))
	in := newInputs(t, object, "", false)
	children, err := Children(object, in)
	if err != nil {
		t.Fatal(err)
	}
	for i, child := range Desired(object, in) {
		if deployment, isDeployment := child.(*appsv1.Deployment); isDeployment {
			deployment.Spec.MinReadySeconds = 5
		}
		if diff := gocmp.Diff(child, children[i]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	object.Spec.Patches = append(object.Spec.Patches, fixture.PatchOf("Deployment", "spec: {template: {spec: {priority: 5}}}"))
	if got := (Release{Image: fixture.Image}).PodTemplate(object); ptr.Deref(got.Spec.Priority, 0) != 5 {
		t.Error("the Pod template for the dry run has no patch")
	}
	if diff := gocmp.Diff([]string{"Deployment"}, PatchedKinds(object.Spec.Patches, children)); diff != "" {
		t.Errorf("one replica has no budget (-want +got):\n%s", diff)
	}
}

func TestCheckPatches(t *testing.T) {
	for name, test := range map[string]struct {
		change        func(*v1alpha2.NginxOperatorSpec)
		wrong, warned string
	}{
		"none":  {change: func(*v1alpha2.NginxOperatorSpec) {}},
		"right": {change: fixture.WithPatches(fixture.PatchOf("Service", "spec: {allocateLoadBalancerNodePorts: false}"))},
		"wrong": {
			change: fixture.WithPatches(fixture.PatchOf("Service", "{}"), fixture.PatchOf("Deployment", "spec: {replicas: 2}")),
			wrong:  "spec.patches[1].patch",
		},
		"wrong once there are two replicas": {
			change: fixture.WithPatches(fixture.PatchOf("PodDisruptionBudget", "spec: {selector: {a: b}}")), wrong: "spec.patches[0].patch",
		},
		"no such child": {
			change: fixture.WithPatches(fixture.PatchOf("PodDisruptionBudget", "spec: {maxUnavailable: 2}")),
			warned: `spec.patches[0].target: PodDisruptionBudget does not exist, so the patch changes nothing; the children are ` +
				`Service "web", NetworkPolicy "web", Deployment "web"`,
		},
		"no such name": {
			change: fixture.WithPatches(v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: "Service", Name: "wbe"}, Patch: "{}"}),
			warned: `Service wbe does not exist, so the patch changes nothing; the children are Service "web"`,
		},
		"no policy": {change: func(spec *v1alpha2.NginxOperatorSpec) {
			spec.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone}
			spec.Patches = []v1alpha2.Patch{fixture.PatchOf("NetworkPolicy", "{}")}
		}, warned: "NetworkPolicy does not exist"},
		"the index of the content's volume": {change: func(spec *v1alpha2.NginxOperatorSpec) {
			spec.Replicas = ptr.To[int32](2)
			spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
			spec.Patches = []v1alpha2.Patch{fixture.PatchOf("Deployment", "[{op: test, path: /spec/template/spec/volumes/2/name, value: content}]")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			errs, warnings := Release{Image: fixture.Image}.CheckPatches(fixture.NewObject(test.change))
			if (len(errs) > 0) != (test.wrong != "") || len(errs) > 0 && errs[0].Field != test.wrong {
				t.Errorf("want %q, got %v", test.wrong, errs)
			}
			if got := strings.Join(warnings, "\n"); (got != "") != (test.warned != "") || !strings.Contains(got, test.warned) {
				t.Errorf("want %q, got %q", test.warned, got)
			}
		})
	}
}
