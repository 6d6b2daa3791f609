package rollout

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestDelayAfter verifies that the delay doubles up to its limit, and that many failures do not
// overflow it.
func TestDelayAfter(t *testing.T) {
	for failures, want := range map[int32]time.Duration{
		1: 2 * time.Minute, 2: 4 * time.Minute, 3: 8 * time.Minute, 5: 32 * time.Minute, 6: time.Hour, 1 << 30: time.Hour,
	} {
		if got := delayAfter(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

// TestFailedAgain verifies that a final failure plans no attempt, and that an entry of 0.7.1, which
// has no number, counts as one failure.
func TestFailedAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	first := failedAgain("a", "CrashLoop", "crashes", false, nil, now)
	if first.Attempts != 1 || first.NextAttemptTime.Sub(now) != 2*time.Minute {
		t.Errorf("first: %+v", first)
	}
	if got := RolledBackMessage(first); got != "crashes; attempt 2 starts at 1970-01-01T00:18:40Z" {
		t.Error(got)
	}
	second := failedAgain("a", "CrashLoop", strings.Repeat("x", 5000), false, &v1alpha2.FailedRevision{Revision: "a"}, now)
	if second.Attempts != 2 || second.NextAttemptTime.Sub(now) != 4*time.Minute || len(second.Message) > 1024 {
		t.Errorf("second: %+v", second)
	}
	last := failedAgain("a", "CrashLoop", "crashes", false, &v1alpha2.FailedRevision{Attempts: maxAttempts}, now)
	if last.Attempts != maxAttempts {
		t.Errorf("at the limit: %+v", last)
	}
	if final := failedAgain("a", "InvalidConfiguration", "refused", true, first, now); final.Attempts != 2 || final.NextAttemptTime != nil ||
		RolledBackMessage(final) != "refused" {
		t.Errorf("final: %+v", final)
	}
}

// TestAttempts verifies when a failed revision is rolled out again.
func TestAttempts(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(offset time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(offset))) }
	paused := func(s *v1alpha2.NginxOperatorSpec) { s.Paused = true }
	noPods := func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](0) }
	for name, test := range map[string]struct {
		failed v1alpha2.FailedRevision
		spec   func(*v1alpha2.NginxOperatorSpec)
		want   bool
	}{
		"final":         {},
		"planned":       {failed: v1alpha2.FailedRevision{NextAttemptTime: at(time.Minute)}},
		"due":           {failed: v1alpha2.FailedRevision{NextAttemptTime: at(0)}, want: true},
		"overdue":       {failed: v1alpha2.FailedRevision{NextAttemptTime: at(-time.Hour)}, want: true},
		"in progress":   {failed: v1alpha2.FailedRevision{AttemptTime: at(-time.Hour)}, want: true},
		"due, paused":   {failed: v1alpha2.FailedRevision{NextAttemptTime: at(0)}, spec: paused},
		"due, no Pods":  {failed: v1alpha2.FailedRevision{NextAttemptTime: at(0)}, spec: noPods},
		"begun, paused": {failed: v1alpha2.FailedRevision{AttemptTime: at(0)}, spec: paused, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			if test.spec != nil {
				test.spec(&object.Spec)
			}
			if got := attempts(object, &test.failed, now); got != test.want {
				t.Errorf("attempts: %t", got)
			}
		})
	}
}

// TestDifferences verifies the description of a change, and that its length is limited.
func TestDifferences(t *testing.T) {
	declaration := func(image, exporter, requests, config string) *revision.Declaration {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		pod := &deployment.Spec.Template.Spec
		pod.Containers = []corev1.Container{{Name: wellknown.OperandContainer, Image: image}}
		pod.InitContainers = []corev1.Container{
			{Name: wellknown.ExporterContainer, Image: exporter}, {Name: wellknown.RequestMetricsContainer, Image: requests},
		}
		pod.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "web-" + config},
		}}}}
		return &revision.Declaration{Children: []client.Object{deployment}}
	}
	long := strings.Repeat("x", maxTried)
	for want, declared := range map[string]*revision.Declaration{
		`image "nginx:2"`:                     declaration("nginx:2", "exporter:1", "requests:1", "0123456789"),
		`request metrics image "requests:2"`:  declaration("nginx:1", "exporter:1", "requests:2", "0123456789"),
		`exporter image "exporter:2"`:         declaration("nginx:1", "exporter:2", "requests:1", "0123456789-0123abcd"),
		"configuration":                       declaration("nginx:1", "exporter:1", "requests:1", "9876543210"),
		"Pod template":                        declaration("nginx:1", "exporter:1", "requests:1", "0123456789"),
		`image "` + long + `", configuration`: declaration(long+"x", "exporter:1", "requests:1", "9876543210"),
	} {
		if got := differences(declared, "nginx:1", "exporter:1", "requests:1", "0123456789"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
