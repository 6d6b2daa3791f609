package world

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// ordered has the kinds of children that Pods depend on.
var ordered = []*storage.Resource{
	storage.ConfigMaps, storage.Services, storage.NetworkPolicies, storage.ControllerRevisions, storage.Deployments,
}

// State returns the state of the cluster for the invariants.
func (w *World) State() *check.State {
	w.follow()
	out := &check.State{
		Instances:   list[v1alpha2.NginxOperator](w, storage.NginxOperators),
		Deployments: list[appsv1.Deployment](w, storage.Deployments),
		Pods:        list[corev1.Pod](w, storage.Pods),
		Now:         time.Now(), Exists: map[string]bool{}, Records: map[string]bool{}, Mounted: map[string]bool{},
		Unproven: map[string]bool{}, Replaced: map[string]bool{},
		Certificates: w.Certificates, NodePorts: w.NodePorts, Inputs: w.Inputs,
	}
	for kind, of := range map[string]*storage.Resource{"secret": storage.Secrets, "configmap": storage.ConfigMaps} {
		for _, found := range w.Store.List(of, Namespace) {
			out.Exists[kind+"/"+found.Name] = true
		}
	}
	for name, one := range w.audit.instances {
		out.Unproven[name], out.Replaced[name] = w.audit.isUnproven(one), one.replaces()
	}
	for _, names := range w.audit.mounts {
		for _, name := range names {
			out.Mounted[name] = true
		}
	}
	mountTemplates(out)
	for _, found := range w.Store.List(storage.ControllerRevisions, Namespace) {
		out.Records[found.Name] = true
	}
	out.Refuses = time.Now().Before(w.refusedUntil)
	for of := range w.Faults.Refuse {
		out.Refuses = out.Refuses || slices.Contains(ordered, of)
	}
	if w.operator != nil {
		out.Fleet = w.operator.fleet.get()
	}
	for _, of := range []*storage.Resource{
		storage.ConfigMaps, storage.Services, storage.Deployments, storage.NetworkPolicies, storage.Ingresses, storage.PodDisruptionBudgets,
		storage.Autoscalers, storage.EndpointSlices,
	} {
		for _, found := range w.Store.List(of, Namespace) {
			if of == storage.EndpointSlices && found.Meta().GetLabels()[discoveryv1.LabelManagedBy] != "nginx-operator" {
				continue
			}
			out.Children = append(out.Children, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(found.Object)})
		}
	}
	return out
}

// mountTemplates adds what the Pod templates mount: a Deployment that is paused with 0 replicas has
// no ReplicaSet yet.
func mountTemplates(out *check.State) {
	for _, deployment := range out.Deployments {
		for _, name := range check.MountedConfigMaps(&deployment.Spec.Template.Spec) {
			out.Mounted[name] = true
		}
	}
}
