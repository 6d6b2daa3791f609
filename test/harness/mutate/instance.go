package mutate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// InstanceContent and InstanceSecret are the names of the ConfigMap and the Secret that
// InstanceSpec references. InstancePage is the text of its pages.
const (
	InstanceContent = "content"
	InstanceSecret  = "certificate"
	InstancePage    = "served throughout"
)

// InstanceOther is the name that is tried first in a reference to a ConfigMap or a Secret.
const InstanceOther = "other"

// InstanceOtherData is the content of objects with this name. An instance serves InstancePage,
// whatever it uses them for.
func InstanceOtherData() map[string]string {
	return map[string]string{"index.html": InstancePage, v1alpha2.DefaultConfigKey: instanceConfig, InstanceOther: instanceConfig, "2": "2"}
}

// ShortDrain is the smallest drainSeconds whose Pods keep listening for 5 seconds after their
// deletion, as Pods with the default do. On a busy test cluster, kube-proxy takes more than the 4
// seconds of the minimum for some changes.
const ShortDrain int32 = 6

// instanceConfig serves the content on all ports of InstanceSpec.
const instanceConfig = `server {
    listen 8080;
    listen 9000;
    listen 8443 ssl;
    ssl_certificate /etc/nginx/tls/certificate/tls.crt;
    ssl_certificate_key /etc/nginx/tls/certificate/tls.key;
    location / { root /usr/share/nginx/html; }
}
`

// instancePatch is a valid patch for children of every kind, without the value at its end.
const instancePatch = "metadata:\n  annotations:\n    example.com/patched: "

// InstanceSpec returns the spec to change. It sets the other fields that are required by fields
// with more than one dependency.
func InstanceSpec() v1alpha2.NginxOperatorSpec {
	anyNode := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"nowhere"}},
	}}
	return v1alpha2.NginxOperatorSpec{
		Replicas: ptr.To[int32](1),
		Ports: []v1alpha2.Port{
			{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}, {Name: "admin", Port: 9000, Protocol: corev1.ProtocolTCP},
		},
		Content: &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: InstanceContent}},
		Files: []v1alpha2.File{
			{Path: "page", ConfigMapRef: &v1alpha2.FileReference{Name: InstanceContent, Key: "index.html"}},
		},
		Cache: &v1alpha2.Cache{Size: "32Mi"},
		// The volumes have the names that are tried first for mounts of containers.
		Volumes:      []v1alpha2.Volume{{Name: "other", EmptyDir: &v1alpha2.EmptyDirVolume{}}, {Name: "x", EmptyDir: &v1alpha2.EmptyDirVolume{}}},
		TLS:          []v1alpha2.TLS{{SecretName: InstanceSecret, Port: ptr.To[int32](8443)}},
		Service:      &v1alpha2.Service{Type: corev1.ServiceTypeNodePort},
		DrainSeconds: ptr.To(ShortDrain),
		// Some accepted values end only at the deadline: for runAsGroup without runAsUser,
		// containerd refuses the sandbox of the Pod, and no status reports that.
		Rollout: &v1alpha2.Rollout{ProgressDeadlineSeconds: ptr.To[int32](120)},
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		PodTemplate: &v1alpha2.PodTemplate{
			Tolerations: []corev1.Toleration{{Key: "example.com/edge", Operator: corev1.TolerationOpExists}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{anyNode},
				},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Weight: 1, Preference: *anyNode.DeepCopy()},
				},
			}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway},
			},
		},
	}
}

// InstanceVolumes returns specs that differ from InstanceSpec in the source of their first volume.
// A volume can have only one source.
func InstanceVolumes() []v1alpha2.NginxOperatorSpec {
	labels := v1alpha2.DownwardAPIVolume{Items: []v1alpha2.DownwardAPIFile{
		{Path: "labels", FieldRef: v1alpha2.FieldReference{FieldPath: "metadata.labels"}},
	}}
	out := []v1alpha2.NginxOperatorSpec{InstanceSpec(), InstanceSpec()}
	out[0].Volumes[0] = v1alpha2.Volume{Name: "other", DownwardAPI: &labels}
	out[1].Volumes[0] = v1alpha2.Volume{Name: "other", Projected: &v1alpha2.ProjectedVolume{
		Sources: []v1alpha2.ProjectedSource{{DownwardAPI: &labels}},
	}}
	return out
}

// instanceValues returns specs that differ from InstanceSpec in the value of a configuration. A
// value can have only one source.
func instanceValues() []v1alpha2.NginxOperatorSpec {
	sources := []v1alpha2.ConfigValueSource{
		{ConfigMapKeyRef: &v1alpha2.SecretFileReference{Name: InstanceContent, Key: "index.html"}},
		{ConfigMapKeyRef: &v1alpha2.SecretFileReference{Name: InstanceOther, Key: "index.html"}},
		{FieldRef: &v1alpha2.ConfigValueField{FieldPath: "metadata.namespace"}},
	}
	values := []v1alpha2.ConfigValue{{Name: "NAME", Value: "value"}}
	for i := range sources {
		values = append(values, v1alpha2.ConfigValue{Name: "NAME", ValueFrom: &sources[i]})
	}

	var out []v1alpha2.NginxOperatorSpec
	for _, value := range values {
		spec := InstanceSpec()
		spec.Config = &v1alpha2.Config{Inline: instanceConfig, Values: []v1alpha2.ConfigValue{value}}
		out = append(out, spec)
	}
	return out
}

// InstanceFields returns the fields of the schema of a spec, with changes of InstanceSpec.
func InstanceFields(schema *apiextensionsv1.JSONSchemaProps) ([]Field, error) {
	var decoded []map[string]any
	for _, spec := range slices.Concat([]v1alpha2.NginxOperatorSpec{InstanceSpec()}, InstanceVolumes(), instanceValues()) {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			return nil, fmt.Errorf("failed to decode a declaration: %w", err)
		}
		decoded = append(decoded, object)
	}
	return Fields(schema, decoded[0], InstancePool(), decoded[1:]...), nil
}

// InstancePool returns the values to try in the fields of InstanceSpec.
func InstancePool() Pool {
	return Pool{
		Strings: []string{
			InstanceOther, "2", "192.0.2.0/24", "192.0.2.0/25", "16Mi", "Exists", "Equal", "In", "NotIn", "NoExecute", "NoSchedule", "DoNotSchedule",
			"ScheduleAnyway", "Honor", "Ignore", "example.com/other", instanceConfig, "/cache", "/other", "limits.cpu", "metadata.name",
			instancePatch + "b", "90s", "OTHER", "pcre_jit on;", "multi_accept on;",
		},
		Keys:     []string{"example.com/other", "cpu", "memory"},
		Required: []string{"In", "Exists"},
	}
}

// SpecSchema returns the schema of the spec in a version of a CRD.
func SpecSchema(crd *apiextensionsv1.CustomResourceDefinition, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	for i := range crd.Spec.Versions {
		if found := &crd.Spec.Versions[i]; found.Name == version && found.Schema != nil {
			spec := found.Schema.OpenAPIV3Schema.Properties["spec"]
			return &spec, nil
		}
	}
	return nil, fmt.Errorf("the CRD %s has no version %s", crd.Name, version)
}
