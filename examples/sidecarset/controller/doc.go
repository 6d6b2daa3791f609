// Package controller keeps the status of SidecarSets and brings changed images into running Pods, one Pod at a time.
//
// It is made for many Pods. Only Pods that carry sidecars are watched, and of each only a few fields are kept. What the
// status says is never counted anew: each event of a Pod changes an account (Tally), and a pass over a SidecarSet reads
// from it. So the work of an event and of a pass does not depend on how many Pods there are. After a start the account is
// built from the cache before the first pass begins.
package controller

// Rights of this controller: the verbs that it really uses.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
