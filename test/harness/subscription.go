package harness

import _ "embed"

// The manifests are text, because OLM's Go package would add dependencies that nothing else here
// needs. test/demo applies the same files.
var (
	// CatalogManifest has the objects that a Subscription needs: an OperatorGroup for all
	// namespaces, and the catalog. Replace NAMESPACE and CATALOG_IMAGE.
	//
	//go:embed catalog.yaml
	CatalogManifest string
	// SubscriptionManifest subscribes to the default channel of that catalog. Replace NAMESPACE.
	//
	//go:embed subscription.yaml
	SubscriptionManifest string
)
