package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// releaseImage is the default image of this release (config/manager/manager.yaml).
const releaseImage = "docker.io/nginxinc/nginx-unprivileged:1.30.7"

// settings are the operator's settings that affect child objects. Clients cannot read them, so the
// plan infers them from existing objects.
type settings struct {
	image, exporter string
	ipv6            bool
}

// settings returns the operator's settings, and notes about assumptions.
func (p *Planner) settings(ctx context.Context, object *v1alpha2.NginxOperator) (settings, []string, error) {
	out := settings{image: p.DefaultImage}
	config, err := p.runningConfig(ctx, object)
	if err != nil {
		return out, nil, err
	}
	// Only the operator's setting makes the health server listen on IPv6.
	out.ipv6 = strings.Contains(config, fmt.Sprintf("listen [::]:%d;", defaults.HealthPort(&object.Spec)))
	needsImage := out.image == "" && object.Spec.Image == ""
	needsExporter := defaults.HasExporter(&object.Spec) && object.Spec.Monitoring.Image == ""
	if !needsImage && !needsExporter {
		return out, nil, nil
	}
	running, err := p.deployment(ctx, object)
	if err != nil {
		return out, nil, err
	}
	if running != nil {
		out.infer(running)
	}
	var notes []string
	if needsImage && out.image == "" {
		out.image = releaseImage
		notes = append(notes, fmt.Sprintf(
			"spec.image is not set, and the operator's default image is unknown. Assuming %s. To change it, use --default-image", releaseImage,
		))
	}
	if needsExporter && out.exporter == "" {
		out.exporter = wellknown.DefaultExporterImage
		notes = append(notes, fmt.Sprintf(
			"spec.monitoring.image is not set, and the operator's default exporter image is unknown. Assuming %s", out.exporter,
		))
	}
	return out, notes, nil
}

// infer sets the images that the operator chose for a Deployment: the spec of its Pods has none.
func (s *settings) infer(running *appsv1.Deployment) {
	var declared v1alpha2.NginxOperatorSpec
	if json.Unmarshal([]byte(running.Annotations[wellknown.AnnotationSpec]), &declared) != nil {
		return
	}
	of := revision.Declaration{Children: []client.Object{running}}
	if s.image == "" && declared.Image == "" {
		s.image = of.Image()
	}
	if s.exporter == "" && declared.Monitoring != nil && declared.Monitoring.Image == "" {
		s.exporter = of.Exporter()
	}
}

// deployment returns the Deployment of an instance, or nil if it does not exist.
func (p *Planner) deployment(ctx context.Context, object *v1alpha2.NginxOperator) (*appsv1.Deployment, error) {
	out := &appsv1.Deployment{}
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(object), out)
	if err != nil || !metav1.IsControlledBy(out, object) {
		return nil, client.IgnoreNotFound(err)
	}
	return out, nil
}

// runningConfig returns the nginx.conf that the Deployment of an instance mounts, or "" if there is
// none.
func (p *Planner) runningConfig(ctx context.Context, object *v1alpha2.NginxOperator) (string, error) {
	deployment, err := p.deployment(ctx, object)
	if deployment == nil || err != nil {
		return "", err
	}
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: object.Namespace, Name: ConfigOf(&deployment.Spec.Template.Spec)}
	if key.Name == "" {
		return "", nil
	}
	err = p.Client.Get(ctx, key, configMap)
	return configMap.Data[nginxconf.MainFile], client.IgnoreNotFound(err)
}

// ConfigOf returns the name of the ConfigMap with the nginx.conf of a Pod, or "" if the Pod mounts
// no such ConfigMap.
func ConfigOf(pod *corev1.PodSpec) string {
	at := slices.IndexFunc(pod.Volumes, func(one corev1.Volume) bool { return one.Name == "config" && one.ConfigMap != nil })
	if at < 0 {
		return ""
	}
	return pod.Volumes[at].ConfigMap.Name
}
