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
	out.Image, out.Resources = in.Exporter, defaults.ExporterResources(spec)
	out.Args = []string{
		fmt.Sprintf("--nginx.scrape-uri=http://127.0.0.1:%d/stub_status", defaults.StatusPort(spec)),
		fmt.Sprintf("--web.listen-address=:%d", defaults.MetricsPort(spec)),
	}
	return serving(out, defaults.MetricsPort(spec), nginx)
}

// requestMetrics returns the sidecar that counts requests. It has the security context of nginx.
func requestMetrics(spec *v1alpha2.NginxOperatorSpec, in Inputs, nginx *corev1.Container) *corev1.Container {
	out := assets.RequestMetrics()
	out.Image, out.Resources = in.RequestMetrics, defaults.RequestMetricsResources(spec)
	out.Args = []string{
		fmt.Sprintf("--listen=127.0.0.1:%d", defaults.RequestLogPort(spec)),
		fmt.Sprintf("--metrics-address=:%d", defaults.RequestMetricsPort(spec)),
	}
	return serving(out, defaults.RequestMetricsPort(spec), nginx)
}

// serving completes a sidecar that serves metrics.
func serving(out *corev1.Container, port int32, nginx *corev1.Container) *corev1.Container {
	out.Ports[0].ContainerPort, out.ImagePullPolicy = port, nginx.ImagePullPolicy
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
			// A tenant controls the responses of its sidecars, and all tenants share the Prometheus. The
			// limits apply to each scrape: the exporter has about 60 samples, and the receiver of request
			// metrics below 5,000. Prometheus adds about 10 labels.
			SampleLimit: ptr.To[int64](10_000), LabelLimit: ptr.To[int64](32),
			LabelNameLengthLimit: ptr.To[int64](128), LabelValueLengthLimit: ptr.To[int64](1_024), // bytes
			BodySizeLimit: ptr.To[monitoringv1.ByteSize]("4MB"), // uncompressed
		},
	}

	for _, port := range []int32{defaults.MetricsPort(&object.Spec), defaults.RequestMetricsPort(&object.Spec)} {
		if port == 0 {
			continue
		}

		endpoint := monitoringv1.PodMetricsEndpoint{
			PortNumber: ptr.To(port), Path: "/metrics", Interval: monitoringv1.Duration(form.Interval),
		}
		// A tenant's sidecar could redirect Prometheus to any address that Prometheus reaches.
		endpoint.FollowRedirects = ptr.To(false)
		monitor.Spec.PodMetricsEndpoints = append(monitor.Spec.PodMetricsEndpoints, endpoint)
	}

	monitor.Labels = withUsers(form.Labels, monitor.Labels)
	return monitor
}

// desiredPrometheusRule returns the alerts of an instance. The alert about connections exists only
// if the number of workers is known, and those about requests only with request metrics.
func desiredPrometheusRule(object *v1alpha2.NginxOperator, in Inputs) client.Object {
	rule := assets.PrometheusRule()
	rule.ObjectMeta = ObjectMeta(object, in)
	declared := defaults.Alerts(&object.Spec)
	rule.Labels = withUsers(declared.Labels, rule.Labels)
	const limit = "LIMIT"
	connections := nginxconf.Connections(&object.Spec)
	fill := strings.NewReplacer("NAMESPACE", object.Namespace, "NAME", object.Name, limit, strconv.FormatInt(connections, 10),
		"ERRORPERCENT", strconv.Itoa(int(*declared.ErrorPercent)),
		"LATENCYMILLISECONDS", strconv.Itoa(int(*declared.LatencyMilliseconds)))
	if !defaults.HasRequestMetrics(&object.Spec) {
		rule.Spec.Groups = rule.Spec.Groups[:1] // the second group has the alerts about requests
	}

	for i := range rule.Spec.Groups {
		group := &rule.Spec.Groups[i]
		group.Name = fill.Replace(group.Name)
		group.Rules = slices.DeleteFunc(group.Rules, func(alert monitoringv1.Rule) bool {
			return connections == 0 && strings.Contains(alert.Expr.StrVal, limit)
		})

		for j := range group.Rules {
			group.Rules[j].Expr.StrVal = fill.Replace(group.Rules[j].Expr.StrVal)
			for key, text := range group.Rules[j].Annotations {
				group.Rules[j].Annotations[key] = fill.Replace(text)
			}
		}
	}

	return rule
}
