package harness

// The manifests are text, because OLM's Go package would add dependencies that nothing else here
// needs.
const (
	// CatalogManifest has the objects that a Subscription needs: an OperatorGroup for all
	// namespaces, and the catalog. Replace NAMESPACE and CATALOG_IMAGE.
	CatalogManifest = `
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: nginx-operator
  namespace: NAMESPACE
spec: {}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: nginx-operator-e2e
  namespace: NAMESPACE
spec:
  sourceType: grpc
  image: CATALOG_IMAGE
  displayName: NGINX Operator (e2e)
  grpcPodConfig:
    securityContextConfig: restricted
`
	// SubscriptionManifest subscribes to the default channel of that catalog. Replace NAMESPACE.
	SubscriptionManifest = `
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: nginx-operator
  namespace: NAMESPACE
spec:
  name: nginx-operator
  channel: stable
  source: nginx-operator-e2e
  sourceNamespace: NAMESPACE
  installPlanApproval: Automatic
`
)
