package operatormanager

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/access"
	"github.com/example/nginx-operator/internal/optional"
)

// optionalKinds are the kinds of children that not every cluster serves, with their resource names
// and cache transforms.
var optionalKinds = []struct {
	kind     schema.GroupVersionKind
	resource string
	slim     toolscache.TransformFunc
}{
	{schema.GroupVersion(gatewayv1.GroupVersion).WithKind("HTTPRoute"), "httproutes", slimHTTPRoute},
	{monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind), monitoringv1.PodMonitorName, slimPodMonitor},
	{monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind), monitoringv1.PrometheusRuleName, slimPrometheusRule},
}

// OptionalKinds returns the kinds of children that not every cluster serves.
func OptionalKinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, known := range optionalKinds {
		out = append(out, known.kind)
	}
	return out
}

// NewOptionalAPIs returns the APIs of the optional kinds by kind. They have the objects of the
// namespaces, or of all namespaces if there are none. Missing permissions are reported like those of
// Informers.
func NewOptionalAPIs(to cluster.Cluster, permissions *access.Namespaces, namespaces ...string) map[string]*optional.API {
	out, newInformer := map[string]*optional.API{}, boundedInformers(permissions)
	for _, known := range optionalKinds {
		out[known.kind.Kind] = optional.New(to, optional.Options{
			Kind: known.kind, Resource: known.resource, Cache: inNamespaces(narrow(known.slim), namespaces), NewInformer: newInformer,
		})
	}
	return out
}

func slimPodMonitor(in any) (any, error) {
	if monitor, ok := in.(*monitoringv1.PodMonitor); ok {
		slimChild(monitor, &monitor.ObjectMeta)
		monitor.Spec, monitor.Status = monitoringv1.PodMonitorSpec{}, monitoringv1.ConfigResourceStatus{}
	}
	return in, nil
}

func slimPrometheusRule(in any) (any, error) {
	if rule, ok := in.(*monitoringv1.PrometheusRule); ok {
		slimChild(rule, &rule.ObjectMeta)
		rule.Spec, rule.Status = monitoringv1.PrometheusRuleSpec{}, monitoringv1.ConfigResourceStatus{}
	}
	return in, nil
}
