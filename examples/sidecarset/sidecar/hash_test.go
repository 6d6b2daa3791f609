package sidecar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

func TestHashes(t *testing.T) {
	before := HashesOf(&sampleSet(t).Spec)
	for name, test := range map[string]struct {
		change                func(*v1alpha1.SidecarSet)
		all, withoutImageSame bool
	}{
		"nothing":     {func(*v1alpha1.SidecarSet) {}, true, true},
		"defaults":    {func(s *v1alpha1.SidecarSet) { Default(&s.Spec) }, true, true},
		"image":       {withImage("busybox:1.36"), false, true},
		"pull policy": {func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].ImagePullPolicy = corev1.PullNever }, true, true},
		"command":     {func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Command = []string{"true"} }, false, false},
		"another one": {func(s *v1alpha1.SidecarSet) {
			s.Spec.Containers = append(s.Spec.Containers, corev1.Container{Name: "b"})
		}, false, false},
		"volume":        {func(s *v1alpha1.SidecarSet) { s.Spec.Volumes[0].EmptyDir.Medium = corev1.StorageMediumMemory }, false, false},
		"paused":        {func(s *v1alpha1.SidecarSet) { s.Spec.Paused = true }, true, true},
		"selector":      {func(s *v1alpha1.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} }, true, true},
		"image, edited": {func(s *v1alpha1.SidecarSet) { Default(&s.Spec); withImage("busybox:1.36")(s) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			set := sampleSet(t, test.change)
			given := set.DeepCopy()
			after := HashesOf(&set.Spec)
			if (after.All == before.All) != test.all || (after.WithoutImage == before.WithoutImage) != test.withoutImageSame {
				t.Errorf("before %+v, after %+v", before, after)
			}
			if diff := cmp.Diff(given, set); diff != "" {
				t.Errorf("the spec was changed: %s", diff)
			}
		})
	}
}

// The annotations of running Pods are compared with what a later release of the operator computes: the text that is hashed
// must not change.
func TestHashIsTheSameForEver(t *testing.T) {
	want := Hashes{All: "379b47b24fff7bc99cca1332fced0097", WithoutImage: "ee5dcdc91104d73eff9c039bae0f3597"}
	if got := HashesOf(&sampleSet(t).Spec); got != want {
		t.Errorf("got %+v: all running Pods would look outdated", got)
	}
}

func TestDefault(t *testing.T) {
	spec := &v1alpha1.SidecarSetSpec{
		Containers: []corev1.Container{{
			Name: "a", Image: "registry:5000/a/b:1.2",
			Ports:          []corev1.ContainerPort{{ContainerPort: 80}},
			Env:            []corev1.EnvVar{{Name: "N", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			Resources:      corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}, PeriodSeconds: 3},
			Lifecycle:      &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
		}},
		Volumes: []corev1.Volume{
			{Name: "none"},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
		},
	}
	want := &v1alpha1.SidecarSetSpec{
		Containers: []corev1.Container{{
			Name: "a", Image: "registry:5000/a/b:1.2", ImagePullPolicy: corev1.PullIfNotPresent,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
			Env: []corev1.EnvVar{{Name: "N", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
			}}},
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}, Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
			},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80), Scheme: "HTTP"}},
				TimeoutSeconds: 1, PeriodSeconds: 3, SuccessThreshold: 1, FailureThreshold: 3,
			},
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80), Scheme: "HTTP"}}},
		}},
		Volumes: []corev1.Volume{
			{Name: "none", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: ptr.To[int32](0o644)}}},
			{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: ptr.To(corev1.HostPathUnset)}}},
		},
	}
	Default(spec)
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
	again := spec.DeepCopy()
	if Default(again); !cmp.Equal(spec, again) {
		t.Errorf("done twice:\n%s", cmp.Diff(spec, again))
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"busybox":                          corev1.PullAlways,
		"busybox:latest":                   corev1.PullAlways,
		"registry:5000/busybox":            corev1.PullAlways,
		"busybox:1.36":                     corev1.PullIfNotPresent,
		"registry:5000/busybox:1.36":       corev1.PullIfNotPresent,
		"busybox@sha256:" + "0123456789ab": corev1.PullIfNotPresent,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}
