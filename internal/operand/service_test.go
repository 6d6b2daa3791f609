package operand

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestAppProtocol verifies that a port of the Service has an appProtocol only if the spec declares
// one. A port that is no longer declared keeps that of the live Service until its Pods are gone.
func TestAppProtocol(t *testing.T) {
	object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
		s.Ports = []v1alpha2.Port{{Name: "http", Port: 80}, {Name: "ws", Port: 81, AppProtocol: "kubernetes.io/ws"}}
		s.TLS = []v1alpha2.TLS{{SecretName: "a", Port: ptr.To[int32](443)}}
	})
	now := Running{
		Containers: []ContainerPort{{"old", 90, 90}, {"older", 91, 91}},
		Service:    []corev1.ServicePort{{Name: "old", Port: 90, AppProtocol: ptr.To("example.com/a")}, {Name: "older", Port: 91}},
	}

	got := map[string]string{}
	for _, port := range partsFor(object, Inputs{Running: now}).service.Spec.Ports {
		got[port.Name] = ptr.Deref(port.AppProtocol, "none")
	}
	want := map[string]string{"http": "none", "ws": "kubernetes.io/ws", "tls-443": "none", "old": "example.com/a", "older": "none"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("appProtocol by port (-want +got):\n%s", diff)
	}
}
