package change

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
)

// render returns the ID of an object's Pods under a release with this image.
func render(t *testing.T, object *v1alpha2.NginxOperator, image string, in operand.Inputs) ID {
	t.Helper()
	release := operand.Release{
		Image: image, ExporterImage: fixture.ExporterImage, RequestMetricsImage: fixture.RequestMetricsImage, Nameservers: []string{"10.96.0.10"},
	}
	servers := ""
	if object.Spec.Config != nil {
		servers = object.Spec.Config.Inline
	}
	config, err := release.Configuration(object, nginxconf.Whole(servers))
	if err != nil {
		t.Fatal(err)
	}
	in.Config, in.Image, in.Exporter = config, release.Inputs(object).Image, release.Inputs(object).Exporter
	children, err := operand.Children(object, in)
	if err != nil {
		return "" // the patches need what was removed
	}
	id, err := Of(object, in, &operand.ChildOf[*appsv1.Deployment](children).Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestID verifies which changes are the user's, and which change the Pods.
func TestID(t *testing.T) {
	type spec = v1alpha2.NginxOperatorSpec
	for name, test := range map[string]struct {
		change     func(*spec)
		image      string
		in         operand.Inputs
		user, pods bool
	}{
		"nothing":                  {},
		"the image of the release": {image: "other", pods: true},
		"the image of the spec":    {change: func(s *spec) { s.Image = "other" }, user: true, pods: true},
		"replicas":                 {change: func(s *spec) { s.Replicas = ptr.To[int32](7) }},
		"the Service":              {change: func(s *spec) { s.Service = &v1alpha2.Service{Type: corev1.ServiceTypeNodePort} }},
		"the NetworkPolicy":        {change: func(s *spec) { s.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: "None"} }},
		"the Ingress":              {change: fixture.Exposed(v1alpha2.IngressHost{Host: "a.example.com"})},
		"a pause":                  {change: func(s *spec) { s.Paused = true }},
		"another drain":            {change: func(s *spec) { s.DrainSeconds = ptr.To[int32](26) }, user: true, pods: true},
		"an empty template":        {change: func(s *spec) { s.PodTemplate = &v1alpha2.PodTemplate{} }, user: true},
		"a label of the Pods": {change: func(s *spec) {
			s.PodTemplate = &v1alpha2.PodTemplate{Labels: map[string]string{"a": "b"}}
		}, user: true, pods: true},
		"the appProtocol of a port":  {change: func(s *spec) { s.Ports[0].AppProtocol = "kubernetes.io/ws" }},
		"the name of a port":         {change: fixture.Ports("web", 8080)},
		"the number of a port":       {change: fixture.Ports("http", 8081), user: true, pods: true},
		"a redeployment":             {change: func(s *spec) { s.ForceRedeploy = "now" }, user: true, pods: true},
		"a default of the schema":    {change: func(s *spec) { s.DrainSeconds = ptr.To(v1alpha2.DefaultDrainSeconds) }, user: true},
		"the content":                {in: operand.Inputs{Content: &operand.Content{Hash: "other"}}, user: true, pods: true},
		"servers without an effect":  {in: operand.Inputs{ServersHash: "other"}, user: true},
		"renewed Secrets":            {in: operand.Inputs{SecretsHash: "a", CertificatesHash: "b"}},
		"ConfigMaps after a forgery": {in: operand.Inputs{Suffix: "-0123abcd"}},
		"names of running Pods": {in: operand.Inputs{Running: operand.Running{
			Containers: []operand.ContainerPort{{Name: "other", Number: 8080, Listens: 8080}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := render(t, fixture.NewObject(fixture.Ports("http", 8080)), fixture.Image, operand.Inputs{})
			object := fixture.NewObject(fixture.Ports("http", 8080))
			if test.change != nil {
				test.change(&object.Spec)
			}
			image := fixture.Image
			if test.image != "" {
				image = test.image
			}
			after := render(t, object, image, test.in)
			if (before.User() != after.User()) != test.user || before.SamePods(after) == test.pods ||
				before.SameUser(after) == (test.user && test.pods) {
				t.Errorf("%s became %s", before, after)
			}
		})
	}
	if unknown := ID(""); unknown.SamePods("") || unknown.SameUser("") || NewID("a", "").SamePods(NewID("a", "")) {
		t.Error("unknown Pods are the same")
	}
}

// TestStableID verifies that a release does not change the user's part of a spec. An upgrade would
// take the release's change for the user's, and change all Pods at once.
func TestStableID(t *testing.T) {
	for want, object := range map[string]*v1alpha2.NginxOperator{
		"89b89d859e": fixture.NewObject(),
		"8642aa6b5d": fixture.NewObject(fixture.Ports("http", "80 to 8080"), fixture.Monitored(), func(s *v1alpha2.NginxOperatorSpec) {
			s.Image, s.Config = "example.com/nginx:1", &v1alpha2.Config{Inline: "server { listen 8080; }"}
		}),
	} {
		if id := render(t, object, fixture.Image, operand.Inputs{}); id.User() != want {
			t.Errorf("the user's part has the hash %s, and had %s", id.User(), want)
		}
	}
}

// TestUserPart verifies, for each field in the examples of the field guide, that the user's part of
// a spec changes with the Pods.
func TestUserPart(t *testing.T) {
	page, err := docs.Fields(os.DirFS("../../docs/guide"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, example := range docs.Examples(page) {
		for _, document := range example.Documents {
			var manifest map[string]any
			if err := yaml.Unmarshal([]byte(document), &manifest); err != nil || manifest["kind"] != "NginxOperator" {
				continue
			}
			spec, _ := manifest["spec"].(map[string]any)
			before := render(t, objectOf(t, spec), fixture.Image, operand.Inputs{})
			for _, path := range fieldsIn(spec, nil) {
				other := runtime.DeepCopyJSON(spec)
				remove(other, path)
				object := objectOf(t, other)
				if len(object.Spec.Ports) == 0 && object.Spec.Ports != nil {
					continue // no example has a Service without ports
				}
				after := render(t, object, fixture.Image, operand.Inputs{})
				if tried++; after != "" && before.Pods() != after.Pods() && before.User() == after.User() {
					t.Errorf("%s: spec.%s changes the Pods, and not the user's part", example.Section, strings.Join(path, "."))
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("tried %d fields", tried)
	}
}

func objectOf(t *testing.T, spec map[string]any) *v1alpha2.NginxOperator {
	t.Helper()
	out := fixture.NewObject()
	out.Spec = v1alpha2.NginxOperatorSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &out.Spec); err != nil {
		t.Fatal(err)
	}
	return out
}

// fieldsIn returns the paths of all fields that are not in a list.
func fieldsIn(value map[string]any, at []string) (out [][]string) {
	for key, inner := range value {
		path := append(append([]string{}, at...), key)
		out = append(out, path)
		if fields, ok := inner.(map[string]any); ok {
			out = append(out, fieldsIn(fields, path)...)
		}
	}
	return out
}

func remove(value map[string]any, path []string) {
	for len(path) > 1 {
		value, path = value[path[0]].(map[string]any), path[1:]
	}
	delete(value, path[0])
}
