package cached

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/internal/wellknown"
)

// TestForms verifies the annotations that a cached object has instead of ports and volumes, and
// what the readers return for them.
func TestForms(t *testing.T) {
	t.Parallel()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{wellknown.AnnotationServicePorts: "http=80", "theirs": "1"},
	}}
	ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "health", ContainerPort: 8081}}
	template.Spec.Containers = []corev1.Container{
		{Name: "exporter", Ports: []corev1.ContainerPort{{ContainerPort: 9113}}}, {Name: wellknown.OperandContainer, Ports: ports},
	}
	projected := &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{Secret: &corev1.SecretProjection{}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("theirs")}},
	}}
	config := &corev1.ConfigMapVolumeSource{LocalObjectReference: named("web-1")}
	template.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{Projected: projected}},
		{Name: "tmp"},
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: config}},
	}

	form := metav1.ObjectMeta{}
	KeepPorts(&form, template.Annotations, &template.Spec)
	KeepMounts(&form, &template)
	annotations := map[string]string{
		wellknown.AnnotationServicePorts: "http=80", annotationPorts: "http=8080 health=8081", annotationMounts: "web-1 theirs",
	}
	if diff := cmp.Diff(annotations, form.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}

	read := TemplateOf(&appsv1.ReplicaSet{ObjectMeta: form})
	if diff := cmp.Diff(ports, ServingPorts(read.Annotations, &read.Spec)); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"web-1", "theirs"}, MountedConfigMaps(read)); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
}

// TestKeepMountsIsBounded verifies that the bound of the cache drops only ConfigMaps of the user. If
// it dropped one of the operator, a ConfigMap that Pods mount would be deleted.
func TestKeepMountsIsBounded(t *testing.T) {
	t.Parallel()
	template := corev1.PodTemplateSpec{}
	for i := range 100 {
		volume := corev1.Volume{Name: fmt.Sprintf("volume-%d", i)}
		volume.Projected = &corev1.ProjectedVolumeSource{}
		for j := range 100 {
			source := &corev1.ConfigMapProjection{}
			source.Name = fmt.Sprintf("theirs-%d-%d", i, j)
			volume.Projected.Sources = append(volume.Projected.Sources, corev1.VolumeProjection{ConfigMap: source})
		}
		template.Spec.Volumes = append(template.Spec.Volumes, volume)
	}
	for _, name := range []string{"config", "content", "files"} {
		volume := corev1.Volume{Name: name}
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{}
		volume.ConfigMap.Name = "web-" + name
		template.Spec.Volumes = append(template.Spec.Volumes, volume)
	}

	replicaSet := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: template}}
	whole := MountedConfigMaps(TemplateOf(replicaSet))
	form := metav1.ObjectMeta{}
	KeepMounts(&form, &template)
	kept := MountedConfigMaps(TemplateOf(&appsv1.ReplicaSet{ObjectMeta: form}))
	if len(whole) != 10_003 || len(kept) != maxMounts {
		t.Fatalf("%d ConfigMaps of %d are kept, want %d of 10003", len(kept), len(whole), maxMounts)
	}
	if diff := cmp.Diff([]string{"web-config", "web-content", "web-files", "theirs-0-0"}, kept[:4]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
