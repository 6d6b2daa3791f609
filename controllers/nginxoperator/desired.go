package nginxoperator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// inputs is everything beside the object itself that the desired state depends on, read once per reconcile.
type inputs struct {
	// image is the container image of the operands.
	image string
	// config is the nginx configuration.
	config configuration
	// content is the static files, nil where the object names none.
	content *content
	// edition is that of the Pod template.
	edition int
	// files are the files of spec.files that come from ConfigMaps, nil where none does.
	files *content
	// secrets stands for the files of spec.files that come from Secrets, "" where none does.
	secrets string
	// certificates stands for the content of all Secrets that the object names, "" where it names none.
	certificates string
	// usable are the certificates that nginx can use; no child depends on them beyond the above.
	usable []usable
	// deployment is the live Deployment of the object, nil where there is none. Only who scales it matters.
	deployment *appsv1.Deployment
	// running is what Pods listen on: the names of container ports follow it, and the ports that are on their way out.
	running running
	// exporter is the container image of the exporter, "" where there is none.
	exporter string
	// missing says for the optional kinds that the cluster does not have why not.
	missing map[string]string
}

// desired returns the complete list of children of an object, in the order in which they depend on each other.
func desired(object *v1alpha2.NginxOperator, in inputs) []client.Object {
	children := []client.Object{desiredConfigMap(object, in)}
	if in.content != nil {
		children = append(children, desiredContentConfigMap(object, in))
	}
	if in.files != nil {
		children = append(children, desiredFilesConfigMap(object, in))
	}
	deployment := desiredDeployment(object, in)
	children = append(children, desiredService(object, in))
	if defaults.HasNetworkPolicy(&object.Spec) {
		children = append(children, desiredNetworkPolicy(object, in))
	}
	children = append(children, deployment)
	if needsPodDisruptionBudget(*deployment.Spec.Replicas) {
		children = append(children, desiredPodDisruptionBudget(object, in))
	}
	if object.Spec.Autoscaling != nil {
		children = append(children, desiredAutoscaler(object, in))
	}
	if hasIngress(&object.Spec) {
		children = append(children, desiredIngress(object, in))
	}
	return append(children, desiredOptional(object, in)...)
}

// childrenOf returns the children of a declaration, made for what runs of the object now.
func (r *Reconciler) childrenOf(ctx context.Context, object *v1alpha2.NginxOperator, of *declaration) (_ []client.Object, err error) {
	of.in.missing = r.missingKinds()
	if of.in.deployment, err = r.liveDeployment(ctx, object); err != nil {
		return nil, err
	}
	if of.in.running, err = r.running(ctx, object); err != nil {
		return nil, err
	}
	return patched(of.object, of.in)
}

// Child returns the child of a kind that an object gets, with its patches, the Deployment unless the kind is another, as far as the
// spec says it: what the spec names is not read.
func (r *Reconciler) Child(object *v1alpha2.NginxOperator, kind string) client.Object {
	return patchedOrNot(object, r.child(object, kind))
}

func (r *Reconciler) child(object *v1alpha2.NginxOperator, kind string) client.Object {
	switch kind {
	case "Service":
		return desiredService(object, inputs{})
	case "NetworkPolicy":
		return desiredNetworkPolicy(object, inputs{})
	case "PodDisruptionBudget":
		return desiredPodDisruptionBudget(object, inputs{})
	case "Ingress":
		return desiredIngress(object, inputs{})
	}
	for _, child := range optionalChildren {
		if child.kind == kind {
			return child.desired(object, inputs{})
		}
	}
	return desiredDeployment(object, r.specInputs(object))
}

// childMeta returns the metadata that every child has: the name of the object, its namespace, and the labels.
func childMeta(object *v1alpha2.NginxOperator, in inputs) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      object.Name,
		Namespace: object.Namespace,
		Labels:    wellknown.ChildLabels(object.Name, in.image),
	}
}
