package preview

import (
	"bytes"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
)

func object(kind string, fields map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a"}}}
	maps.Copy(out.Object, fields)
	return out
}

// TestCompare verifies that a diff omits fields that change with each write, and values of Secrets.
func TestCompare(t *testing.T) {
	data := map[string]any{"k": "v"}
	noisy := object("ConfigMap", map[string]any{"data": data, "status": "seen", "metadata": map[string]any{
		"name": "a", "resourceVersion": "7", "uid": "u", "generation": int64(2), "managedFields": []any{"m"},
		"annotations": map[string]any{lastApplied: "{}"},
	}})
	for name, test := range map[string]struct {
		before, after *unstructured.Unstructured
		want          string
	}{
		"only noise": {object("ConfigMap", map[string]any{"data": map[string]any{"k": "v"}}), noisy, ""},
		"a line of a text": {
			object("ConfigMap", map[string]any{"data": map[string]any{"k": "one\ntwo\n"}}),
			object("ConfigMap", map[string]any{"data": map[string]any{"k": "one\nthree\n"}}),
			"--- live\n+++ planned\n@@ -2,7 +2,7 @@\n data:\n   k: |\n     one\n-    two\n+    three\n kind: ConfigMap\n metadata:\n   name: a\n",
		},
		"a Secret": {
			object("Secret", map[string]any{"data": map[string]any{"gone": "c2VjcmV0", "kept": "c2VjcmV0", "other": "c2VjcmV0"}}),
			object("Secret", map[string]any{"data": map[string]any{"kept": "c2VjcmV0", "new": "c2VjcmV0", "other": "b3RoZXI="}}),
			"--- live\n+++ planned\n@@ -1,8 +1,8 @@\n apiVersion: v1\n data:\n-  gone: '***'\n   kept: '***'\n-  other: '*** (before)'\n" +
				"+  new: '***'\n+  other: '*** (after)'\n kind: Secret\n metadata:\n   name: a\n",
		},
		"a new object": {
			nil, object("Pod", nil), "--- live\n+++ planned\n@@ -0,0 +1,4 @@\n+apiVersion: v1\n+kind: Pod\n+metadata:\n+  name: a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Compare(test.before, test.after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func deployment(replicas int32, image string) *appsv1.Deployment {
	surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(replicas),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}},
		Strategy: appsv1.DeploymentStrategy{
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
		},
	}}
}

// TestPods verifies the effect of a changed Deployment on the Pods, as numbers and as text.
func TestPods(t *testing.T) {
	const strategy = "maxSurge 1, maxUnavailable 0"
	const rolled = "Pods: a rolling update replaces all 2 (" + strategy + ")"
	for name, test := range map[string]struct {
		before, after *appsv1.Deployment
		want          Pods
		words         string
	}{
		"created":       {nil, deployment(2, "a"), Pods{After: 2}, "Pods: 2 are created"},
		"another image": {deployment(2, "a"), deployment(2, "b"), Pods{true, 2, 2, strategy}, rolled},
		"scaled": {
			deployment(2, "a"), deployment(3, "a"),
			Pods{Before: 2, After: 3},
			"Pods: 3 instead of 2, running Pods are not replaced",
		},
		"scaled and rolled": {
			deployment(2, "a"), deployment(3, "b"), Pods{true, 2, 3, strategy}, rolled + ", and changes their number to 3",
		},
		"without Pods": {deployment(0, "a"), deployment(0, "b"), Pods{}, "Pods: none are replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			got := podsOf(test.before, test.after)
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Error(diff)
			}
			if words := got.words(printer.Painter{}); words != test.words {
				t.Errorf("got %q, want %q", words, test.words)
			}
		})
	}
}

// TestMerge verifies the local result of a patch that the user has no permission for.
func TestMerge(t *testing.T) {
	before := deployment(2, "a")
	before.Annotations = map[string]string{"kept": "1", "gone": "1"}
	patch := []byte(`{"metadata":{"annotations":{"gone":null}},"spec":{"replicas":3}}`)
	for _, kind := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType} {
		after := before.DeepCopy()
		if err := merge(before, client.RawPatch(kind, patch), after); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"kept": "1"}, after.Annotations); diff != "" || *after.Spec.Replicas != 3 {
			t.Errorf("%s: %d replicas, annotations %s", kind, *after.Spec.Replicas, diff)
		}
	}
}

// TestRenderPlan verifies a plan as text.
func TestRenderPlan(t *testing.T) {
	plan := Plan{
		Warnings: []string{"port 80 \x1b[2J"},
		Objects: []Object{
			{Change: Change{Action: Create, Kind: "ConfigMap", Name: "pages", Diff: "+not shown"}},
			{
				Change: Change{Action: Update, Kind: "NginxOperator", Name: "web", Diff: "-  replicas: 1\n+  replicas: 2\n"},
				Paused: true, BlockedBy: []v1alpha2.Blocker{{Reason: "RolledBack", Message: "failed"}},
				Children: []Change{
					{Action: Update, Kind: "Deployment", Name: "web", Diff: "-a\n+b\n", Unchecked: true},
					{Action: Delete, Kind: "Ingress", Name: "web"},
				},
				Pods:  &Pods{Before: 1, After: 2},
				Notes: []string{"assumed"},
			},
		},
	}
	var out bytes.Buffer
	if err := plan.Render(&out, printer.Painter{}); err != nil {
		t.Fatal(err)
	}
	const want = `Warning: port 80 \x1b[2J
+ ConfigMap pages is created
~ NginxOperator web changes
-  replicas: 1
+  replicas: 2
  blocked by RolledBack: failed
  spec.paused: the operator makes these changes after: kubectl nginx resume
  ~ Deployment web changes (not checked by the API server: you cannot write it)
    -a
    +b
  - Ingress web is deleted
  Pods: 2 instead of 1, running Pods are not replaced
  note: assumed
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !plan.Differs() || (&Plan{Objects: []Object{{Change: Change{Action: None}}}}).Differs() {
		t.Error("a plan differs where nothing changes, or not where something does")
	}
}

// TestReleaseImage verifies that the assumed default image is the image of this release.
func TestReleaseImage(t *testing.T) {
	manifest, err := os.ReadFile("../../../config/manager/manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(manifest), "name: RELATED_IMAGE_NGINX\n          value: "+releaseImage+"\n") {
		t.Errorf("the release does not pin %q", releaseImage)
	}
}

// TestInferNameservers verifies that a plan has the name servers of the running configuration, unless
// the running spec declares them, and otherwise notes which ones it assumes.
func TestInferNameservers(t *testing.T) {
	object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) { s.Nginx = &v1alpha2.Nginx{Resolver: &v1alpha2.Resolver{}} })
	owner := metav1.NewControllerRef(object, v1alpha2.GroupVersion.WithKind("NginxOperator"))
	for _, test := range []struct {
		spec  string
		notes int
		want  []string
	}{
		{`{"nginx":{"resolver":{}}}`, 0, []string{"10.0.0.10", "[fd00::a]"}},
		{`{"nginx":{"resolver":{"addresses":["10.0.0.10"]}}}`, 1, []string{"10.96.0.10"}},
	} {
		running := fixture.NewDeployment(1)
		running.Namespace, running.Name, running.OwnerReferences = object.Namespace, object.Name, []metav1.OwnerReference{*owner}
		running.Annotations = map[string]string{wellknown.AnnotationSpec: test.spec}
		running.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web-1"}},
		}}}
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: "web-1"}}
		config.Data = map[string]string{nginxconf.ResolverFile: "resolver 10.0.0.10 [fd00::a] valid=5s ipv6=off;\n"}
		cluster := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(running, config).Build()
		planner := Planner{Client: cluster, DefaultImage: fixture.Image}
		release, notes, err := planner.release(t.Context(), object)
		if diff := cmp.Diff(test.want, release.Nameservers); diff != "" || len(notes) != test.notes || err != nil {
			t.Errorf("%s: notes %q, %v (-want +got):\n%s", test.spec, notes, err, diff)
		}
	}
}
