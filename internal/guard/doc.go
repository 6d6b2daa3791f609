package guard

// Rights of the guard, each for one object by its name where the API server can tell: not for create, and not for the
// ClusterServiceVersion, which has another name in each release. Both are for the operator's own namespace only. Nothing
// is deleted: OpenShift lets nobody change the owners of an object who may not delete it.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=nginxoperators.operator.example.com,verbs=list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=nginx-operator-mutating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=nginx-operator-validating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-webhook-server-cert;nginx-operator-controller-manager-service-cert,verbs=update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-controller-manager-service-cert,verbs=delete
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups=operators.coreos.com,namespace=system,resources=clusterserviceversions,verbs=get
