package rollout

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestDifferences verifies the description of a change, and that its length is limited.
func TestDifferences(t *testing.T) {
	declaration := func(image, exporter, config string) *revision.Declaration {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		pod := &deployment.Spec.Template.Spec
		pod.Containers = []corev1.Container{{Name: wellknown.OperandContainer, Image: image}}
		pod.InitContainers = []corev1.Container{{Name: wellknown.ExporterContainer, Image: exporter}}
		pod.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "web-" + config},
		}}}}
		return &revision.Declaration{Children: []client.Object{deployment}}
	}
	long := strings.Repeat("x", maxTried)
	for want, declared := range map[string]*revision.Declaration{
		`image "nginx:2"`:                     declaration("nginx:2", "exporter:1", "0123456789"),
		`exporter image "exporter:2"`:         declaration("nginx:1", "exporter:2", "0123456789-0123abcd"),
		"configuration":                       declaration("nginx:1", "exporter:1", "9876543210"),
		"Pod template":                        declaration("nginx:1", "exporter:1", "0123456789"),
		`image "` + long + `", configuration`: declaration(long+"x", "exporter:1", "9876543210"),
	} {
		if got := differences(declared, "nginx:1", "exporter:1", "0123456789"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
