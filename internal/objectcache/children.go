package objectcache

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slimDeployment keeps the number of replicas, the number of the revision, the ID of the Pods, the
// names that an earlier release gave them, the hash of the certificates that Pods mount, the names
// of the objects that Pods need, whether the rollout is paused, and the status.
func slimDeployment(deployment *appsv1.Deployment) {
	labels := pick(deployment.Labels, maxNumberText, wellknown.LabelRecord)
	annotations := pick(deployment.Annotations, maxNumberText, numbers...)
	first, _, _ := strings.Cut(deployment.Annotations[wellknown.AnnotationFirstDeclaration], " ")
	slimChild(deployment)
	deployment.Labels, deployment.Annotations = labels, annotations
	if first != "" && len(first) <= maxNumberText {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationFirstDeclaration, strings.Clone(first))
	}

	template := deployment.Spec.Template
	deployment.Spec = appsv1.DeploymentSpec{Replicas: deployment.Spec.Replicas, Paused: deployment.Spec.Paused}
	deployment.Spec.Template.Annotations = pick(template.Annotations, maxNumberText, wellknown.AnnotationCertificates)
	deployment.Spec.Template.Spec = cached.ReferencesOf(&template.Spec).PodSpec()

	conditions := deployment.Status.Conditions
	deployment.Status.Conditions = nil
	for _, condition := range conditions[:min(len(conditions), maxConditions)] {
		if condition.Type == appsv1.DeploymentProgressing || condition.Type == appsv1.DeploymentReplicaFailure {
			cut(maxText, &condition.Reason, &condition.Message)
			deployment.Status.Conditions = append(deployment.Status.Conditions, condition)
		}
	}
}

// slimControllerRevision keeps the number of the revision.
func slimControllerRevision(revision *appsv1.ControllerRevision) {
	slimChild(revision)
	revision.Data = runtime.RawExtension{}
}

// slimOther keeps no field of a child but its identity.
func slimOther(child client.Object) {
	slimChild(child)
	identity := *metaOf(child)
	reflect.ValueOf(child).Elem().SetZero()
	*metaOf(child) = identity
}
