package nginxoperator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/metadata"
)

// The complete list of children, for the declarations that differ in which children there are or in their form.
func TestDesired(t *testing.T) {
	for name, test := range map[string]struct {
		object *v1alpha1.NginxOperator
		ipv6   bool
	}{
		"defaults": {object: newObject()},
		"port-80":  {object: newObject(func(s *v1alpha1.NginxOperatorSpec) { s.Port = ptr.To[int32](80) })},
		"ipv6":     {object: newObject(), ipv6: true},
		"three-replicas": {object: newObject(func(s *v1alpha1.NginxOperatorSpec) {
			s.Replicas, s.ForceRedeploy = ptr.To[int32](3), "2026-01-01"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			children, err := desired(test.object, inputs{image: testImage, ipv6: test.ipv6})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, child := range children {
				raw, err := yaml.Marshal(child)
				if err != nil {
					t.Fatal(err)
				}
				text.WriteString("---\n" + string(raw))
			}
			golden(t, name+".yaml", text.String())
		})
	}
}

// The same declaration gives the same children, in all their bytes; otherwise every pass would write.
func TestDesiredIsPure(t *testing.T) {
	object := newObject()
	before := object.DeepCopy()
	first, _ := desired(object, inputs{image: testImage})
	second, _ := desired(object, inputs{image: testImage})
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two passes differ:\n%s", diff)
	}
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
}

// An object that was stored without the schema's defaults is treated as if it had them.
func TestDesiredWithoutDefaults(t *testing.T) {
	bare := newObject()
	bare.Spec = v1alpha1.NginxOperatorSpec{}
	got, _ := desired(bare, inputs{image: testImage})
	want, _ := desired(newObject(), inputs{image: testImage})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-with defaults +without):\n%s", diff)
	}
}

// The operator's own server gives way to the user's.
func TestHealthPort(t *testing.T) {
	for userPort, want := range map[int32]int32{8080: 18080, 18080: 18081, 18081: 18080, 1: 18080, 65535: 18080} {
		object := newObject(func(s *v1alpha1.NginxOperatorSpec) { s.Port = &userPort })
		if got := healthPort(object); got != want {
			t.Errorf("port %d: health port %d, want %d", userPort, got, want)
		}
	}
}

// A configuration that differs has another name; one that does not keeps it.
func TestConfigMapName(t *testing.T) {
	object := newObject()
	a, b, again := desiredConfigMap(object, inputs{}, "a"), desiredConfigMap(object, inputs{}, "b"), desiredConfigMap(object, inputs{}, "a")
	if a.Name == b.Name || a.Name != again.Name {
		t.Errorf("names %s, %s, %s", a.Name, b.Name, again.Name)
	}
	if !strings.HasPrefix(a.Name, "web-") || len(a.Name) != len("web-")+10 {
		t.Errorf("name %s", a.Name)
	}
}

// Nothing that a release of the operator changes is in the Pods, or an upgrade would roll them; the rest of the
// children may say which version of nginx it is.
func TestPodsHoldNoVersion(t *testing.T) {
	deployment := desiredDeployment(newObject(), inputs{image: testImage}, "c")
	if version := deployment.Labels[metadata.LabelVersion]; version != "1.28.0" {
		t.Errorf("the Deployment's version is %q", version)
	}
	if _, found := deployment.Spec.Template.Labels[metadata.LabelVersion]; found {
		t.Error("the Pods carry a version")
	}
	for key, value := range deployment.Spec.Selector.MatchLabels {
		if deployment.Spec.Template.Labels[key] != value {
			t.Errorf("the selector asks for %s=%s, the Pods have %q", key, value, deployment.Spec.Template.Labels[key])
		}
	}
}

func TestDeploymentReplicas(t *testing.T) {
	scaled := func(declared string, subresource string) *appsv1.Deployment {
		return newDeployment(5, func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{metadata.AnnotationReplicas: declared}
			d.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: "kube-controller-manager", Subresource: subresource,
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
			}}
		})
	}
	for name, test := range map[string]struct {
		live *appsv1.Deployment
		want int32
	}{
		"no Deployment yet":                 {nil, 2},
		"nobody else set them":              {newDeployment(5), 2},
		"an edit set them":                  {scaled("2", ""), 2},
		"the scale subresource set them":    {scaled("2", "scale"), 5},
		"the object changed its own since":  {scaled("1", "scale"), 2},
		"the Deployment's status was wrote": {scaled("2", "status"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject(func(s *v1alpha1.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) })
			if got := deploymentReplicas(object, test.live); got != test.want {
				t.Errorf("%d replicas, want %d", got, test.want)
			}
		})
	}
}

func TestServiceURL(t *testing.T) {
	for userPort, want := range map[int32]string{80: "http://web.shop.svc", 8080: "http://web.shop.svc:8080", 443: "http://web.shop.svc:443"} {
		object := newObject(func(s *v1alpha1.NginxOperatorSpec) { s.Port = &userPort })
		if got := serviceURL(object); got != want {
			t.Errorf("port %d: %s, want %s", userPort, got, want)
		}
	}
}

// The Service and the NetworkPolicy reach the Pods by the names of their ports.
func TestNamedPorts(t *testing.T) {
	object := newObject()
	names := map[string]bool{}
	for _, port := range desiredDeployment(object, inputs{image: testImage}, "c").Spec.Template.Spec.Containers[0].Ports {
		names[port.Name] = port.Protocol == corev1.ProtocolTCP
	}
	if target := desiredService(object, inputs{}).Spec.Ports[0].TargetPort.StrVal; !names[target] {
		t.Errorf("the Service targets %q, the Pods have %v", target, names)
	}
	for _, port := range desiredNetworkPolicy(object, inputs{}).Spec.Ingress[0].Ports {
		if !names[port.Port.StrVal] {
			t.Errorf("the NetworkPolicy lets %q in, the Pods have %v", port.Port.StrVal, names)
		}
	}
}
