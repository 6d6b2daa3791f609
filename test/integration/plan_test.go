package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
)

// manifestOf returns the manifest of the instance "web" with this spec.
func manifestOf(t *testing.T, spec v1alpha2.NginxOperatorSpec) string {
	t.Helper()
	raw := must1(yaml.Marshal(map[string]any{
		"apiVersion": v1alpha2.GroupVersion.String(), "kind": "NginxOperator", "metadata": map[string]any{"name": "web"}, "spec": spec,
	}))(t)
	return string(raw)
}

// versions returns the resourceVersions of an instance and its children.
func versions(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	out := map[string]string{}
	found := must1(childrenOf(t.Context(), namespace, name))(t)
	object := newInstance(namespace, name)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	all := []client.Object{object, found.deployment, found.service, found.policy}
	for i := range found.configMaps {
		all = append(all, &found.configMaps[i])
	}
	for _, one := range all {
		out[fmt.Sprintf("%T %s", one, one.GetName())] = one.GetResourceVersion()
	}
	return out
}

func planOf(t *testing.T, got printed) preview.Plan {
	t.Helper()
	var out preview.Plan
	if err := yaml.UnmarshalStrict([]byte(got.out), &out); err != nil {
		t.Fatalf("%v:\n%s\n%s", err, got.out, got.errors)
	}
	return out
}

// changed returns the children that a plan changes, as action and kind. It leaves out the names,
// because names of ConfigMaps contain hashes.
func changed(object preview.Object) []string {
	var out []string
	for _, child := range object.Children {
		out = append(out, child.Action+" "+child.Kind)
	}
	return out
}

// TestPlanComesTrue verifies that a plan predicts which children the operator changes, and whether
// it replaces Pods. A plan writes nothing. After the change, there is nothing left to plan. There
// are no ReplicaSets here, so the operator deletes the previous ConfigMap once the Pods are good.
func TestPlanComesTrue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	spec := v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](1), Config: &v1alpha2.Config{Inline: servers}}
	object := newInstance(namespace, "web")
	object.Spec = *spec.DeepCopy()
	serve(t, object)
	unchanged := nginx(t, namespace, manifestOf(t, spec), "plan", "-f", "-")
	wantAnswer(t, unchanged, 0, "= NginxOperator web does not change", "Pods: none are replaced")
	wantAnswer(t, nginx(t, namespace, manifestOf(t, spec), "plan", "-f", "-", "--server-side"), 0)

	for _, step := range []struct {
		name    string
		change  func(*v1alpha2.NginxOperatorSpec)
		changes []string
		rolls   bool
	}{
		{
			"only the Service", func(s *v1alpha2.NginxOperatorSpec) {
				s.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/a": "1"}}
			},
			[]string{"update Service"},
			false,
		},
		{
			"another configuration", func(s *v1alpha2.NginxOperatorSpec) {
				s.Config.Inline = strings.Replace(servers, "204", "200", 1)
			},
			[]string{"create ConfigMap", "update Deployment", "delete ConfigMap"},
			true,
		},
		{
			"more replicas", func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) },
			[]string{"update Deployment", "create PodDisruptionBudget"},
			false,
		},
		{
			"a field of the Pods", func(s *v1alpha2.NginxOperatorSpec) { s.DrainSeconds = ptr.To[int32](60) },
			[]string{"create ConfigMap", "update Deployment", "delete ConfigMap"},
			true,
		},
		{
			"no policy", func(s *v1alpha2.NginxOperatorSpec) {
				s.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone}
			},
			[]string{"delete NetworkPolicy"},
			false,
		},
	} {
		before := versions(t, namespace, "web")
		running := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment.Spec.Template
		step.change(&spec)
		manifest := manifestOf(t, spec)
		got := nginx(t, namespace, manifest, "plan", "-f", "-", "-o", "yaml")
		plan := planOf(t, got)
		if got.code != 1 || len(plan.Objects) != 1 || plan.Objects[0].Action != preview.Update || len(plan.Objects[0].Diff) == 0 {
			t.Fatalf("%s: code %d, plan %+v", step.name, got.code, plan)
		}
		if diff := cmp.Diff(step.changes, changed(plan.Objects[0])); diff != "" || plan.Objects[0].Pods.Roll != step.rolls {
			t.Errorf("%s: Pods %+v, changes (-want +got):\n%s", step.name, plan.Objects[0].Pods, diff)
		}
		if diff := cmp.Diff(before, versions(t, namespace, "web")); diff != "" {
			t.Fatalf("%s: the plan wrote something:\n%s", step.name, diff)
		}
		update(t, object, func(o *v1alpha2.NginxOperator) { spec.DeepCopyInto(&o.Spec) })
		waitFor(t, func() error {
			if left := nginx(t, namespace, manifest, "plan", "-f", "-"); left.code != 0 {
				return fmt.Errorf("%s: still planned:\n%s%s", step.name, left.out, left.errors)
			}
			return nil
		})
		rollOut(t, namespace, "web") // the entrance of the next step follows good Pods
		waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
		waitForMarker(t, namespace) // the plan does not show the name of the record on the Deployment
		rolled := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment.Spec.Template
		if differs := cmp.Diff(running, rolled) != ""; differs != step.rolls {
			t.Errorf("%s: Pods roll: %t, want %t", step.name, differs, step.rolls)
		}
	}
}

// TestPlanOfWhatIsNew verifies that a plan reports a rejection by admission as an error with the
// same message, and shows warnings. For an instance that does not exist, the plan creates the
// instance and all of its children. It considers a ConfigMap in the same manifest.
func TestPlanOfWhatIsNew(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	refused := manifestOf(t, v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{Inline: "server { no_such_directive; }"}})
	wantAnswer(t, nginx(t, namespace, refused, "plan", "-f", "-"), 2, "Error from server (Invalid)", "no_such_directive")
	misspelt := strings.Replace(refused, "config:", "confg:", 1)
	wantAnswer(t, nginx(t, namespace, misspelt, "plan", "-f", "-"), 2, `unknown field "spec.confg"`)

	fromConfigMap := manifestOf(t, v1alpha2.NginxOperatorSpec{
		Config: &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers", Key: "a"}},
	})
	got := nginx(t, namespace, fromConfigMap, "plan", "-f", "-", "-o", "yaml")
	blocked := planOf(t, got).Objects[0]
	if got.code != 1 || len(blocked.Children) > 0 || len(blocked.BlockedBy) != 1 ||
		blocked.BlockedBy[0].Reason != v1alpha2.ReasonReferenceNotFound {
		t.Fatalf("without its ConfigMap: %d, %+v", got.code, blocked)
	}
	configMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: servers}\ndata: {a: " + fmt.Sprintf("%q", servers) + "}\n---\n"
	got = nginx(t, namespace, configMap+fromConfigMap, "plan", "-f", "-", "-o", "yaml")
	plan := planOf(t, got)
	want := []string{"create ConfigMap", "create NetworkPolicy", "create Service", "create Deployment"}
	if diff := cmp.Diff(want, changed(plan.Objects[1])); diff != "" || *plan.Objects[1].Pods != (preview.Pods{After: 1}) {
		t.Errorf("Pods %+v, changes (-want +got):\n%s", plan.Objects[1].Pods, diff)
	}
	list := &v1alpha2.NginxOperatorList{}
	if must(t, suite.admin.List(t.Context(), list, client.InNamespace(namespace))); len(list.Items) > 0 {
		t.Error("a plan has created an object")
	}

	old := "apiVersion: operator.example.com/v1alpha1\nkind: NginxOperator\nmetadata: {name: old}\nspec: {port: 8081, replicas: 3}\n"
	wantAnswer(t, nginx(t, namespace, old, "plan", "-f", "-"), 1,
		"Warning: "+deprecation, "+ NginxOperator old is created", "+ Deployment old is created", "Pods: 3 are created")
	create(t, newInstance(namespace, "old"))
	waitForChildren(t, namespace, "old")
	wantAnswer(t, nginx(t, namespace, old, "plan", "-f", "-"), 1, "~ NginxOperator old changes", "~ Deployment old changes",
		"Pods: a rolling update replaces all 1")
}

// TestPlanShowsEveryRefusal verifies that a plan asks the API server about every child, with the
// user's permissions, and shows each rejection with its field. It shows no change that the operator
// would not make because of a rejection.
func TestPlanShowsEveryRefusal(t *testing.T) {
	t.Parallel()
	namespace, _, _ := newWeb(t, nil)
	manifest := manifestOf(t, v1alpha2.NginxOperatorSpec{
		Replicas:      ptr.To[int32](2),
		NetworkPolicy: &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{{}}},
		Expose:        &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: "A.example.com"}}}},
		Patches:       []v1alpha2.Patch{patchOf("PodDisruptionBudget", "spec: {minAvailable: 1}")},
	})
	got := nginx(t, namespace, manifest, "plan", "-f", "-", "-o", "yaml")
	plan := planOf(t, got).Objects[0]
	var told []string
	for _, blocker := range plan.BlockedBy {
		field, _, _ := strings.Cut(blocker.Message, ":")
		told = append(told, blocker.Reason+" "+field)
	}
	want := []string{
		"InvalidConfiguration spec.networkPolicy.from[0]", "InvalidConfiguration spec.patches[0].patch",
		"InvalidConfiguration spec.expose.ingress.hosts[0].host",
	}
	if diff := cmp.Diff(want, told); diff != "" || got.code != 1 {
		t.Errorf("code %d, blockers (-want +got):\n%s", got.code, diff)
	}
	if diff := cmp.Diff([]string(nil), changed(plan)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestPlanWithFewPermissions verifies that a user who may only write NginxOperators still sees the
// changes that the operator would make, and that the API server did not check them.
func TestPlanWithFewPermissions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dev"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"operator.example.com"}, Resources: []string{"nginxoperators"}, Verbs: []string{"get", "create", "patch"}},
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "dev-of-" + namespace}},
	}
	object := newInstance(namespace, "web")
	for _, one := range []client.Object{role, binding, object} {
		create(t, one)
	}
	waitForChildren(t, namespace, "web")
	manifest := manifestOf(t, v1alpha2.NginxOperatorSpec{Image: noSuchImage, Replicas: ptr.To[int32](2)})
	waitFor(t, func() error { // the role takes effect a moment after the write
		got := nginx(t, namespace, manifest, "plan", "-f", "-", "-o", "yaml", "--as", "dev-of-"+namespace)
		if got.code != 1 {
			return fmt.Errorf("code %d: %s", got.code, got.errors)
		}
		found := planOf(t, got).Objects[0]
		want := []string{"update ConfigMap", "update Service", "update NetworkPolicy", "update Deployment", "create PodDisruptionBudget"}
		if diff := cmp.Diff(want, changed(found)); diff != "" || !found.Pods.Roll {
			return fmt.Errorf("Pods %+v, changes (-want +got):\n%s", found.Pods, diff)
		}
		for _, child := range found.Children {
			if !child.Unchecked {
				return fmt.Errorf("%s %s counts as checked by the API server", child.Kind, child.Name)
			}
		}
		return nil
	})
}
