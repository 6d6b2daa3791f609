// Package wellknown holds the names, labels and annotations that the operator puts on what it
// creates.
package wellknown

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// OperatorName is the operator's name: its field manager, its event source, its leader election,
// and the value of the label app.kubernetes.io/managed-by.
const OperatorName = "nginx-operator"

// OperandContainer is the name of the container of a Pod that serves.
const OperandContainer = "nginx"

// ExporterContainer is the name of the container of a Pod that makes Prometheus metrics of the
// figures of nginx.
const ExporterContainer = "nginx-prometheus-exporter"

// DefaultExporterImage is the exporter that this release is tested with.
const DefaultExporterImage = "docker.io/nginx/nginx-prometheus-exporter:1.5.1"

// CRDName is the name of the API's CustomResourceDefinition, and of the StorageVersionMigration for
// it.
const CRDName = "nginxoperators.operator.example.com"

// MutatingName and ValidatingName are the names of the webhook configurations outside of OLM, which
// creates its own.
const (
	MutatingName   = OperatorName + "-mutating-webhook-configuration"
	ValidatingName = OperatorName + "-validating-webhook-configuration"
)

// ManagerRole is the name of the ClusterRole of the operator's ServiceAccount.
const ManagerRole = "nginx-operator-manager-role"

// Labels recommended by Kubernetes for all objects of an application.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelVersion   = "app.kubernetes.io/version"
	LabelComponent = "app.kubernetes.io/component"
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// LabelCanary is on a NginxOperator, with the value "true", that starts before the others of its
// namespace when a release of the operator rolls the fleet. It starts before all others only in the
// namespaces of --fleet-rollout-canary-namespaces.
const LabelCanary = "operator.example.com/canary"

// IsCanary reports whether a NginxOperator has the label of canaries.
func IsCanary(labels map[string]string) bool { return labels[LabelCanary] == "true" }

// Annotations of the operator.
const (
	// AnnotationLastDeclared is on every child and keeps what the operator declared last, so that a
	// field that is no longer declared can be told from one that somebody else set.
	AnnotationLastDeclared = "operator.example.com/last-declared"
	// AnnotationReplicas is on a Deployment that keeps the number of Pods of release 0.5.1, though
	// spec.replicas declares another. It has the spec.replicas and the generation at which that
	// number was found (replicas=2,generation=7). A change of the object ends it. Releases before
	// 0.6.0 wrote it on every Deployment, with the spec.replicas that they had applied (2, or 2=5
	// after autoscaling).
	AnnotationReplicas = "operator.example.com/replicas"
	// AnnotationChange is on the Deployment, and on its ReplicaSets. It identifies their Pods
	// (internal/change).
	AnnotationChange = "operator.example.com/change"
	// AnnotationSpec is on the Deployment, and on its ReplicaSets. It has the part of the spec that
	// reaches their Pods, for kubectl nginx.
	AnnotationSpec = "operator.example.com/spec"
	// LabelRecord is on a Deployment that a release before 0.8.0 wrote last, in place of
	// AnnotationChange.
	LabelRecord = "operator.example.com/record"
	// AnnotationFirstDeclaration is on such a Deployment, too: a name, a space, and a spec.
	// Declarations had only the name.
	AnnotationFirstDeclaration = "operator.example.com/first-declaration"
	// AnnotationContent is on the Deployment after a ConfigMap was found that did not hold the
	// content in its name. It keeps the end of the names of the ConfigMaps that its Pods mount
	// since.
	AnnotationContent = "operator.example.com/content"
	// AnnotationForceRedeploy is on the Pods and keeps spec.forceRedeploy.
	AnnotationForceRedeploy = "operator.example.com/force-redeploy"
	// AnnotationCertificates is on the Pods and stands for the content of the Secrets that they
	// mount: another certificate makes new Pods.
	AnnotationCertificates = "operator.example.com/certificates"
	// AnnotationFiles is on the Pods and stands for the keys of Secrets that they mount as files.
	AnnotationFiles = "operator.example.com/files"
	// AnnotationServicePorts is on the Pods and names the container ports that the Service serves
	// under another number than the one that nginx listens on, each with that number (http=80),
	// separated by commas.
	AnnotationServicePorts = "operator.example.com/service-ports"
	// AnnotationV1alpha2 is on the v1alpha1 form of a NginxOperator and keeps, as JSON, what
	// v1alpha1 cannot say. The v1alpha2 form never has it.
	AnnotationV1alpha2 = "operator.example.com/v1alpha2"
	// AnnotationV1alpha2Unreadable is on a NginxOperator whose AnnotationV1alpha2 was damaged and
	// has its text, so that the object can be read and restored. Part of the declaration may be
	// missing while it is there.
	AnnotationV1alpha2Unreadable = "operator.example.com/v1alpha2-unreadable"
)

// AnnotationRevision is the annotation in which the Deployment controller counts revisions. It is
// on a Deployment and on its ReplicaSets, and shows the newest ReplicaSet.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// MaxServicePorts is the maximum size of AnnotationServicePorts in bytes: 32 container ports, each
// with a name and a number.
const MaxServicePorts = 1024

// domain is that of the operator's own annotations.
const domain = "operator.example.com/"

// IsReserved reports whether a label or annotation is the operator's, so that users cannot set it
// on what it creates.
func IsReserved(key string) bool { return strings.HasPrefix(key, domain) }

// Selector returns the labels that tell the Pods of one instance from all others of its namespace.
// They never change: the selector of a Deployment is immutable.
func Selector(instance string) map[string]string {
	return map[string]string{
		LabelName:      "nginx",
		LabelInstance:  instance,
		LabelManagedBy: OperatorName,
	}
}

// PodLabels returns the labels of the Pods of an instance. They hold nothing that changes with a
// release of the operator, because a change would roll the Pods.
func PodLabels(instance string) map[string]string {
	labels := Selector(instance)
	labels[LabelComponent] = "server"
	labels[LabelPartOf] = OperatorName
	return labels
}

// ChildLabels returns the labels of the child objects of an instance. The version is the image's
// tag; it is left out where the image has none.
func ChildLabels(instance, image string) map[string]string {
	labels := PodLabels(instance)
	if tag := imageTag(image); tag != "" && len(validation.IsValidLabelValue(tag)) == 0 {
		labels[LabelVersion] = tag
	}
	return labels
}

// imageTag returns the tag of an image reference, "" where it has none.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return ""
	}
	return tag
}
