package operand

import (
	"reflect"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// kinds has an empty child of each kind, in the order in which the children depend on each other.
var kinds = []client.Object{
	&corev1.ConfigMap{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}, &appsv1.Deployment{},
	&policyv1.PodDisruptionBudget{}, &autoscalingv2.HorizontalPodAutoscaler{}, &networkingv1.Ingress{},
	&gatewayv1.HTTPRoute{}, &monitoringv1.PodMonitor{}, &monitoringv1.PrometheusRule{},
}

// KindOf returns the kind of a child. Items of a list have none, but the Go types have its name.
func KindOf(child client.Object) string { return reflect.TypeOf(child).Elem().Name() }

// rankOf returns the position of a kind in kinds, or -1.
func rankOf(kind string) int {
	return slices.IndexFunc(kinds, func(child client.Object) bool { return KindOf(child) == kind })
}

// New returns an empty object of the kind of a child, or nil for any other kind.
func New(kind string) client.Object {
	if rank := rankOf(kind); rank >= 0 {
		return kinds[rank].DeepCopyObject().(client.Object)
	}
	return nil
}

// ChildOf returns the first child of a kind, or nil.
func ChildOf[T client.Object](children []client.Object) (none T) {
	for _, child := range children {
		if typed, ok := child.(T); ok {
			return typed
		}
	}
	return none
}

// DispensableKinds returns the kinds of which an object has no child, or one with its name.
func DispensableKinds() []string {
	return append([]string{"NetworkPolicy", "HorizontalPodAutoscaler", "Ingress"}, optionalNames()...)
}

// EntranceKinds returns the kinds through which clients and Prometheus reach the Pods.
func EntranceKinds() []string {
	return append([]string{"Service", "NetworkPolicy", "Ingress"}, optionalNames()...)
}

// IsEntrance reports whether a child belongs to the entrance of an instance.
func IsEntrance(child client.Object) bool { return slices.Contains(EntranceKinds(), KindOf(child)) }

// OptionalKind is a kind of child that is not installed in every cluster.
type OptionalKind struct {
	// Kind is the name of the kind.
	Kind string
	// At is the field that declares the child.
	At *field.Path
	// Remedy describes what to do if the kind is not installed.
	Remedy string
	// IsDeclared reports whether a spec declares the child.
	IsDeclared func(*v1alpha2.NginxOperatorSpec) bool
	// desired returns the child.
	desired func(*v1alpha2.NginxOperator, Inputs) client.Object
}

// OptionalKinds has all optional kinds, in the order in which their children are created.
var OptionalKinds = []OptionalKind{HTTPRouteKind, podMonitorKind, prometheusRuleKind}

func optionalNames() (names []string) {
	for _, optional := range OptionalKinds {
		names = append(names, optional.Kind)
	}
	return names
}

// WithoutMissing returns children without those whose kind is not installed.
func WithoutMissing(children []client.Object, missing map[string]string) []client.Object {
	return slices.DeleteFunc(slices.Clone(children), func(child client.Object) bool { return missing[KindOf(child)] != "" })
}
