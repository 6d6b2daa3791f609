package operand

import (
	"cmp"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	// firstUnprivilegedPort is the first port that needs no sysctl.
	firstUnprivilegedPort = 1024
	// secretMode lets any user read a key: the image or the cluster chooses the user of nginx, and
	// root owns the files of a Secret.
	secretMode int32 = 0o444
)

// setPodTemplate completes the Pod template of the asset. For specs that v1alpha1 can express, it
// must remain the template of release 0.1.0: another one would restart all Pods in an upgrade.
func setPodTemplate(template *corev1.PodTemplateSpec, object *v1alpha2.NginxOperator, in Inputs) {
	spec, pod := &object.Spec, &template.Spec
	ports := declaredPorts(spec, in.Running)
	setPodMetadata(template, object, in, servicePorts(ports))
	health := defaults.ServicePort{Listens: defaults.HealthPort(spec)}
	ports = append(ports, declaredPort{ServicePort: health, target: HealthPort})
	if slices.ContainsFunc(ports, func(port declaredPort) bool { return port.Listens < firstUnprivilegedPort }) {
		pod.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}

	drain := defaults.DrainOf(spec)
	pod.TerminationGracePeriodSeconds = ptr.To(drain.GracePeriod)
	pod.Volumes[0].ConfigMap.Name = ConfigName(object, in)

	nginx := &pod.Containers[0]
	nginx.Image = in.Image
	setWorkload(pod, spec)
	if in.Exporter != "" {
		pod.InitContainers = append(pod.InitContainers, *exporter(spec, in, nginx))
	}
	if in.RequestMetrics != "" {
		pod.InitContainers = append(pod.InitContainers, *requestMetrics(spec, in, nginx))
	}

	for _, port := range ports {
		nginx.Ports = append(nginx.Ports, corev1.ContainerPort{
			Name: port.target, ContainerPort: port.Listens, Protocol: corev1.ProtocolTCP,
		})
	}

	nginx.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drain.PreStop}}}
	nginx.Resources = defaults.Resources(spec)
	if in.Content != nil {
		source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: ContentName(object, in)}}
		for _, item := range ptr.Deref(spec.Content, v1alpha2.Content{}).ConfigMapRef.Items {
			source.Items = append(source.Items, corev1.KeyToPath{Key: item.Key, Path: item.Path})
		}
		slices.SortFunc(source.Items, func(a, b corev1.KeyToPath) int { return cmp.Compare(a.Path, b.Path) })
		mount(pod, nginxconf.ContentDirectory, corev1.Volume{
			Name: "content", VolumeSource: corev1.VolumeSource{ConfigMap: source},
		})
	}

	mountFiles(pod, object, in)
	mountCache(pod, spec.Cache)
	for _, tls := range spec.TLS {
		// The name of a Secret may be too long for a volume, and may have dots.
		source := &corev1.SecretVolumeSource{SecretName: tls.SecretName, DefaultMode: ptr.To(secretMode)}
		mount(pod, path.Join(nginxconf.TLSDirectory, tls.SecretName), corev1.Volume{
			Name: cached.CertificateVolume + ShortHash(tls.SecretName), VolumeSource: corev1.VolumeSource{Secret: source},
		})
	}

	if spec.PodTemplate != nil {
		setPlacement(pod, object)
	}
}

// setPodMetadata sets labels and annotations. The operator's values override the user's.
func setPodMetadata(template *corev1.PodTemplateSpec, object *v1alpha2.NginxOperator, in Inputs, servicePorts string) {
	operators := map[string]string{
		wellknown.AnnotationServicePorts:  servicePorts,
		wellknown.AnnotationForceRedeploy: object.Spec.ForceRedeploy,
		wellknown.AnnotationFiles:         in.SecretsHash,
		wellknown.AnnotationCertificates:  in.CertificatesHash,
	}

	maps.DeleteFunc(operators, func(_, value string) bool { return value == "" })
	users := ptr.Deref(object.Spec.PodTemplate, v1alpha2.PodTemplate{})
	template.Labels = withUsers(users.Labels, wellknown.PodLabels(object.Name))
	template.Annotations = withUsers(users.Annotations, operators)
}

// mount adds a read-only volume to the nginx container.
func mount(pod *corev1.PodSpec, directory string, volume corev1.Volume) {
	pod.Volumes = append(pod.Volumes, volume)
	nginx := &pod.Containers[0]
	nginx.VolumeMounts = append(nginx.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: directory, ReadOnly: true})
}

// setPlacement sets the scheduling fields and the pull secrets.
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
