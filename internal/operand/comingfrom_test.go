package operand

import (
	"os"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

// workload has the properties of an instance that matter to its clients and its environment,
// independent of the tool that created it.
type workload struct {
	Replicas                                         int32
	Image                                            string
	GracePeriod                                      int64
	Env, Requests, Labels, Annotations, NodeSelector map[string]string
	ServiceAnnotations                               map[string]string
	Service, Affinity, LocalPolicy                   string
	Ports                                            map[int32]int32 // listening port of nginx by port of the Service
	CachePath, CacheSize, CacheMedium                string
	MinReplicas, MaxReplicas, ProcessorTarget        int32
	Host, IngressClass                               string
	// Servers is the configuration in the http context, without white space and without the
	// directory of files.
	Servers string
	// Files has the references to ConfigMap keys, by the path in that directory.
	Files map[string]string
}

// TestComingFromCreatesTheSame verifies the pairs of manifests on the page "Coming from ...": the
// NginxOperator creates the same workload as the manifest that it replaces.
func TestComingFromCreatesTheSame(t *testing.T) {
	raw, err := os.ReadFile("../../docs/guide/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	page, examples := string(raw), docs.Examples(string(raw))
	converters := map[string]func(*testing.T, string) workload{
		"A Deployment with a ConfigMap": fromManifests, "tsuru/nginx-operator": fromTsuru, "A chart for a web server": fromValues,
	}
	if len(examples) != len(converters) {
		t.Fatalf("%d examples, want %d", len(examples), len(converters))
	}
	firstFence := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for _, example := range examples {
		t.Run(example.Section, func(t *testing.T) {
			_, section, _ := strings.Cut(page, "\n## "+example.Section)
			before := firstFence.FindStringSubmatch(section)[1]
			want := converters[example.Section](t, before)
			if diff := gocmp.Diff(want, fromOurs(t, example.Documents[len(example.Documents)-1])); diff != "" {
				t.Errorf("before (-), after (+):\n%s", diff)
			}
		})
	}
}

func fromOurs(t *testing.T, manifest string) workload {
	t.Helper()
	object := fixture.NewObject()
	decode(t, manifest, object)
	out := workloadOf(Desired(object, newInputs(t, object, object.Spec.Config.Inline, false))...)
	out.Servers = squeezed(object.Spec.Config.Inline, nginxconf.FilesDirectory)
	for _, file := range object.Spec.Files {
		put(&out.Files, file.Path, file.ConfigMapRef.Name+"/"+file.ConfigMapRef.Key)
	}
	return out
}

func fromManifests(t *testing.T, text string) workload {
	t.Helper()
	deployment, config, service := &appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.Service{}
	documents := strings.Split(text, "\n---\n")
	for i, into := range []any{deployment, config, service} {
		decode(t, documents[i], into)
	}
	out := workloadOf(deployment, service)
	out.Servers = squeezed(config.Data["default.conf"], "")
	return out
}

// fromTsuru renders the fields of the sample like tsuru's operator.
func fromTsuru(t *testing.T, text string) workload {
	t.Helper()
	nginx := struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Replicas   *int32
			Image      string
			Config     struct{ Kind, Value string }
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
	if spec.Cache.InMemory {
		medium = corev1.StorageMediumMemory
	}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: spec.PodTemplate.Labels}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: spec.PodTemplate.TerminationGracePeriodSeconds,
		Volumes: []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: &spec.Cache.Size},
		}}},
		Containers: []corev1.Container{{
			Image: spec.Image, Resources: spec.Resources, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			VolumeMounts: []corev1.VolumeMount{{Name: "cache", MountPath: spec.Cache.Path}},
		}},
	}}
	out := workloadOf(
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: spec.Replicas, Template: pod}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: spec.Service.Annotations}, Spec: corev1.ServiceSpec{
			Type: spec.Service.Type, ExternalTrafficPolicy: spec.Service.ExternalTrafficPolicy,
			Ports: []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromString("http")}},
		}},
	)
	_, inHTTP, _ := strings.Cut(squeezed(spec.Config.Value, "/etc/nginx/extra_files"), "http { ")
	out.Servers = strings.TrimSuffix(inHTTP, " }")
	for key, path := range spec.ExtraFiles.Files {
		put(&out.Files, path, spec.ExtraFiles.Name+"/"+key)
	}
	return out
}

// fromValues renders the values of the sample like the chart.
func fromValues(t *testing.T, text string) workload {
	t.Helper()
	values := struct {
		ReplicaCount   *int32
		Image          struct{ Registry, Repository, Tag string }
		ContainerPorts struct{ HTTP int32 }
		Service        struct {
			Type            corev1.ServiceType
			Ports           struct{ HTTP int32 }
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
		Ingress struct {
			Enabled          bool
			Hostname         string
			IngressClassName *string
		}
	}{}
	decode(t, text, &values)
	image := values.Image.Registry + "/" + values.Image.Repository + ":" + values.Image.Tag
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: values.PodLabels}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](30),
		Containers: []corev1.Container{{
			Image: image, Env: values.ExtraEnvVars, Resources: values.Resources,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: values.ContainerPorts.HTTP}},
		}},
	}}
	target := autoscalingv2.MetricTarget{AverageUtilization: values.Autoscaling.TargetCPU}
	out := workloadOf(
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: values.ReplicaCount, Template: pod}},
		&corev1.Service{Spec: corev1.ServiceSpec{
			Type: values.Service.Type, SessionAffinity: values.Service.SessionAffinity,
			Ports: []corev1.ServicePort{{Port: values.Service.Ports.HTTP, TargetPort: intstr.FromString("http")}},
		}},
		&autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: values.Autoscaling.MinReplicas, MaxReplicas: values.Autoscaling.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: target}}},
		}},
		&networkingv1.Ingress{Spec: networkingv1.IngressSpec{
			IngressClassName: values.Ingress.IngressClassName, Rules: []networkingv1.IngressRule{{Host: values.Ingress.Hostname}},
		}},
	)
	out.Servers = squeezed(values.ServerBlock, "")
	return out
}

// workloadOf returns the workload that the children of an instance describe.
func workloadOf(children ...client.Object) (out workload) {
	listens := map[string]int32{}
	for _, child := range children {
		if deployment, ok := child.(*appsv1.Deployment); ok {
			out.readDeployment(deployment)
			for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
				listens[port.Name] = port.ContainerPort
			}
		}
	}
	for _, child := range children {
		switch child := child.(type) {
		case *corev1.Service:
			out.Service, out.ServiceAnnotations = string(child.Spec.Type), users(child.Annotations)
			out.Affinity, out.LocalPolicy = string(child.Spec.SessionAffinity), string(child.Spec.ExternalTrafficPolicy)
			out.Ports = map[int32]int32{}
			for _, port := range child.Spec.Ports {
				out.Ports[port.Port] = max(listens[port.TargetPort.StrVal], port.TargetPort.IntVal)
			}
		case *autoscalingv2.HorizontalPodAutoscaler:
			out.MinReplicas, out.MaxReplicas = *child.Spec.MinReplicas, child.Spec.MaxReplicas
			target := child.Spec.Metrics[0]
			if target.ContainerResource != nil {
				out.ProcessorTarget = *target.ContainerResource.Target.AverageUtilization
			} else {
				out.ProcessorTarget = *target.Resource.Target.AverageUtilization
			}
		case *networkingv1.Ingress:
			out.Host, out.IngressClass = child.Spec.Rules[0].Host, *child.Spec.IngressClassName
		}
	}
	return out
}

func (w *workload) readDeployment(deployment *appsv1.Deployment) {
	pod := deployment.Spec.Template.Spec
	nginx := pod.Containers[0]
	w.Replicas, w.Image, w.NodeSelector = *deployment.Spec.Replicas, nginx.Image, pod.NodeSelector
	w.GracePeriod = *pod.TerminationGracePeriodSeconds
	w.Labels, w.Annotations = users(deployment.Spec.Template.Labels), users(deployment.Spec.Template.Annotations)
	for _, variable := range nginx.Env {
		put(&w.Env, variable.Name, variable.Value)
	}
	for name, quantity := range nginx.Resources.Requests {
		put(&w.Requests, string(name), quantity.String())
	}
	for _, volume := range pod.Volumes {
		for _, mount := range nginx.VolumeMounts {
			if volume.EmptyDir != nil && mount.Name == volume.Name && mount.MountPath != "/tmp" {
				w.CachePath, w.CacheSize, w.CacheMedium = mount.MountPath, volume.EmptyDir.SizeLimit.String(), string(volume.EmptyDir.Medium)
			}
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// squeezed returns a configuration with single spaces, and files without their directory.
func squeezed(text, directory string) string {
	if directory != "" {
		text = strings.ReplaceAll(text, directory+"/", "")
	}
	return strings.Join(strings.Fields(text), " ")
}

func put(into *map[string]string, key, value string) {
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[key] = value
}

// users returns the user's labels or annotations, without those of the operator and of selectors.
// It returns nil if none is left.
func users(all map[string]string) (out map[string]string) {
	for key, value := range all {
		if !wellknown.IsReserved(key) && strings.Contains(key, "example.com/") {
			put(&out, key, value)
		}
	}
	return out
}
