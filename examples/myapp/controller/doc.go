// Package controller reconciles MyApp objects. It is the smallest complete form of the pattern "owned workload": a pure
// function says what the Deployment has to be, internal/apply makes it so, and a pure function turns what the Deployment
// reports into the status.
package controller

// Rights of this controller: the verbs that it really uses. To update finalizers is asked for and not used: where
// OwnerReferencesPermissionEnforcement is on (OpenShift), it is needed for a reference that blocks the owner's deletion.
//
// +kubebuilder:rbac:groups=example.com,resources=myapps,verbs=list;watch
// +kubebuilder:rbac:groups=example.com,resources=myapps/status,verbs=patch
// +kubebuilder:rbac:groups=example.com,resources=myapps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
