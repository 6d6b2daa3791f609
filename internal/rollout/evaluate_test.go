package rollout

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestTried verifies that the message of a rollback lists the changes and has a limited length.
func TestTried(t *testing.T) {
	deployment := &appsv1.Deployment{}
	pod := &deployment.Spec.Template.Spec
	pod.Containers = []corev1.Container{{Name: wellknown.OperandContainer, Image: fixture.Image}}
	applied := &revision.Declaration{Generation: 3, Children: []client.Object{deployment}}
	good := &v1alpha2.GoodRevision{Image: fixture.Image}
	if got := tried(fixture.NewObject(), applied, good); got != "generation 3 (Pod template)" {
		t.Error(got)
	}
	pod.Containers[0].Image, good.ConfigHash = strings.Repeat("x", 512), "other"
	if got := tried(fixture.NewObject(), applied, good); !strings.Contains(got, "configuration") || len(got) > 400 {
		t.Error(got)
	}
}
