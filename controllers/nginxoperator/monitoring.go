package nginxoperator

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

// installPrometheusOperator is the way out where the cluster does not have its kinds.
const installPrometheusOperator = "install the Prometheus Operator, or remove the field"

var podMonitorChild = optionalChild{
	kind: monitoringv1.PodMonitorsKind, at: specPath.Child("monitoring", "podMonitor"), wayOut: installPrometheusOperator,
	empty: func() client.Object { return &monitoringv1.PodMonitor{} },
	isDeclared: func(spec *v1alpha2.NginxOperatorSpec) bool {
		return defaults.HasExporter(spec) && spec.Monitoring.PodMonitor != nil
	},
	desired: func(object *v1alpha2.NginxOperator, in inputs) client.Object { return desiredPodMonitor(object, in) },
}

var prometheusRuleChild = optionalChild{
	kind: monitoringv1.PrometheusRuleKind, at: specPath.Child("monitoring", "alerts"), wayOut: installPrometheusOperator,
	empty: func() client.Object { return &monitoringv1.PrometheusRule{} },
	isDeclared: func(spec *v1alpha2.NginxOperatorSpec) bool {
		return defaults.HasExporter(spec) && spec.Monitoring.Alerts != nil
	},
	desired: func(object *v1alpha2.NginxOperator, in inputs) client.Object {
		return desiredPrometheusRule(object, in)
	},
}

// exporter returns the container that reads the figures of nginx, with the rights of nginx.
func exporter(spec *v1alpha2.NginxOperatorSpec, in inputs, nginx *corev1.Container) *corev1.Container {
	out := assets.Exporter()
	port := defaults.MetricsPort(spec)
	out.Image, out.ImagePullPolicy = in.exporter, nginx.ImagePullPolicy
	out.Args = []string{
		fmt.Sprintf("--nginx.scrape-uri=http://127.0.0.1:%d/stub_status", defaults.StatusPort(spec)),
		fmt.Sprintf("--web.listen-address=:%d", port),
	}
	out.Ports[0].ContainerPort = port
	out.Resources = defaults.ExporterResources(spec)
	out.SecurityContext, out.TerminationMessagePolicy = nginx.SecurityContext.DeepCopy(), nginx.TerminationMessagePolicy
	return out
}

// desiredPodMonitor returns what has a Prometheus scrape each Pod. Of a Service the figures would be where its clients are, be it behind
// a load balancer (docs/adr/0035-monitoring-of-instances.md).
func desiredPodMonitor(object *v1alpha2.NginxOperator, in inputs) *monitoringv1.PodMonitor {
	form := object.Spec.Monitoring.PodMonitor
	monitor := &monitoringv1.PodMonitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(), Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: childMeta(object, in),
		Spec: monitoringv1.PodMonitorSpec{
			Selector:        metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)},
			PodTargetLabels: []string{wellknown.LabelInstance},
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{{
				PortNumber: ptr.To(defaults.MetricsPort(&object.Spec)), Path: "/metrics", Interval: monitoringv1.Duration(form.Interval),
			}},
		},
	}
	monitor.Labels = withUsers(form.Labels, monitor.Labels)
	return monitor
}

// desiredPrometheusRule returns the alerts on the figures of an instance. How many connections nginx may have is only known where the
// number of its workers is.
func desiredPrometheusRule(object *v1alpha2.NginxOperator, in inputs) *monitoringv1.PrometheusRule {
	rule := assets.PrometheusRule()
	rule.ObjectMeta = childMeta(object, in)
	rule.Labels = withUsers(object.Spec.Monitoring.Alerts.Labels, rule.Labels)
	const limit = "LIMIT"
	connections := nginxconf.Connections(&object.Spec)
	fill := strings.NewReplacer("NAMESPACE", object.Namespace, "NAME", object.Name, limit, strconv.FormatInt(connections, 10))
	group := &rule.Spec.Groups[0]
	group.Name = fill.Replace(group.Name)
	group.Rules = slices.DeleteFunc(group.Rules, func(one monitoringv1.Rule) bool {
		return connections == 0 && strings.Contains(one.Expr.StrVal, limit)
	})
	for i := range group.Rules {
		group.Rules[i].Expr.StrVal = fill.Replace(group.Rules[i].Expr.StrVal)
		for key, text := range group.Rules[i].Annotations {
			group.Rules[i].Annotations[key] = fill.Replace(text)
		}
	}
	return rule
}
