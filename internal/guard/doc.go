package guard

// Permissions of the guard. Each names a single object, except where RBAC cannot: create, and the
// ClusterServiceVersion, whose name differs in each release. Both are for the operator's own
// namespace only. The guard deletes nothing: OpenShift requires the permission to delete an object
// to change its owners.
//
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=nginxoperators.operator.example.com,verbs=list;watch;update
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=nginx-operator-mutating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=nginx-operator-validating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-webhook-server-cert;nginx-operator-controller-manager-service-cert,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-controller-manager-service-cert,verbs=delete
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups=operators.coreos.com,namespace=system,resources=clusterserviceversions,verbs=get
