// Package objectcache has the cache of the operator's objects: its informers and indexes, large
// objects, and kinds that only some clusters have. This is the only place that narrows the cache to
// the fields that the controllers read.
package objectcache

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// CacheOptions returns the options of the cache. Of the kinds of children, the cache has only
// objects with our label, and only the fields that are read, so foreign Pods and ConfigMaps cost no
// memory. A read of a kind that no controller watches is an error and starts no informer. The cache
// has no referenced ConfigMaps and Secrets (see pkg/reference). It has the objects of the
// namespaces, or of all namespaces if there are none.
func CacheOptions(namespaces ...string) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{wellknown.LabelManagedBy: wellknown.OperatorName})
	child := cache.ByObject{Label: ours, Transform: slim, UnsafeDisableDeepCopy: ptr.To(true)}
	// The slices of the EndpointSlice controller have the labels of the Service, too.
	slice := child
	slice.Label = labels.SelectorFromSet(labels.Set{discoveryv1.LabelManagedBy: wellknown.OperatorName})
	options := cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultNamespaces:           byNamespace(namespaces),
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha2.NginxOperator{}:                {Transform: slim},
			&appsv1.ControllerRevision{}:             child,
			&appsv1.Deployment{}:                     child,
			&appsv1.ReplicaSet{}:                     child,
			&autoscalingv2.HorizontalPodAutoscaler{}: child,
			&corev1.ConfigMap{}:                      child,
			&corev1.Pod{}:                            child,
			&corev1.Service{}:                        child,
			&discoveryv1.EndpointSlice{}:             slice,
			&gatewayv1.HTTPRoute{}:                   child,
			&monitoringv1.PodMonitor{}:               child,
			&monitoringv1.PrometheusRule{}:           child,
			&networkingv1.Ingress{}:                  child,
			&networkingv1.NetworkPolicy{}:            child,
			&policyv1.PodDisruptionBudget{}:          child,
		},
	}

	for kind, byKind := range options.ByObject {
		options.ByObject[kind] = inNamespaces(byKind, namespaces)
	}

	options.ByObject[&apiextensionsv1.CustomResourceDefinition{}] = cache.ByObject{
		Field:                 fields.OneTermEqualSelector("metadata.name", wellknown.CRDName),
		Transform:             slim,
		UnsafeDisableDeepCopy: ptr.To(true),
	}

	return options
}

func byNamespace(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}

	out := map[string]cache.Config{}
	for _, namespace := range namespaces {
		out[namespace] = cache.Config{}
	}
	return out
}

// inNamespaces returns the cache settings of a kind in each namespace, or in all if there are none.
// Informers need to know the namespace of their cache, which passes them only its transform. Each
// namespace therefore has a transform of its own, which returns the namespace for an inquiry.
func inNamespaces(options cache.ByObject, namespaces []string) cache.ByObject {
	options.Namespaces = byNamespace(namespaces)
	for namespace := range options.Namespaces {
		options.Namespaces[namespace] = cache.Config{Transform: func(in any) (any, error) {
			if asked, ok := in.(*inquiry); ok {
				asked.namespace = namespace
			}
			return slim(in)
		}}
	}
	return options
}

// inquiry is an argument of a transform that asks for the namespace of its cache.
type inquiry struct{ namespace string }
