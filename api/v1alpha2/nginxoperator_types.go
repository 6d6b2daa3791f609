package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of the API. Those of a field that other fields depend on are not stored, so that a later apply which sets
// the field does not find a value there that nobody declared.
const (
	// DefaultPortName is the name of the port that exists when spec.ports is not given.
	DefaultPortName = "http"
	// DefaultPort is the TCP port on which nginx listens when spec.ports is not given.
	DefaultPort int32 = 8080
	// DefaultReplicas is the number of operands when spec.replicas is not given.
	DefaultReplicas int32 = 1
	// DefaultTLSPort is the port of the first certificate when neither spec.config nor a port of it is given.
	DefaultTLSPort int32 = 8443
	// DefaultConfigKey is the key of a ConfigMap that holds the configuration when spec.config.configMapRef.key is not
	// given.
	DefaultConfigKey = "nginx.conf"
	// DefaultDrainSeconds is the time an operand has to end when spec.drainSeconds is not given, in seconds.
	DefaultDrainSeconds int32 = 25
	// DefaultWorkerConnections is how many connections a worker process may have when spec.nginx.workerConnections is not given.
	DefaultWorkerConnections int32 = 1024
	// DefaultErrorLogLevel is the least severity that is logged when spec.nginx.errorLogLevel is not given.
	DefaultErrorLogLevel = "notice"
	// DefaultProgressDeadlineSeconds is how long a rollout may make no progress when spec.rollout.progressDeadlineSeconds is
	// not given, in seconds.
	DefaultProgressDeadlineSeconds int32 = 120
)

// NginxOperatorSpec declares one NGINX instance.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || self.ports.all(p, self.ports.exists_one(q, q.port == p.port))",message="ports: two ports have the same number; the Service has each number once, so remove one of them",fieldPath=".ports",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || !self.ports.exists(p, self.ports.exists(q, q.port != p.port && (has(q.targetPort) ? q.targetPort : q.port) == (has(p.targetPort) ? p.targetPort : p.port)))",message="ports: nginx would listen on the same number for two ports; give one of them another targetPort",fieldPath=".ports",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || has(self.config) || self.tls.all(t, !has(t.port) || self.tls.exists_one(u, has(u.port) && u.port == t.port))",message="tls: two certificates have the same port, and only the server blocks of config can choose between them by server_name; give one of them another port, leave its port out, or set config",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || self.tls.all(t, !has(t.port) || self.tls.all(u, !has(u.port) || (u.port == t.port) == ((has(u.targetPort) ? u.targetPort : u.port) == (has(t.targetPort) ? t.targetPort : t.port))))",message="tls: certificates that share a port share the number on which nginx listens, and others have one of their own; correct targetPort",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !self.tls.exists(t, has(t.port) && (has(self.ports) ? self.ports.exists(p, p.port == t.port) : t.port == 8080))",message="tls: a port is either in ports (plain HTTP; 8080 when ports is not given) or in tls, not in both; give the certificate another port",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !self.tls.exists(t, has(t.port) && (has(self.ports) ? self.ports.exists(p, p.port != t.port && (has(p.targetPort) ? p.targetPort : p.port) == (has(t.targetPort) ? t.targetPort : t.port)) : t.port != 8080 && (has(t.targetPort) ? t.targetPort : t.port) == 8080))",message="tls: nginx listens on a number either for plain HTTP (8080 when ports is not given) or for TLS; give the certificate another targetPort",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || size(self.tls) == 0 || has(self.config) || !has(self.ports) || self.tls.exists(t, has(t.port)) || !self.ports.exists(p, p.port == 8443 || (has(p.targetPort) ? p.targetPort : p.port) == 8443)",message="tls: the first certificate has port 8443 by default, which is in ports (plain HTTP) already; give the certificate another port",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || !self.ports.exists(p, has(p.nodePort)) || has(self.service) && has(self.service.type) && self.service.type != 'ClusterIP'",message="ports: nodePort needs a Service of type NodePort or LoadBalancer; set service.type or remove nodePort",fieldPath=".ports",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !self.tls.exists(t, has(t.nodePort)) || has(self.service) && has(self.service.type) && self.service.type != 'ClusterIP'",message="tls: nodePort needs a Service of type NodePort or LoadBalancer; set service.type or remove nodePort",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || size(self.ports) > 0 || has(self.tls) && (has(self.config) ? self.tls.exists(t, has(t.port)) : size(self.tls) > 0)",message="ports: an empty list means no plain HTTP, and no certificate has a port either; give one in tls, or remove ports to listen on 8080",fieldPath=".ports",reason=FieldValueInvalid
type NginxOperatorSpec struct {
	// replicas is the number of NGINX Pods, 0 to 1000. Defaults to 1. With 0 nothing serves.
	// It is also what the scale subresource sets (kubectl scale, HorizontalPodAutoscaler).
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// autoscaling has the number of Pods follow the load: a HorizontalPodAutoscaler sets it, and replicas is only the number that a
	// new object starts with, or 0 for none. It needs the metrics API (metrics-server).
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Autoscaling"
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// image is the container image of the operands, at most 512 characters. Defaults to the image that this release of
	// the operator was tested with. It has to run as a user other than root and to have nginx in its PATH.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:space:]]')",message="image must not contain white space, for example docker.io/nginxinc/nginx-unprivileged:1.28.0"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Image string `json:"image,omitempty"`

	// ports are the TCP ports that the Service serves with plain HTTP, at most 16. Defaults to one port http with the number
	// 8080. An empty list is an instance without plain HTTP, which needs a port in tls. With config, each has to be listened on there.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Ports"
	Ports []Port `json:"ports,omitzero"`

	// forceRedeploy replaces all Pods, one after the other, whenever it changes, and changes nothing else.
	// The value has no meaning; a date does well. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Force redeploy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ForceRedeploy string `json:"forceRedeploy,omitempty"`

	// config is the nginx configuration: what may stand in the http context, server blocks above all.
	// Defaults to one server block that serves content (or nginx's welcome page) on every port. The operator owns the rest of
	// nginx.conf: the main and events contexts, the server block for the kubelet's probes, temporary paths and logs.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Configuration"
	Config *Config `json:"config,omitempty"`

	// nginx tunes what the operator sets in the main and events contexts of nginx.conf, and the logs. A change starts a rollout.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Tuning of nginx",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Nginx *Nginx `json:"nginx,omitempty"`

	// content is where static files come from. nginx finds them in /usr/share/nginx/html.
	// Defaults to nginx's welcome page.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Content"
	Content *Content `json:"content,omitempty"`

	// files are keys of ConfigMaps and Secrets that nginx finds as files in /etc/nginx/files, at most 16: text for include, password
	// files, parameters. A change of their content is taken over by a rolling update. Those of ConfigMaps may have 1 MiB together.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(f, !self.exists(g, g.path.startsWith(f.path + '/')))",message="a path is a file or the directory of one, not both; rename one of them"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Files",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Files []File `json:"files,omitempty"`

	// cache is a volume that nginx may write to, for a cache of its own in each Pod.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cache",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Cache *Cache `json:"cache,omitempty"`

	// tls are certificates, at most 16. nginx finds each as tls.crt and tls.key in /etc/nginx/tls/<secretName>. A new
	// certificate in a Secret is taken over by a rolling update.
	// +optional
	// +listType=map
	// +listMapKey=secretName
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="TLS"
	TLS []TLS `json:"tls,omitempty"`

	// service says how the Service looks. Defaults to type ClusterIP.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service"
	Service *Service `json:"service,omitempty"`

	// networkPolicy says who may reach the operands. By default anybody may, on the ports that are served.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`

	// expose makes the instance reachable from outside of the cluster through an Ingress or an HTTPRoute. Defaults to nothing.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Expose"
	Expose *Expose `json:"expose,omitempty"`

	// resources are the compute resources of the nginx container. Defaults to requests of cpu 10m and memory 32Mi and no
	// limits; what is given replaces all of the default.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="resources.claims is not supported: a claim of a Pod cannot be declared here; remove it"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Resources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements"}
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// securityContext says as whom the containers of the Pods run, and to whom their volumes belong. Defaults to the user of the image.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Security context",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty"`

	// podTemplate adds to the Pods: labels, annotations, and where they run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod template",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// env are environment variables of the nginx container, at most 64. Its worker processes have them as well, where modules and
	// libraries read them; no variable of a configuration has their values.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Environment",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Env []EnvVar `json:"env,omitempty"`

	// volumes are volumes of the Pods, at most 16, and where nginx has them, beside those of config, content and tls.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Volumes",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Volumes []Volume `json:"volumes,omitempty"`

	// initContainers run before nginx, one after the other, each until it has succeeded, at most 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Init containers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	InitContainers []Container `json:"initContainers,omitempty"`

	// sidecars run beside nginx, at most 8. They start after initContainers and before nginx, and end after it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Sidecars",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Sidecars []Container `json:"sidecars,omitempty"`

	// monitoring has the figures of nginx collected: an exporter beside nginx, a PodMonitor and alerts. Defaults to nothing.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Monitoring"
	Monitoring *Monitoring `json:"monitoring,omitempty"`

	// serviceAccountName is the ServiceAccount of the Pods. Its token is not mounted. Defaults to the one named default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service account",xDescriptors={"urn:alm:descriptor:io.kubernetes:ServiceAccount","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// patches change the Deployment, the Service, the NetworkPolicy and the PodDisruptionBudget, one after the other, at most 8:
	// for what no other field can say. They cannot change what another field declares, nor what the operator relies on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Patches",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Patches []Patch `json:"patches,omitempty"`

	// drainSeconds is the time in seconds that a Pod has from its deletion until its last open connection is cut, 5 to
	// 3600. Defaults to 25. The Pod goes on to serve for the first 5 seconds of it (4 of 5), while the cluster takes it out of
	// its endpoint lists; then nginx ends requests in progress (worker_shutdown_timeout).
	// +optional
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Drain seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// rollout says how a change reaches the Pods, and what becomes of one that fails.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Rollout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Rollout *Rollout `json:"rollout,omitempty"`

	// paused keeps the operator from changing the operands, while it goes on to report on them. Defaults to false.
	// What changed meanwhile is done when it is set to false again.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Paused",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Paused bool `json:"paused,omitempty"`
}

// Rollout says how a change reaches the Pods, and what becomes of one that fails.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxSurge) && has(self.maxUnavailable)) || !(string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",message="rollout: maxSurge and maxUnavailable are both 0, so no Pod could ever be replaced; raise one of them",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || has(self.maxUnavailable) || !(string(self.maxSurge) in ['0', '0%'])",message="rollout: with maxSurge 0 a Pod is removed before its successor is there; set maxUnavailable to how many may be",reason=FieldValueInvalid,fieldPath=".maxSurge"
type Rollout struct {
	// maxSurge is how many Pods may exist above replicas during a rollout: a number, 0 to 1000, or a percentage of replicas,
	// rounded up. Defaults to 25%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxSurge is a number from 0 to 1000 or a percentage from 0% to 100%, for example 25%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// maxUnavailable is how many of the replicas may be missing during a rollout: a number, 0 to 1000, or a percentage of
	// replicas, rounded down. Defaults to 0: a Pod goes once its successor serves.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable is a number from 0 to 1000 or a percentage from 0% to 100%, for example 25%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// progressDeadlineSeconds is how long a rollout may go on without progress, in seconds, until it counts as failed, 10 to
	// 3600. Defaults to 120.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// automaticRollback takes a change back whose rollout fails: image, configuration, content and Pods are again what they
	// were when all replicas served last (status.lastGoodRevision). It is not tried again until the object, or what it names,
	// changes. With false the failure is reported only. Defaults to true.
	// +optional
	AutomaticRollback *bool `json:"automaticRollback,omitempty"`
}

// Config is nginx configuration, from one of two places.
//
// +kubebuilder:validation:XValidation:rule="has(self.inline) != has(self.configMapRef)",message="config takes exactly one of inline and configMapRef"
type Config struct {
	// inline is the configuration itself, at most 65536 characters; a longer one belongs into a ConfigMap.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`

	// configMapRef names a ConfigMap of the object's namespace. A change of its content is taken over by a rolling
	// update; one that nginx would not accept is not, and is told of in the status.
	// +optional
	ConfigMapRef *ConfigMapKeyReference `json:"configMapRef,omitempty"`
}

// ConfigMapKeyReference names one key of a ConfigMap in the namespace of the object.
type ConfigMapKeyReference struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	Name string `json:"name"`

	// key in its data. Defaults to nginx.conf.
	// +optional
	// +default="nginx.conf"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="key must be letters, digits, hyphens, dots and underscores, as keys of a ConfigMap are, for example nginx.conf"
	Key string `json:"key,omitempty"`
}

// Nginx tunes what the operator sets in nginx.conf.
type Nginx struct {
	// workerProcesses is the number of nginx's worker processes (worker_processes), 1 to 1024. Defaults to the processors of
	// resources.limits.cpu, rounded up, and without that limit to those of the node.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	WorkerProcesses *int32 `json:"workerProcesses,omitempty"`

	// workerConnections is how many connections a worker process may have open, to clients and to upstreams together
	// (worker_connections), 64 to 65535. Defaults to 1024.
	// +optional
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65535
	WorkerConnections *int32 `json:"workerConnections,omitempty"`

	// errorLogLevel is the least severity that nginx logs to the container's output (error_log). Defaults to notice.
	// +optional
	// +kubebuilder:validation:Enum=debug;info;notice;warn;error;crit;alert;emerg
	ErrorLogLevel string `json:"errorLogLevel,omitempty"`

	// accessLog logs each request to the container's output (access_log). Defaults to true. An access_log of config in the http
	// context, in a server or in a location has precedence.
	// +optional
	AccessLog *bool `json:"accessLog,omitempty"`
}

// Content is where static files come from.
type Content struct {
	// configMapRef names a ConfigMap of the object's namespace; each key of its data and binaryData becomes a file.
	// A change of it is taken over by a rolling update.
	// +required
	ConfigMapRef ConfigMapReference `json:"configMapRef"`
}

// ConfigMapReference names a ConfigMap in the namespace of the object.
type ConfigMapReference struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	Name string `json:"name"`
}

// PodTemplate adds to the Pods of the operands. Fields have the meaning that they have in a Pod.
type PodTemplate struct {
	// labels of the Pods, at most 64, beside those of the operator (app.kubernetes.io/...), which cannot be set here.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/version', 'app.kubernetes.io/component', 'app.kubernetes.io/part-of', 'app.kubernetes.io/managed-by']))",message="the labels app.kubernetes.io/name, instance, version, component, part-of and managed-by and those that begin with operator.example.com/ are the operator's; remove them, or use a key with a prefix of your own"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the Pods, at most 64.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('operator.example.com/'))",message="the annotations that begin with operator.example.com/ are the operator's; remove them, or use a prefix of your own"
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector is the set of labels that a node must have.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the Pods, at most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || size(t.effect) == 0 || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="the effect of a toleration is NoSchedule, PreferNoSchedule or NoExecute, or left out to tolerate all of them"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the Pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints of the Pods, at most 16. One without a labelSelector is about the operands of this object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.maxSkew >= 1)",message="maxSkew must be at least 1"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.whenUnsatisfiable in ['DoNotSchedule', 'ScheduleAnyway'])",message="whenUnsatisfiable must be DoNotSchedule or ScheduleAnyway"
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName of the Pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="priorityClassName must be lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit, as names of objects do"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets names Secrets of the object's namespace that the kubelet pulls the image with, at most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// NginxOperator declares an NGINX instance. The operator creates what it needs (a Deployment, a Service, a ConfigMap, a
// NetworkPolicy unless spec.networkPolicy says none, from two replicas up a PodDisruptionBudget and, with spec.expose, an
// Ingress or an HTTPRoute), keeps it as declared and reports on it.
//
// The name is also the name of the Service, so it has to be a DNS label (RFC 1035): at most 63 lower-case letters,
// digits and hyphens, beginning with a letter.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=nginxoperators,singular=nginxoperator,shortName=ngx,categories=all,scope=Namespaced
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label, because the Service gets the same name: at most 63 lower-case letters, digits and hyphens, beginning with a letter and not ending with a hyphen; choose another name"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all replicas serve the declared configuration"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Replicas that are declared"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.readyReplicas`,description="Replicas that serve"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,description="Image that the operands run"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,description="Where clients find the instance"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1,description="Reason of the Ready condition"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Message of the Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +operator-sdk:csv:customresourcedefinitions:displayName="NGINX instance",resources={{Deployment,v1,""},{ReplicaSet,v1,""},{Pod,v1,""},{Service,v1,""},{ConfigMap,v1,""},{PodDisruptionBudget,v1,""},{NetworkPolicy,v1,""},{Ingress,v1,""},{HTTPRoute,v1,""},{PodMonitor,v1,""},{PrometheusRule,v1,""},{ControllerRevision,v1,""},{HorizontalPodAutoscaler,v2,""}}
type NginxOperator struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares the instance. Every field has a default, so it may be left out.
	// +optional
	// +default={}
	Spec NginxOperatorSpec `json:"spec,omitempty"`

	// status is what the operator observed; only the operator writes it.
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

	// items are the objects of this list.
	Items []NginxOperator `json:"items"`
}
