package operand

import (
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fromTsuru renders the fields of the sample like tsuru/nginx-operator at commit 77f209d1101e.
// Lines are those of its pkg/k8s/k8s.go.
func fromTsuru(t *testing.T, text string) workload {
	t.Helper()
	nginx := struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Replicas *int32
			Image    string
			Config   struct{ Kind, Value string }
			TLS      []struct {
				SecretName string
				Hosts      []string
			}
			ExtraFiles struct {
				Name  string
				Files map[string]string
			}
			Cache struct {
				Path     string
				Size     resource.Quantity
				InMemory bool
			}
			Service struct {
				Type                  corev1.ServiceType
				Annotations           map[string]string
				ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy
			}
			Resources   corev1.ResourceRequirements
			PodTemplate struct {
				Labels                        map[string]string
				TerminationGracePeriodSeconds *int64
			}
		}
	}{}
	decode(t, text, &nginx)
	spec := nginx.Spec

	medium := corev1.StorageMediumDefault
	if spec.Cache.InMemory { // 570
		medium = corev1.StorageMediumMemory
	}
	limit := resource.NewQuantity(int64(math.Ceil(float64(spec.Cache.Size.Value())*1.05)), resource.BinarySI) // 44 and 587
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: spec.PodTemplate.Labels}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: spec.PodTemplate.TerminationGracePeriodSeconds, // 167
		Volumes: []corev1.Volume{{Name: "cache-vol", VolumeSource: corev1.VolumeSource{ // 574
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: limit},
		}}},
		Containers: []corev1.Container{{
			Image: spec.Image, Resources: spec.Resources, // 152
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "https", ContainerPort: 8443}}, // 640
			VolumeMounts: []corev1.VolumeMount{{Name: "cache-vol", MountPath: spec.Cache.Path}},                             // 591
		}},
	}}
	for _, tls := range spec.TLS { // 500
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: tls.SecretName},
		}})
	}
	out := workloadOf(
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: spec.Replicas, Template: pod}}, // 114
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: spec.Service.Annotations}, Spec: corev1.ServiceSpec{ // 222
			Type: spec.Service.Type, ExternalTrafficPolicy: spec.Service.ExternalTrafficPolicy,
			Ports: []corev1.ServicePort{ // 280
				{Port: 80, TargetPort: intstr.FromString("http")}, {Port: 443, TargetPort: intstr.FromString("https")},
			},
		}},
	)
	// 55 and 58
	_, inHTTP, _ := strings.Cut(squeezed(spec.Config.Value, "/etc/nginx/extra_files/", "/etc/nginx/certs/"), "http { ")
	out.Servers = strings.TrimSuffix(inHTTP, " }")
	for key, path := range spec.ExtraFiles.Files { // 533
		put(&out.Files, path, spec.ExtraFiles.Name+"/"+key)
	}
	return out
}

// fromValues renders the values of the sample like Bitnami's chart nginx 22.1.1 (bitnami/charts at
// commit 5165628ae066). Lines are those of bitnami/nginx/templates, and the defaults are those of
// bitnami/nginx/values.yaml.
func fromValues(t *testing.T, text string) workload {
	t.Helper()
	values := struct {
		Image          struct{ Registry, Repository, Tag string }
		ContainerPorts struct{ HTTP, HTTPS int32 }
		TLS            struct{ ExistingSecret string }
		Service        struct {
			Type            corev1.ServiceType
			Ports           struct{ HTTP, HTTPS int32 }
			SessionAffinity corev1.ServiceAffinity
		}
		ExtraEnvVars []corev1.EnvVar
		PodLabels    map[string]string
		Resources    corev1.ResourceRequirements
		ServerBlock  string
		Autoscaling  struct {
			Enabled                bool
			MinReplicas, TargetCPU *int32
			MaxReplicas            int32
		}
		NetworkPolicy struct{ AllowExternalEgress *bool }
		Ingress       struct {
			Enabled          bool
			Hostname         string
			IngressClassName *string
		}
	}{}
	values.ContainerPorts.HTTPS, values.Service.Ports.HTTPS = 8443, 443 // values.yaml:324 and 680
	decode(t, text, &values)

	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: values.PodLabels}, Spec: corev1.PodSpec{ // deployment.yaml:28
		TerminationGracePeriodSeconds: ptr.To[int64](30), // of the API server, deployment.yaml:99
		Containers: []corev1.Container{{
			Image: values.Image.Registry + "/" + values.Image.Repository + ":" + values.Image.Tag, // deployment.yaml:241
			// The variables of deployment.yaml:260 to 273 are for scripts of Bitnami's image.
			Env: values.ExtraEnvVars, Resources: values.Resources, // deployment.yaml:274 and 322
			Ports: []corev1.ContainerPort{ // deployment.yaml:286
				{Name: "http", ContainerPort: values.ContainerPorts.HTTP}, {Name: "https", ContainerPort: values.ContainerPorts.HTTPS},
			},
		}},
		Volumes: []corev1.Volume{{Name: "certificate", VolumeSource: corev1.VolumeSource{ // deployment.yaml:442
			Secret: &corev1.SecretVolumeSource{SecretName: values.TLS.ExistingSecret},
		}}},
	}}
	policy := &networkingv1.NetworkPolicy{}
	if !ptr.Deref(values.NetworkPolicy.AllowExternalEgress, true) { // networkpolicy.yaml:24 and values.yaml:754
		policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	}
	children := []client.Object{
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: pod}}, // without replicas if autoscaling is enabled, deployment.yaml:16
		&corev1.Service{Spec: corev1.ServiceSpec{ // svc.yaml:20
			Type: values.Service.Type, SessionAffinity: values.Service.SessionAffinity,
			Ports: []corev1.ServicePort{ // svc.yaml:43, values.yaml:692
				{Port: values.Service.Ports.HTTP, TargetPort: intstr.FromString("http")},
				{Port: values.Service.Ports.HTTPS, TargetPort: intstr.FromString("https")},
			},
		}},
		policy,
	}
	if values.Autoscaling.Enabled { // hpa.yaml:6
		target := autoscalingv2.MetricTarget{AverageUtilization: values.Autoscaling.TargetCPU}
		children = append(children, &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: values.Autoscaling.MinReplicas, MaxReplicas: values.Autoscaling.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: target}}},
		}})
	}
	if values.Ingress.Enabled { // ingress.yaml:6
		children = append(children, &networkingv1.Ingress{Spec: networkingv1.IngressSpec{
			IngressClassName: values.Ingress.IngressClassName, Rules: []networkingv1.IngressRule{{Host: values.Ingress.Hostname}},
		}})
	}
	out := workloadOf(children...)
	// deployment.yaml:376: the only certificate is in this directory. The operator's has its name.
	out.Servers = strings.ReplaceAll(squeezed(values.ServerBlock), "/certs/", values.TLS.ExistingSecret+"/")
	return out
}
