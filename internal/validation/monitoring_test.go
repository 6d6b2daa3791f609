package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestMonitoring verifies rules that the schema does not have.
func TestMonitoring(t *testing.T) {
	const at = "spec.monitoring"
	own := map[string]string{"app.kubernetes.io/name": "mine"}
	sidecar := []v1alpha2.Container{{Name: "nginx-prometheus-exporter"}}
	endless := corev1.ResourceList{"cpu": resource.MustParse("1e37")}
	for name, test := range map[string]struct {
		monitoring v1alpha2.Monitoring
		sidecars   []v1alpha2.Container
		want       []string
	}{
		"nothing": {},
		"everything": {monitoring: v1alpha2.Monitoring{
			Enabled: ptr.To(true), Exporter: v1alpha2.ExporterSidecar, Image: "exporter:1", Resources: &v1alpha2.ContainerResources{},
			PodMonitor: &v1alpha2.PodMonitor{Interval: "30s", Labels: map[string]string{"release": "prometheus"}}, Alerts: &v1alpha2.Alerts{},
		}},
		"values": {
			monitoring: v1alpha2.Monitoring{
				Image: ":", Resources: &v1alpha2.ContainerResources{Limits: endless},
				PodMonitor: &v1alpha2.PodMonitor{Labels: own}, Alerts: &v1alpha2.Alerts{Labels: own},
			},
			want: []string{
				at + `.image: Invalid value: ":"`,
				at + ".resources.limits[cpu]: Invalid value", at + ".podMonitor.labels[app.kubernetes.io/name]: Forbidden",
				at + ".alerts.labels[app.kubernetes.io/name]: Forbidden",
			},
		},
		"an exporter of one's own": {monitoring: v1alpha2.Monitoring{Exporter: v1alpha2.ExporterNone}, sidecars: sidecar},
		"two exporters":            {sidecars: sidecar, want: []string{`spec.sidecars[0].name: Duplicate value: "nginx-prometheus-exporter"`}},
	} {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, Spec(&v1alpha2.NginxOperatorSpec{Monitoring: &test.monitoring, Sidecars: test.sidecars}, field.NewPath("spec")), test.want)
		})
	}
}

// wantErrors fails the test unless the errors have these prefixes.
func wantErrors(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("got %v", errs)
	}
	for i, err := range errs {
		if !strings.HasPrefix(err.Error(), want[i]) {
			t.Errorf("%v, want %s", err, want[i])
		}
	}
}
