package options

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxWatchNamespaces is the maximum number of watched namespaces. Each costs a watch of every kind.
const maxWatchNamespaces = 100

// Watches reports whether the operator manages the objects of a namespace.
func (o *Options) Watches(namespace string) bool {
	return len(o.WatchNamespaces) == 0 || slices.Contains(o.WatchNamespaces, namespace)
}

func (o *Options) validateNamespaces() error {
	if count := len(o.WatchNamespaces); count > maxWatchNamespaces {
		return fmt.Errorf("--watch-namespaces has %d namespaces, must have at most %d: leave it empty to watch all namespaces",
			count, maxWatchNamespaces)
	}
	for _, namespace := range o.WatchNamespaces {
		if !isNamespaceName(namespace) {
			return fmt.Errorf("--watch-namespaces has %q, which is not a valid namespace name", namespace)
		}
	}
	for _, namespace := range sets.List(o.FleetRollout.CanaryNamespaces) {
		if !isNamespaceName(namespace) {
			return fmt.Errorf("--fleet-rollout-canary-namespaces has %q, which is not a valid namespace name", namespace)
		}
		if !o.Watches(namespace) {
			return fmt.Errorf("--fleet-rollout-canary-namespaces has %q, which --watch-namespaces does not have", namespace)
		}
	}
	return nil
}

func isNamespaceName(name string) bool {
	return len(apivalidation.ValidateNamespaceName(name, false)) == 0
}
