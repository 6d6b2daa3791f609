// Package nginxoperator has the controller of NginxOperators: its watches, the steps of a
// reconcile, the writes of children and status, and the preview for the kubectl plugin.
package nginxoperator

// Permissions of the operator. They are the verbs that it uses, and no more: a test on a real API
// server compares them with the audit log. OpenShift requires more.
// OwnerReferencesPermissionEnforcement requires updates of finalizers, for owner references that
// block the deletion of the owner, and deletions of all kinds of children, for writes that change
// owner references: of children of release 0.1.0, and of orphans. RestrictedEndpointsAdmission
// requires endpointslices/restricted for EndpointSlices with the addresses of Pods.
//
// The ClusterRole manager-role has the permissions on objects of watched namespaces. With
// --watch-namespaces, it is bound in these namespaces only. The ClusterRole manager-cluster-role is
// always bound in all namespaces: it has the permissions on cluster-scoped objects and to create
// Events, because an Event about the CRD is in the namespace default.
//
// +kubebuilder:rbac:groups=operator.example.com,resources=nginxoperators,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.example.com,resources=nginxoperators/status,verbs=patch
// +kubebuilder:rbac:groups=operator.example.com,resources=nginxoperators/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=httproutes.gateway.networking.k8s.io;podmonitors.monitoring.coreos.com;prometheusrules.monitoring.coreos.com,verbs=list;watch
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors;prometheusrules,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices/restricted,verbs=create
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Permissions of the guard (pkg/guard). Each names a single object, except where RBAC cannot:
// create, and the ClusterServiceVersion, whose name differs in each release. Both are for the
// operator's own namespace only. The guard deletes nothing: OpenShift requires the permission to
// delete an object to change its owners.
//
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=nginxoperators.operator.example.com,verbs=list;watch;update
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=nginx-operator-mutating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=nginx-operator-validating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-webhook-server-cert;nginx-operator-controller-manager-service-cert,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-controller-manager-service-cert,verbs=delete
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups=operators.coreos.com,namespace=system,resources=clusterserviceversions,verbs=get

// Permissions of the storage migration (pkg/storagemigration). Each names a single object, except
// for create, which RBAC cannot restrict by name.
//
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=update,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=create
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=get;delete,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=patch,resourceNames=nginxoperators.operator.example.com
