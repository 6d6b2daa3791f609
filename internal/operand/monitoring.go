package operand

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

const installPrometheusOperator = "Install the Prometheus Operator, or remove the field"

var podMonitorKind = OptionalKind{
	Kind: monitoringv1.PodMonitorsKind, At: SpecPath.Child("monitoring", "podMonitor"), Remedy: installPrometheusOperator,
	IsDeclared: func(spec *v1alpha2.NginxOperatorSpec) bool {
		return defaults.HasExporter(spec) && spec.Monitoring.PodMonitor != nil
	},
	desired: desiredPodMonitor,
}

var prometheusRuleKind = OptionalKind{
	Kind: monitoringv1.PrometheusRuleKind, At: SpecPath.Child("monitoring", "alerts"), Remedy: installPrometheusOperator,
	IsDeclared: func(spec *v1alpha2.NginxOperatorSpec) bool {
		return defaults.HasExporter(spec) && spec.Monitoring.Alerts != nil
	},
	desired: desiredPrometheusRule,
}

// exporter returns the sidecar that exports the metrics of nginx. It has the security context of
// nginx.
func exporter(spec *v1alpha2.NginxOperatorSpec, in Inputs, nginx *corev1.Container) *corev1.Container {
	out := assets.Exporter()
	port := defaults.MetricsPort(spec)
	out.Image, out.ImagePullPolicy = in.Exporter, nginx.ImagePullPolicy
	out.Args = []string{
		fmt.Sprintf("--nginx.scrape-uri=http://127.0.0.1:%d/stub_status", defaults.StatusPort(spec)),
		fmt.Sprintf("--web.listen-address=:%d", port),
	}

	out.Ports[0].ContainerPort = port
	out.Resources = defaults.ExporterResources(spec)
	out.SecurityContext, out.TerminationMessagePolicy = nginx.SecurityContext.DeepCopy(), nginx.TerminationMessagePolicy
	return out
}

// desiredPodMonitor returns the PodMonitor, with which Prometheus scrapes each Pod. A port of the
// Service would expose the metrics to the clients of the Service
// (docs/adr/0035-monitoring-of-instances.md).
func desiredPodMonitor(object *v1alpha2.NginxOperator, in Inputs) client.Object {
	form := object.Spec.Monitoring.PodMonitor
	monitor := &monitoringv1.PodMonitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(), Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: ObjectMeta(object, in),
		Spec: monitoringv1.PodMonitorSpec{
			Selector:        metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)},
			PodTargetLabels: []string{wellknown.LabelInstance},
			// A tenant controls the responses of its exporter, and all tenants share the Prometheus.
			// nginx-prometheus-exporter has about 60 samples, and Prometheus adds about 10 labels.
			SampleLimit: ptr.To[int64](10_000), LabelLimit: ptr.To[int64](32),
			LabelNameLengthLimit: ptr.To[int64](128), LabelValueLengthLimit: ptr.To[int64](1_024), // bytes
			BodySizeLimit: ptr.To[monitoringv1.ByteSize]("4MB"), // uncompressed
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{{
				PortNumber: ptr.To(defaults.MetricsPort(&object.Spec)), Path: "/metrics", Interval: monitoringv1.Duration(form.Interval),
			}},
		},
	}

	// A tenant's exporter could redirect Prometheus to any address that Prometheus reaches.
	monitor.Spec.PodMetricsEndpoints[0].FollowRedirects = ptr.To(false)
	monitor.Labels = withUsers(form.Labels, monitor.Labels)
	return monitor
}

// desiredPrometheusRule returns the alerts of an instance. The alert about connections exists only
// if the number of workers is known.
func desiredPrometheusRule(object *v1alpha2.NginxOperator, in Inputs) client.Object {
	rule := assets.PrometheusRule()
	rule.ObjectMeta = ObjectMeta(object, in)
	rule.Labels = withUsers(object.Spec.Monitoring.Alerts.Labels, rule.Labels)
	const limit = "LIMIT"
	connections := nginxconf.Connections(&object.Spec)
	fill := strings.NewReplacer("NAMESPACE", object.Namespace, "NAME", object.Name, limit, strconv.FormatInt(connections, 10))
	group := &rule.Spec.Groups[0]
	group.Name = fill.Replace(group.Name)
	group.Rules = slices.DeleteFunc(group.Rules, func(alert monitoringv1.Rule) bool {
		return connections == 0 && strings.Contains(alert.Expr.StrVal, limit)
	})

	for i := range group.Rules {
		group.Rules[i].Expr.StrVal = fill.Replace(group.Rules[i].Expr.StrVal)
		for key, text := range group.Rules[i].Annotations {
			group.Rules[i].Annotations[key] = fill.Replace(text)
		}
	}

	return rule
}
