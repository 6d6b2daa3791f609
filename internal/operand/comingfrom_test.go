package operand

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
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
	CachePath, CacheMedium                           string
	CacheMebibytes                                   int64 // rounded up
	// Secrets are the mounted certificates, by name.
	Secrets []string
	// LimitsEgress reports whether a NetworkPolicy limits the connections of the Pods to others.
	LimitsEgress                              bool
	MinReplicas, MaxReplicas, ProcessorTarget int32
	Host, IngressClass                        string
	// Servers is the configuration in the http context, without white space and without the
	// directories of files and certificates.
	Servers string
	// Files has the references to ConfigMap keys, by the path in that directory.
	Files map[string]string
}

// TestComingFromCreatesTheSame verifies the pairs of manifests on the page "Coming from ...": the
// NginxOperator creates the same workload as the manifest that it replaces. fromTsuru and
// fromValues model the programs that read the latter.
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
	out.Servers = squeezed(object.Spec.Config.Inline, nginxconf.FilesDirectory+"/", nginxconf.TLSDirectory+"/")
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
	out.Servers = squeezed(config.Data["default.conf"])
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
			out.Replicas = max(out.Replicas, out.MinReplicas)
			target := child.Spec.Metrics[0]
			if target.ContainerResource != nil {
				out.ProcessorTarget = *target.ContainerResource.Target.AverageUtilization
			} else {
				out.ProcessorTarget = *target.Resource.Target.AverageUtilization
			}
		case *networkingv1.NetworkPolicy:
			out.LimitsEgress = slices.Contains(child.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		case *networkingv1.Ingress:
			out.Host, out.IngressClass = child.Spec.Rules[0].Host, *child.Spec.IngressClassName
		}
	}
	return out
}

func (w *workload) readDeployment(deployment *appsv1.Deployment) {
	pod := deployment.Spec.Template.Spec
	nginx := pod.Containers[0]
	// Without replicas, the API server sets 1.
	w.Replicas, w.Image, w.NodeSelector = ptr.Deref(deployment.Spec.Replicas, 1), nginx.Image, pod.NodeSelector
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
			if volume.EmptyDir != nil && volume.EmptyDir.SizeLimit != nil && mount.Name == volume.Name {
				w.CachePath, w.CacheMedium = mount.MountPath, string(volume.EmptyDir.Medium)
				w.CacheMebibytes = (volume.EmptyDir.SizeLimit.Value() + 1<<20 - 1) >> 20
			}
		}
		if volume.Secret != nil {
			w.Secrets = append(w.Secrets, volume.Secret.SecretName)
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// squeezed returns a configuration with single spaces, and files without these directories.
func squeezed(text string, directories ...string) string {
	for _, directory := range directories {
		text = strings.ReplaceAll(text, directory, "")
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
