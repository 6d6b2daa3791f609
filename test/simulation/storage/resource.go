package storage

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a kind that the model serves.
type Resource struct {
	schema.GroupVersionResource
	Kind string
	// HasStatus is true if the kind has the status subresource.
	HasStatus bool
	// Counts is true if the API server counts generations of the kind.
	Counts bool
	// Cluster is true if the kind is cluster-scoped.
	Cluster bool
	// Optional is true if the kind is served only while its CustomResourceDefinition exists.
	Optional bool
}

// GroupVersionKind returns the group, the version, and the kind.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// Name returns the resource with its group, for example deployments.apps.
func (r *Resource) Name() string { return r.GroupResource().String() }

func resource(group, version, plural, kind string, hasStatus, counts bool) *Resource {
	return &Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: plural},
		Kind:                 kind, HasStatus: hasStatus, Counts: counts,
	}
}

// The kinds that the model serves.
var (
	Namespaces           = clusterWide(resource("", "v1", "namespaces", "Namespace", true, false))
	ConfigMaps           = resource("", "v1", "configmaps", "ConfigMap", false, false)
	Secrets              = resource("", "v1", "secrets", "Secret", false, false)
	Services             = resource("", "v1", "services", "Service", true, false)
	Pods                 = resource("", "v1", "pods", "Pod", true, true)
	Deployments          = resource("apps", "v1", "deployments", "Deployment", true, true)
	ReplicaSets          = resource("apps", "v1", "replicasets", "ReplicaSet", true, true)
	ControllerRevisions  = resource("apps", "v1", "controllerrevisions", "ControllerRevision", false, false)
	Autoscalers          = resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true, true)
	EndpointSlices       = resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", false, true)
	Ingresses            = resource("networking.k8s.io", "v1", "ingresses", "Ingress", true, true)
	NetworkPolicies      = resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", false, true)
	PodDisruptionBudgets = resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true, true)
	CustomResourceDefs   = clusterWide(
		resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", true, true))
	HTTPRoutes     = optional(resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute", true, true))
	NginxOperators = resource("operator.example.com", "v1alpha2", "nginxoperators", "NginxOperator", true, true)
	allResources   = []*Resource{
		Namespaces, ConfigMaps, Secrets, Services, Pods, Deployments, ReplicaSets, ControllerRevisions, Autoscalers, EndpointSlices,
		Ingresses, NetworkPolicies, PodDisruptionBudgets, CustomResourceDefs, NginxOperators, HTTPRoutes,
	}
)

func clusterWide(r *Resource) *Resource {
	r.Cluster = true
	return r
}

func optional(r *Resource) *Resource {
	r.Optional = true
	return r
}

// Resources returns all kinds that the model always serves.
func Resources() []*Resource {
	return slices.DeleteFunc(slices.Clone(allResources), func(r *Resource) bool { return r.Optional })
}

// find returns the kind for a path, or nil if the model does not serve it.
func find(group, version, plural string) *Resource {
	return first(func(r *Resource) bool { return r.Group == group && r.Version == version && r.Resource == plural })
}

// OfKind returns the resource of a kind, or nil if the model does not serve it.
func OfKind(kind string) *Resource {
	return first(func(r *Resource) bool { return r.Kind == kind })
}

func first(is func(*Resource) bool) *Resource {
	at := slices.IndexFunc(allResources, is)
	if at < 0 {
		return nil
	}
	return allResources[at]
}
