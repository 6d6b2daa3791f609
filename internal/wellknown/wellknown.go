// Package wellknown has the names, labels, and annotations of objects that the operator creates.
package wellknown

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// OperatorName is the operator's name: its field manager, its event source, its leader election,
// and the value of the label app.kubernetes.io/managed-by.
const OperatorName = "nginx-operator"

// OperandContainer is the name of the container of nginx.
const OperandContainer = "nginx"

// ExporterContainer is the name of the container with the Prometheus exporter of nginx.
const ExporterContainer = "nginx-prometheus-exporter"

// RequestMetricsContainer is the name of the container that counts requests.
const RequestMetricsContainer = "nginx-request-metrics"

// DefaultExporterImage is the exporter that this release is tested with.
const DefaultExporterImage = "docker.io/nginx/nginx-prometheus-exporter:1.5.1"

// DefaultRequestMetricsImage is the receiver of request metrics. Its tag is the version in
// cmd/nginx-request-metrics/VERSION, and changes only with the receiver.
const DefaultRequestMetricsImage = "ghcr.io/example/nginx-request-metrics:v1.0.0"

// CRDName is the name of the CustomResourceDefinition and of its StorageVersionMigration.
const CRDName = "nginxoperators.operator.example.com"

// MutatingName and ValidatingName are the webhook configurations outside of OLM, which creates its
// own.
const (
	MutatingName   = OperatorName + "-mutating-webhook-configuration"
	ValidatingName = OperatorName + "-validating-webhook-configuration"
)

// ManagerRole is the name of the ClusterRole of the operator's ServiceAccount.
const ManagerRole = "nginx-operator-manager-role"

// Labels that Kubernetes recommends.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelVersion   = "app.kubernetes.io/version"
	LabelComponent = "app.kubernetes.io/component"
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// LabelCanary has the value "true" on an NginxOperator that starts before the others of its
// namespace when a release of the operator rolls the fleet, and before all others in the namespaces
// of --fleet-rollout-canary-namespaces.
const LabelCanary = "operator.example.com/canary"

// IsCanary reports whether an NginxOperator has the label of canaries.
func IsCanary(labels map[string]string) bool { return labels[LabelCanary] == "true" }

// Annotations of the operator.
const (
	// AnnotationLastDeclared is on every child. It has the last declaration, which distinguishes a
	// field that is no longer declared from one that another client set.
	AnnotationLastDeclared = "operator.example.com/last-declared"
	// AnnotationReplicas is on a Deployment that retains the number of Pods of release 0.5.1 until
	// its object changes. It has the other spec.replicas and the generation at which that number was
	// found (replicas=2,generation=7). Releases before 0.6.0 wrote it on every Deployment, with the
	// spec.replicas that they had applied (2, or 2=5 after autoscaling).
	AnnotationReplicas = "operator.example.com/replicas"
	// AnnotationChange identifies the Pods of the Deployment and of its ReplicaSets (internal/change).
	AnnotationChange = "operator.example.com/change"
	// AnnotationSpec has the part of the spec that reaches the same Pods, for kubectl nginx.
	AnnotationSpec = "operator.example.com/spec"
	// LabelRecord replaces AnnotationChange on a Deployment that a release before 0.8.0 wrote last.
	LabelRecord = "operator.example.com/record"
	// AnnotationFirstDeclaration is on such a Deployment, too: a name, a space, and a spec.
	AnnotationFirstDeclaration = "operator.example.com/first-declaration"
	// AnnotationContent is on the Deployment after a forged ConfigMap was found. It has the end of
	// the names of the ConfigMaps that its Pods mount since.
	AnnotationContent = "operator.example.com/content"
	// AnnotationForceRedeploy is on the Pods and has spec.forceRedeploy.
	AnnotationForceRedeploy = "operator.example.com/force-redeploy"
	// AnnotationCertificates is a hash of the Secrets of spec.tls. A renewed one rolls the Pods.
	AnnotationCertificates = "operator.example.com/certificates"
	// AnnotationFiles is on the Pods and has a hash of the keys of Secrets that they mount as files.
	AnnotationFiles = "operator.example.com/files"
	// AnnotationServicePorts is on the Pods. It has the container ports with another number in the
	// Service, each with that number (http=80), separated by commas.
	AnnotationServicePorts = "operator.example.com/service-ports"
	// AnnotationV1alpha2 is on the v1alpha1 form of an NginxOperator, and only there. It has, as
	// JSON, the fields that v1alpha1 lacks.
	AnnotationV1alpha2 = "operator.example.com/v1alpha2"
	// AnnotationV1alpha2Unreadable has the text of a damaged AnnotationV1alpha2, so that the object
	// can be read and restored. Until then its spec may be incomplete.
	AnnotationV1alpha2Unreadable = "operator.example.com/v1alpha2-unreadable"
)

// AnnotationRevision is on a Deployment and on its ReplicaSets. The Deployment controller counts
// revisions in it. It shows the newest ReplicaSet.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// MaxServicePorts bounds AnnotationServicePorts in bytes: 32 ports with names and numbers.
const MaxServicePorts = 1024

// IsReserved reports whether a label or annotation is the operator's, so that users cannot set it.
func IsReserved(key string) bool { return strings.HasPrefix(key, "operator.example.com/") }

// Selector returns the labels that identify the Pods of one instance in its namespace. They never
// change: the selector of a Deployment is immutable.
func Selector(instance string) map[string]string {
	return map[string]string{
		LabelName:      "nginx",
		LabelInstance:  instance,
		LabelManagedBy: OperatorName,
	}
}

// PodLabels returns the labels of the Pods of an instance. They do not change with a release of the
// operator, because a change would roll the Pods.
func PodLabels(instance string) map[string]string {
	labels := Selector(instance)
	labels[LabelComponent] = "server"
	labels[LabelPartOf] = OperatorName
	return labels
}

// ChildLabels returns the labels of children. The version is the image's tag, if it has one.
func ChildLabels(instance, image string) map[string]string {
	labels := PodLabels(instance)
	if tag := imageTag(image); tag != "" && len(validation.IsValidLabelValue(tag)) == 0 {
		labels[LabelVersion] = tag
	}
	return labels
}

func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}
