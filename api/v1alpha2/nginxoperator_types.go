package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Defaults that the operator applies when a field is not set. Fields that other fields depend on
// have no default in the schema: a stored default would look like a value that the user set.
const (
	// DefaultPortName is the name of the only port if spec.ports is not set.
	DefaultPortName = "http"
	// DefaultPort is the number of the only port if no port is set.
	DefaultPort int32 = 8080
	// DefaultReplicas is the number of Pods if spec.replicas is not set.
	DefaultReplicas int32 = 1
	// DefaultTLSPort is the port of the first certificate if the certificate has no port and
	// spec.config is not set.
	DefaultTLSPort int32 = 8443
	// DefaultConfigKey is the key that holds the configuration if spec.config.configMapRef.key
	// is not set.
	DefaultConfigKey = "nginx.conf"
	// DefaultDrainSeconds is the time, in seconds, that a Pod has to shut down if
	// spec.drainSeconds is not set.
	DefaultDrainSeconds int32 = 25
	// DefaultWorkerConnections is the number of connections per worker process if
	// spec.nginx.workerConnections is not set.
	DefaultWorkerConnections int32 = 1024
	// DefaultErrorLogLevel is the lowest severity that nginx logs if spec.nginx.errorLogLevel is
	// not set.
	DefaultErrorLogLevel = "notice"
	// DefaultProgressDeadlineSeconds is the time, in seconds, after which a rollout without
	// progress fails if spec.rollout.progressDeadlineSeconds is not set.
	DefaultProgressDeadlineSeconds int32 = 600
)

// NginxOperator is an NGINX instance, and not the operator. The operator creates a Deployment, a
// Service, a ConfigMap, and a NetworkPolicy for it. It also creates a PodDisruptionBudget for two
// or more replicas, and further objects for spec.autoscaling, spec.expose, and spec.monitoring. It
// restores these objects if they change, and reports their state in the status.
//
// The Service has the name of the NginxOperator. The name must therefore be a DNS label (RFC
// 1035): at most 63 lower-case letters, digits, and hyphens, starting with a letter and ending
// with a letter or digit.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=nginxoperators,singular=nginxoperator,shortName=ngx,categories=all,scope=Namespaced
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label, because the Service has the same name: at most 63 lower-case letters, digits, and hyphens, starting with a letter and ending with a letter or digit; choose another name"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all replicas serve the current spec"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`,description="Number of Pods"
// +kubebuilder:printcolumn:name="Ready-Replicas",type=integer,JSONPath=`.status.readyReplicas`,description="Number of ready Pods"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,description="Container image of nginx in the current Pod template"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,description="URL of the instance"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1,description="Reason of the Ready condition"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Message of the Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +operator-sdk:csv:customresourcedefinitions:displayName="NGINX instance",resources={{Deployment,v1,""},{ReplicaSet,v1,""},{Pod,v1,""},{Service,v1,""},{ConfigMap,v1,""},{PodDisruptionBudget,v1,""},{NetworkPolicy,v1,""},{Ingress,v1,""},{HTTPRoute,v1,""},{PodMonitor,v1,""},{PrometheusRule,v1,""},{ControllerRevision,v1,""},{HorizontalPodAutoscaler,v2,""}}
type NginxOperator struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the instance. All fields are optional.
	// +optional
	// +default={}
	Spec NginxOperatorSpec `json:"spec,omitempty"`

	// status is the observed state of the instance. Only the operator writes it.
	// +optional
	Status NginxOperatorStatus `json:"status,omitempty"`
}

// NginxOperatorList is a list of NginxOperators.
//
// +kubebuilder:object:root=true
type NginxOperatorList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the NginxOperators in the list.
	Items []NginxOperator `json:"items"`
}
