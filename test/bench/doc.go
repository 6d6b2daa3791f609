// Package bench measures the operator's own binary, with exactly the RBAC permissions that config/rbac gives it, against a real API
// server and etcd. `make bench` (build tag bench) prints each figure as a line "metric: value unit" and fails where a bar is
// missed. `make soak` (build tag soak) changes and destroys things for as long as SOAK_DURATION says and looks at what holds.
//
// There is no kubelet and no kube-controller-manager here. So operands have no ReplicaSets and no Pods, nothing collects
// garbage, and where a measurement needs instances that are ready, it writes the status that the Deployment controller would.
// `make bench-cluster` measures on the local cluster, which has both.
//
// KUBEBUILDER_ASSETS names the directory with kube-apiserver, etcd and kubectl.
package bench
