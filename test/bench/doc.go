// Package bench measures the operator's own binary, with exactly the RBAC permissions of
// config/rbac, against a real API server and etcd. `make bench` (build tag bench) prints each
// result as a line "metric: value unit" and fails if a limit is exceeded. `make soak` (build tag
// soak) changes and deletes objects for SOAK_DURATION and checks the invariants.
//
// There is no kubelet and no kube-controller-manager. So operands have no ReplicaSets and no Pods,
// and there is no garbage collection. If a measurement needs ready instances, it writes the status
// that the Deployment controller would write. `make bench-cluster` measures on the local cluster,
// which has both. There, the Pods of the measured instances run on a fake Node.
//
// KUBEBUILDER_ASSETS is the directory with kube-apiserver and etcd.
package bench
