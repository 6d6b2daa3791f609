package migrate

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// tsuruSpec has the fields of NginxSpec of tsuru/nginx-operator at commit 77f209d1101e
// (api/v1alpha1/nginx_types.go:42 to 251).
type tsuruSpec struct {
	Replicas *int32 `json:"replicas"`
	Image    string `json:"image"`
	Config   struct {
		Kind  string `json:"kind"`
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"config"`
	TLS []struct {
		SecretName string   `json:"secretName"`
		Hosts      []string `json:"hosts"`
	} `json:"tls"`
	PodTemplate struct {
		Affinity                      *corev1.Affinity                  `json:"affinity"`
		NodeSelector                  map[string]string                 `json:"nodeSelector"`
		Annotations                   map[string]string                 `json:"annotations"`
		Labels                        map[string]string                 `json:"labels"`
		HostNetwork                   bool                              `json:"hostNetwork"`
		Ports                         []corev1.ContainerPort            `json:"ports"`
		TerminationGracePeriodSeconds *int64                            `json:"terminationGracePeriodSeconds"`
		PodSecurityContext            *corev1.PodSecurityContext        `json:"podSecurityContext"`
		ContainerSecurityContext      *corev1.SecurityContext           `json:"containerSecurityContext"`
		Volumes                       []corev1.Volume                   `json:"volumes"`
		VolumeMounts                  []corev1.VolumeMount              `json:"volumeMounts"`
		InitContainers                []corev1.Container                `json:"initContainers"`
		Containers                    []corev1.Container                `json:"containers"`
		RollingUpdate                 *appsv1.RollingUpdateDeployment   `json:"rollingUpdate"`
		Toleration                    []corev1.Toleration               `json:"toleration"`
		ServiceAccountName            string                            `json:"serviceAccountName"`
		TopologySpreadConstraints     []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	} `json:"podTemplate"`
	Service *struct {
		Type                  string            `json:"type"`
		LoadBalancerIP        string            `json:"loadBalancerIP"`
		Labels                map[string]string `json:"labels"`
		Annotations           map[string]string `json:"annotations"`
		ExternalTrafficPolicy string            `json:"externalTrafficPolicy"`
		UsePodSelector        *bool             `json:"usePodSelector"`
	} `json:"service"`
	Ingress *struct {
		Annotations      map[string]string `json:"annotations"`
		Labels           map[string]string `json:"labels"`
		IngressClassName *string           `json:"ingressClassName"`
	} `json:"ingress"`
	ExtraFiles struct {
		Name  string            `json:"name"`
		Files map[string]string `json:"files"`
	} `json:"extraFiles"`
	HealthcheckPath string                      `json:"healthcheckPath"`
	Resources       corev1.ResourceRequirements `json:"resources"`
	Cache           struct {
		InMemory bool   `json:"inMemory"`
		Path     string `json:"path"`
		Size     string `json:"size"`
	} `json:"cache"`
	Lifecycle *struct {
		PostStart *struct {
			Exec *corev1.ExecAction `json:"exec"`
		} `json:"postStart"`
		PreStop *struct {
			Exec *corev1.ExecAction `json:"exec"`
		} `json:"preStop"`
	} `json:"lifecycle"`
}
