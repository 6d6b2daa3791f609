package validation

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestMonitoring verifies the bounds of fields that no schema validates.
func TestMonitoring(t *testing.T) {
	const at = "spec.monitoring"
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint("a", i)] = "b"
	}
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
				Exporter: "Pushed", Image: ":", Resources: &v1alpha2.ContainerResources{Limits: endless},
				PodMonitor: &v1alpha2.PodMonitor{Interval: "0s", Labels: own}, Alerts: &v1alpha2.Alerts{Labels: own},
			},
			want: []string{
				at + `.image: Invalid value: ":"`, at + `.exporter: Unsupported value: "Pushed": supported values: "Sidecar", "None"`,
				at + ".resources.limits[cpu]: Invalid value", at + ".podMonitor.labels[app.kubernetes.io/name]: Forbidden",
				at + `.podMonitor.interval: Invalid value: "0s": must be a number of seconds or minutes, for example 30s or 1m`,
				at + ".alerts.labels[app.kubernetes.io/name]: Forbidden",
			},
		},
		"labels": {
			monitoring: v1alpha2.Monitoring{PodMonitor: &v1alpha2.PodMonitor{Labels: many}, Alerts: &v1alpha2.Alerts{Labels: many}},
			want: []string{
				at + ".podMonitor.labels: Too many: 17: must have at most 16 items", at + ".alerts.labels: Too many: 17: must have at most 16 items",
			},
		},
		"an exporter of one's own": {monitoring: v1alpha2.Monitoring{Exporter: v1alpha2.ExporterNone}, sidecars: sidecar},
		"no exporter": {
			monitoring: v1alpha2.Monitoring{Exporter: v1alpha2.ExporterNone, Alerts: &v1alpha2.Alerts{}},
			want:       []string{at + ": Invalid value: exporter None runs no exporter"},
		},
		"two exporters": {sidecars: sidecar, want: []string{`spec.sidecars[0].name: Duplicate value: "nginx-prometheus-exporter"`}},
	} {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, Spec(&v1alpha2.NginxOperatorSpec{Monitoring: &test.monitoring, Sidecars: test.sidecars}, field.NewPath("spec")), test.want)
		})
	}
}
