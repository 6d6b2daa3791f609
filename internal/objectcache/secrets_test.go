package objectcache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/cached"
)

// TestMaySeeSecrets verifies that each way to give a Pod secret data is detected, in every kind of
// container, and also in the cached form of the Pod.
func TestMaySeeSecrets(t *testing.T) {
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: empty}, {Name: "v", VolumeSource: source}}}
	}
	projected := func(sources ...corev1.VolumeProjection) corev1.PodSpec {
		return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}})
	}
	variable := func(from *corev1.EnvVarSource) corev1.Container {
		return corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", ValueFrom: from}}}
	}
	secretVariable := variable(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}})
	container := func(one corev1.Container) corev1.PodSpec { return corev1.PodSpec{Containers: []corev1.Container{one}} }
	configMap := corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{}}
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"nothing":        {corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx"}}}, false},
		"configMap":      {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), false},
		"downwardAPI":    {volume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}), false},
		"projected":      {projected(configMap, corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}), false},
		"env configMap":  {container(variable(&corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}})), false},
		"env field":      {container(variable(&corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}})), false},
		"env literal":    {corev1.PodSpec{Containers: []corev1.Container{variable(nil)}}, false},
		"envFrom public": {container(corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}}}), false},

		"secret":           {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), true},
		"csi":              {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), true},
		"claim":            {volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), true},
		"hostPath":         {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), true},
		"unknown volume":   {volume(corev1.VolumeSource{}), true},
		"projected secret": {projected(configMap, corev1.VolumeProjection{Secret: &corev1.SecretProjection{}}), true},
		"projected token":  {projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}), true},
		"unknown source":   {projected(corev1.VolumeProjection{}), true},
		"env":              {corev1.PodSpec{Containers: []corev1.Container{secretVariable}}, true},
		"env of an init container or sidecar": {
			corev1.PodSpec{Containers: []corev1.Container{{}}, InitContainers: []corev1.Container{{}, secretVariable}}, true,
		},
		"env of an ephemeral container": {corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon(secretVariable),
		}}}, true},
		"unknown env": {corev1.PodSpec{Containers: []corev1.Container{variable(&corev1.EnvVarSource{})}}, true},
		"envFrom": {
			corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}}}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: test.spec}
			if got := cached.MaySeeSecrets(pod); got != test.want {
				t.Errorf("whole: %t", got)
			}
			slimPod(pod)
			if got := cached.MaySeeSecrets(pod); got != test.want {
				t.Errorf("in the cache: %t", got)
			}
		})
	}
}
