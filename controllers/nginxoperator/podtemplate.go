package nginxoperator

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	// firstUnprivilegedPort is the first port that a process without privileges may listen on without a sysctl.
	firstUnprivilegedPort = 1024
	// secretMode lets the user that nginx runs as read a key. Which user that is the image or the cluster decides, and a
	// file of a Secret belongs to root. Only the Pod's own containers see the volume.
	secretMode int32 = 0o444
)

// setPodTemplate completes the Pod template of the asset. For what v1alpha1 can say it has to stay what it was in release
// 0.1.0 to the last byte, or an upgrade would roll every Pod.
func setPodTemplate(template *corev1.PodTemplateSpec, object *v1alpha2.NginxOperator, in inputs) {
	spec, pod := &object.Spec, &template.Spec
	ports := declaredPorts(spec, in.running)
	setPodMetadata(template, object, in, servicePorts(ports))
	ports = append(ports, served{target: portHealth, listens: defaults.HealthPort(spec)})
	if slices.ContainsFunc(ports, func(port served) bool { return port.listens < firstUnprivilegedPort }) {
		pod.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
	drain := defaults.DrainOf(spec)
	pod.TerminationGracePeriodSeconds = ptr.To(drain.GracePeriod)
	pod.Volumes[0].ConfigMap.Name = configName(object, in)

	nginx := &pod.Containers[0]
	nginx.Image = in.image
	setWorkload(pod, spec)
	if in.exporter != "" {
		pod.InitContainers = append(pod.InitContainers, *exporter(spec, in, nginx))
	}
	for _, port := range ports {
		nginx.Ports = append(nginx.Ports, corev1.ContainerPort{
			Name: port.target, ContainerPort: port.listens, Protocol: corev1.ProtocolTCP,
		})
	}
	nginx.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drain.PreStop}}}
	nginx.Resources = defaults.Resources(spec)
	if in.content != nil {
		source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: contentName(object, in)}}
		mount(pod, nginxconf.ContentDirectory, corev1.Volume{
			Name: "content", VolumeSource: corev1.VolumeSource{ConfigMap: source},
		})
	}
	mountFiles(pod, object, in)
	mountCache(pod, spec.Cache)
	for _, tls := range spec.TLS {
		// The name of a Secret may be longer than that of a volume, and may hold dots.
		source := &corev1.SecretVolumeSource{SecretName: tls.SecretName, DefaultMode: ptr.To(secretMode)}
		mount(pod, path.Join(nginxconf.TLSDirectory, tls.SecretName), corev1.Volume{
			Name: "tls-" + shortHash(tls.SecretName), VolumeSource: corev1.VolumeSource{Secret: source},
		})
	}
	if spec.PodTemplate != nil {
		setPlacement(pod, object)
	}
	toEdition(template, in.edition)
}

// setPodMetadata sets labels and annotations; those of the operator win.
func setPodMetadata(template *corev1.PodTemplateSpec, object *v1alpha2.NginxOperator, in inputs, servicePorts string) {
	operators := map[string]string{}
	if servicePorts != "" {
		operators[wellknown.AnnotationServicePorts] = servicePorts
	}
	if object.Spec.ForceRedeploy != "" {
		operators[wellknown.AnnotationForceRedeploy] = object.Spec.ForceRedeploy
	}
	if in.secrets != "" {
		operators[wellknown.AnnotationFiles] = in.secrets
	}
	if in.certificates != "" {
		operators[wellknown.AnnotationCertificates] = in.certificates
	}
	users := ptr.Deref(object.Spec.PodTemplate, v1alpha2.PodTemplate{})
	template.Labels = withUsers(users.Labels, wellknown.PodLabels(object.Name))
	template.Annotations = withUsers(users.Annotations, operators)
}

func mount(pod *corev1.PodSpec, directory string, volume corev1.Volume) {
	pod.Volumes = append(pod.Volumes, volume)
	nginx := &pod.Containers[0]
	nginx.VolumeMounts = append(nginx.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: directory, ReadOnly: true})
}

// setPlacement sets where the Pods run and with what they are pulled.
func setPlacement(pod *corev1.PodSpec, object *v1alpha2.NginxOperator) {
	users := object.Spec.PodTemplate.DeepCopy()
	pod.NodeSelector = users.NodeSelector
	pod.Tolerations = users.Tolerations
	pod.Affinity = users.Affinity
	pod.PriorityClassName = users.PriorityClassName
	pod.ImagePullSecrets = users.ImagePullSecrets
	for _, constraint := range users.TopologySpreadConstraints {
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: wellknown.Selector(object.Name)}
		}
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, constraint)
	}
}
