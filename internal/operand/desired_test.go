package operand

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

// asYAML returns objects as kubectl prints them.
func asYAML(t *testing.T, objects []client.Object) string {
	t.Helper()
	var text strings.Builder
	for _, object := range objects {
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(raw))
	}
	return text.String()
}

// asIn010 has declarations that v1alpha1 can express. testdata/v0.1.0-*.yaml has the children that
// release 0.1.0 creates for them.
var asIn010 = map[string]struct {
	object *v1alpha2.NginxOperator
	ipv6   bool
}{
	"defaults": {object: fixture.NewObject()},
	"port-80":  {object: fixture.NewObject(fixture.OnPort(80))},
	"ipv6":     {object: fixture.NewObject(), ipv6: true},
	"three-replicas": {object: fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.Replicas, s.ForceRedeploy = ptr.To[int32](3), "2026-01-01"
	})},
}

// TestDesired verifies all children of specs that differ in the set or in the form of their
// children.
func TestDesired(t *testing.T) {
	for name, test := range asIn010 {
		t.Run(name, func(t *testing.T) {
			fixture.Golden(t, name+".yaml", asYAML(t, Desired(test.object, newInputs(t, test.object, "", test.ipv6))))
		})
	}
	full := fullObject()
	in := newInputs(t, full, full.Spec.Config.Inline, false)
	in.Content = ptr.To(NewContent(&corev1.ConfigMap{
		Data:       map[string]string{"index.html": "<p>hello\n"},
		BinaryData: map[string][]byte{"icon.png": {0x89, 'P'}},
	}, nil))
	in.CertificatesHash = "0123456789abcdef"
	fixture.Golden(t, "all-fields.yaml", asYAML(t, Desired(full, in)))
}

// fullObject returns an object that uses many fields together, and requests labels and annotations
// of the operator. TestExamplesOfFields covers each field alone.
func fullObject() *v1alpha2.NginxOperator {
	return fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.Replicas, s.Image, s.ForceRedeploy = ptr.To[int32](2), "registry.example.com/nginx:1.29.1", "2026-01-01"
		s.Ports = []v1alpha2.Port{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "admin", Port: 8081}}
		s.Config = &v1alpha2.Config{Inline: "server {\n    listen 80;\n    listen 8081;\n    listen 8443 ssl;\n}\n"}
		s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
		s.TLS = []v1alpha2.TLS{{SecretName: "shop.example.com", Port: ptr.To[int32](8443)}, {SecretName: "client-ca"}}
		s.Service = &v1alpha2.Service{
			Type:                  corev1.ServiceTypeLoadBalancer,
			LoadBalancerClass:     ptr.To("example.com/lb"),
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Labels:                map[string]string{"team": "shop", wellknown.LabelInstance: "not-yours"},
			Annotations:           map[string]string{"example.com/lb-size": "small", wellknown.AnnotationLastDeclared: "not-yours"},
		}
		s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}}
		s.PodTemplate = &v1alpha2.PodTemplate{
			Labels:       map[string]string{"team": "shop", wellknown.LabelName: "not-yours"},
			Annotations:  map[string]string{"example.com/scrape": "true", wellknown.AnnotationForceRedeploy: "not-yours"},
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations:  []corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists}},
			Affinity:     &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway},
			},
			PriorityClassName: "important",
			ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "registry"}},
		}
		s.DrainSeconds = ptr.To[int32](60)
	})
}

// TestPodsAreThoseOf010 verifies that an upgrade restarts no Pods. For specs that v1alpha1 can
// express, the Pod template, the configuration, and its name equal release 0.1.0 byte for byte.
func TestPodsAreThoseOf010(t *testing.T) {
	for name, test := range asIn010 {
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(filepath.Join("testdata", "v0.1.0-"+name+".yaml")) //nolint:gosec // a file of testdata
			if err != nil {
				t.Fatal(err)
			}
			now := asYAML(t, Desired(test.object, newInputs(t, test.object, "", test.ipv6)))
			if diff := gocmp.Diff(whatRolls(t, string(before)), whatRolls(t, now)); diff != "" {
				t.Errorf("(-0.1.0 +now):\n%s", diff)
			}
		})
	}
}

// whatRolls returns the serialized Pod template of a list of children, and the names and data of
// their ConfigMaps.
func whatRolls(t *testing.T, children string) []string {
	t.Helper()
	var out []string
	for _, document := range strings.Split(children, "---\n")[1:] {
		child := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &child.Object); err != nil {
			t.Fatal(err)
		}
		switch child.GetKind() {
		case "ConfigMap":
			raw, _ := yaml.Marshal(child.Object["data"])
			out = append(out, child.GetName(), string(raw))
		case "Deployment":
			template, found, err := unstructured.NestedMap(child.Object, "spec", "template")
			raw, _ := yaml.Marshal(template)
			if err != nil || !found {
				t.Fatalf("no Pod template: %v", err)
			}
			out = append(out, string(raw))
		}
	}
	if len(out) != 3 {
		t.Fatalf("found %d parts, want the name and data of a ConfigMap and a Pod template", len(out))
	}
	return out
}

// TestDesiredIsPure verifies that equal declarations result in equal bytes of the children.
// Otherwise every reconcile would write.
func TestDesiredIsPure(t *testing.T) {
	object := fullObject()
	before, in := object.DeepCopy(), newInputs(t, object, "server { listen 80; }", false)
	in.Content = &Content{Hash: "abc"}
	first, second := Desired(object, in), Desired(object, in)
	for _, child := range first {
		// A change of a child must not affect the object or the next reconcile.
		if deployment, ok := child.(*appsv1.Deployment); ok {
			deployment.Spec.Template.Spec.NodeSelector["changed"] = "yes"
			deployment.Spec.Template.Spec.Containers[0].Resources.Limits["changed"] = resource.MustParse("1")
			deployment.Spec.Template.Labels["changed"] = "yes"
		}
	}
	if diff := gocmp.Diff(asYAML(t, second), asYAML(t, Desired(object, in))); diff != "" {
		t.Errorf("two reconciles differ:\n%s", diff)
	}
	if diff := gocmp.Diff(before, object); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
}

// TestDesiredWithoutDefaults verifies that an object that was stored without the schema's defaults
// is treated as if it had them.
func TestDesiredWithoutDefaults(t *testing.T) {
	bare, full := fixture.NewObject(), fixture.NewObject(fixture.OnPort(v1alpha2.DefaultPort))
	bare.Spec = v1alpha2.NginxOperatorSpec{}
	got, want := Desired(bare, newInputs(t, bare, "", false)), Desired(full, newInputs(t, full, "", false))
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-with defaults +without):\n%s", diff)
	}
}

// TestNamesOfConfigMaps verifies that ConfigMaps whose files differ in name or content have
// different names. The name is valid for every valid object name.
func TestNamesOfConfigMaps(t *testing.T) {
	object, names := fixture.NewObject(), map[string]bool{}
	for _, files := range []nginxconf.Files{
		{"nginx.conf": "a"},
		{"nginx.conf": "b"},
		{"nginx.conf": "a", "servers.conf": "b"},
		{"nginx.conf": "b", "servers.conf": "a"},
		{"nginx.conf": "a", "servers.conf": "b "},
		{"nginx.conf": "a", "other.conf": "b"},
	} {
		name := ConfigName(object, Inputs{Config: NewConfiguration(files)})
		if names[name] || name != ConfigName(object, Inputs{Config: NewConfiguration(files)}) {
			t.Errorf("%v: name %s", files, name)
		}
		names[name] = true
		if !strings.HasPrefix(name, "web-") || len(name) != len("web-")+10 {
			t.Errorf("name %s", name)
		}
	}
	text := NewContent(&corev1.ConfigMap{Data: map[string]string{"a": "b"}}, nil)
	binary := NewContent(&corev1.ConfigMap{BinaryData: map[string][]byte{"a": []byte("b")}}, nil)
	name := ContentName(object, Inputs{Content: &text})
	if !strings.HasPrefix(name, "web-content-") || text.Hash == binary.Hash {
		t.Errorf("name %s, hashes %s and %s", name, text.Hash, binary.Hash)
	}
}

// TestNothingOverwritesTheManifests verifies that the code does not change values of the manifests.
// A value is either in the manifest or in the code.
func TestNothingOverwritesTheManifests(t *testing.T) {
	constant := map[string]client.Object{
		"ConfigMap": assets.ConfigMap(), "NetworkPolicy": assets.NetworkPolicy(), "Deployment": assets.Deployment(),
		"PodDisruptionBudget": assets.PodDisruptionBudget(),
	}
	for _, e := range examplesOf(t, fieldsPage(t)) {
		fields := maps.Clone(e.spec)
		delete(fields, "patches") // patches may change values of the manifests
		children := e.children(t, fields)
		for kind, manifest := range constant {
			if !children.Has(kind + ".kind: " + kind) {
				continue // not every object has a PodDisruptionBudget
			}
			for _, line := range leavesOf(t, kind, manifest) {
				if !strings.HasSuffix(line, ": <nil>") && !children.Has(line) {
					t.Errorf("%s: the manifest has %q, and the code something else", e.name, line)
				}
			}
		}
	}
}
