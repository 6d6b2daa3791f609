package v1alpha2

import corev1 "k8s.io/api/core/v1"

// NginxOperatorSpec is the desired state of one NGINX instance.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || self.ports.all(p, self.ports.exists_one(q, q.port == p.port && (has(q.protocol) ? q.protocol : 'TCP') == (has(p.protocol) ? p.protocol : 'TCP')))",message="ports has the same port and protocol twice, which a Service does not allow; change port in one entry, or remove the entry",fieldPath=".ports",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || !self.ports.exists(p, self.ports.exists(q, q.port != p.port && (has(q.protocol) ? q.protocol : 'TCP') == (has(p.protocol) ? p.protocol : 'TCP') && (has(q.targetPort) ? q.targetPort : q.port) == (has(p.targetPort) ? p.targetPort : p.port)))",message="ports has two entries for which nginx would listen on the same number; change targetPort (by default the number of port) in one of them",fieldPath=".ports",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || has(self.config) || self.tls.all(t, !has(t.port) || self.tls.exists_one(u, has(u.port) && u.port == t.port))",message="tls has the same port twice, which requires config, because its server blocks select a certificate by server_name; change or remove one port, or set config",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || self.tls.all(t, !has(t.port) || self.tls.all(u, !has(u.port) || (u.port == t.port) == ((has(u.targetPort) ? u.targetPort : u.port) == (has(t.targetPort) ? t.targetPort : t.port))))",message="entries of tls with the same port must have the same targetPort, and entries with different ports must have different ones; correct targetPort",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !self.tls.exists(t, has(t.port) && (has(self.ports) ? self.ports.exists(p, p.port == t.port && (!has(p.protocol) || p.protocol == 'TCP')) : t.port == 8080))",message="tls has a port that is also in ports (8080 if ports is not set); change port in tls",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !self.tls.exists(t, has(t.port) && (has(self.ports) ? self.ports.exists(p, p.port != t.port && (!has(p.protocol) || p.protocol == 'TCP') && (has(p.targetPort) ? p.targetPort : p.port) == (has(t.targetPort) ? t.targetPort : t.port)) : t.port != 8080 && (has(t.targetPort) ? t.targetPort : t.port) == 8080))",message="tls and ports have entries for which nginx would listen on the same number (8080 if ports is not set); change targetPort in tls",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || size(self.tls) == 0 || has(self.config) || !has(self.ports) || self.tls.exists(t, has(t.port)) || !self.ports.exists(p, (!has(p.protocol) || p.protocol == 'TCP') && (p.port == 8443 || (has(p.targetPort) ? p.targetPort : p.port) == 8443))",message="the first entry of tls has port 8443 by default, which is already a port or targetPort in ports; set port in tls",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || !self.ports.exists(p, has(p.nodePort)) || has(self.service) && has(self.service.type) && self.service.type != 'ClusterIP'",message="nodePort in ports requires a Service of type NodePort or LoadBalancer; set service.type, or remove nodePort",fieldPath=".ports",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !self.tls.exists(t, has(t.nodePort)) || has(self.service) && has(self.service.type) && self.service.type != 'ClusterIP'",message="nodePort in tls requires a Service of type NodePort or LoadBalancer; set service.type, or remove nodePort",fieldPath=".tls",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || size(self.ports) > 0 || has(self.tls) && (has(self.config) ? self.tls.exists(t, has(t.port)) : size(self.tls) > 0)",message="ports is empty, so tls must have an entry with a port; set port in tls, or remove ports to listen on 8080",fieldPath=".ports",reason=FieldValueInvalid
type NginxOperatorSpec struct {
	// replicas is the number of NGINX Pods, 0 to 1000. Defaults to 1. 0 stops all Pods. kubectl
	// scale and HorizontalPodAutoscalers set this field through the scale subresource. If
	// autoscaling is set, replicas is only the initial number, but 0 still stops all Pods.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// autoscaling adjusts the number of Pods to the load, with a HorizontalPodAutoscaler. It
	// requires the metrics API (metrics-server). If it is set, replicas is only the initial
	// number, but 0 still stops all Pods.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Autoscaling"
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// image is the container image of NGINX, at most 512 characters. It must have nginx in its
	// PATH. Its user must be numeric and not root, unless securityContext.runAsUser is set.
	// Defaults to the image that the operator is configured with (RELATED_IMAGE_NGINX).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:space:]]')",message="image must not contain whitespace; remove it"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Image string `json:"image,omitempty"`

	// ports are the plain HTTP ports of the Service, at most 16. Defaults to one port named http
	// with the number 8080. An empty list disables plain HTTP and requires a port in tls. If
	// config is set, its server blocks must listen on each port.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Ports"
	Ports []Port `json:"ports,omitzero"`

	// forceRedeploy starts a rolling update of all Pods whenever its value changes. The value
	// has no other meaning. Use a timestamp, for example. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Force redeploy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ForceRedeploy string `json:"forceRedeploy,omitempty"`

	// config is the nginx configuration within the http context, mostly server blocks. Defaults
	// to one server block that serves content, or nginx's welcome page, on every port. The
	// operator manages the rest of nginx.conf: the main and events contexts, the server block
	// for the kubelet's probes, temporary paths, and logs.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Configuration"
	Config *Config `json:"config,omitempty"`

	// nginx tunes the main and events contexts of nginx.conf, and the logs. A change starts a
	// rollout.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Tuning of nginx",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Nginx *Nginx `json:"nginx,omitempty"`

	// content is the source of static files, mounted at /usr/share/nginx/html. Defaults to
	// nginx's welcome page.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Content"
	Content *Content `json:"content,omitempty"`

	// files are keys of ConfigMaps and Secrets, mounted as files below /etc/nginx/files, at most
	// 16. Use them for include files, password files, and parameters. A change of their content
	// starts a rollout. Files from ConfigMaps can have at most 1 MiB in total.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(f, !self.exists(g, g.path.startsWith(f.path + '/')))",message="files has a path that is the directory of another path, for example a and a/b.conf; rename one of them"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Files",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Files []File `json:"files,omitempty"`

	// cache is a writable volume for nginx's cache. Each Pod has its own.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cache",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Cache *Cache `json:"cache,omitempty"`

	// tls are certificates, at most 16. Each is mounted as tls.crt and tls.key in
	// /etc/nginx/tls/<secretName>. A renewed certificate in the Secret starts a rollout.
	// +optional
	// +listType=map
	// +listMapKey=secretName
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="TLS"
	TLS []TLS `json:"tls,omitempty"`

	// service configures the Service. Defaults to type ClusterIP.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service"
	Service *Service `json:"service,omitempty"`

	// networkPolicy restricts the clients that can reach the Pods. By default, all clients can
	// reach the served ports.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Network policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`

	// expose makes the instance reachable from outside the cluster, through an Ingress or an
	// HTTPRoute. Off by default.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Expose"
	Expose *Expose `json:"expose,omitempty"`

	// resources are the compute resources of the nginx container. Defaults to requests of 10m
	// CPU and 32Mi memory, without limits. A value replaces the whole default.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="resources.claims is not supported; remove it"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Resources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements"}
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// securityContext sets the user and group IDs for containers and volumes. Defaults to the
	// user of the image.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Security context",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty"`

	// podTemplate sets labels, annotations, and scheduling of the Pods.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod template",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// env are environment variables of the nginx container, at most 64. Worker processes inherit
	// them, so modules and libraries can read them. nginx configuration cannot reference them as
	// variables.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Environment",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Env []EnvVar `json:"env,omitempty"`

	// volumes are additional volumes of the Pods, at most 16, with their mount paths in the
	// nginx container. They are in addition to the volumes of config, content, files, cache, and
	// tls.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Volumes",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Volumes []Volume `json:"volumes,omitempty"`

	// initContainers run before nginx, at most 8. They run one after the other, and each must
	// succeed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Init containers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	InitContainers []Container `json:"initContainers,omitempty"`

	// sidecars run next to nginx, at most 8. They start after initContainers and before nginx,
	// and stop after nginx.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Sidecars",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Sidecars []Container `json:"sidecars,omitempty"`

	// monitoring enables metrics: an exporter next to nginx, a PodMonitor, and alerts. Off by
	// default.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Monitoring"
	Monitoring *Monitoring `json:"monitoring,omitempty"`

	// serviceAccountName is the ServiceAccount of the Pods. Its token is not mounted unless
	// volumes or patches declare one. Defaults to the ServiceAccount named default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service account",xDescriptors={"urn:alm:descriptor:io.kubernetes:ServiceAccount","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// patches change the Deployment, Service, NetworkPolicy, or PodDisruptionBudget in ways that
	// no other field supports, at most 8. The operator applies them in order. Patches cannot
	// change values that another field sets or that the operator depends on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Patches",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Patches []Patch `json:"patches,omitempty"`

	// drainSeconds is the time, in seconds, from the deletion of a Pod until nginx closes its
	// last open connection, 5 to 3600. Defaults to 25. For the first 5 seconds (4 if
	// drainSeconds is 5), the Pod keeps serving while the cluster removes it from endpoint
	// lists. Then nginx finishes requests in progress (worker_shutdown_timeout).
	// +optional
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Drain seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// rollout configures rolling updates and automatic rollback.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Rollout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Rollout *Rollout `json:"rollout,omitempty"`

	// paused stops the operator from changing the Deployment, the Service, and all other child
	// objects. The operator keeps reporting status. Pending changes are applied when paused is
	// false again. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Paused",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Paused bool `json:"paused,omitempty"`
}
