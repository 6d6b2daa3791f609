package objectcache

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// byNamespace returns the cache settings of each namespace, or nil for all namespaces.
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
