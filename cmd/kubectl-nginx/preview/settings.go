package preview

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
)

// releaseImage is the default image of this release (config/manager/manager.yaml).
const releaseImage = "docker.io/nginxinc/nginx-unprivileged:1.30.7"

// release returns the operator's settings that affect child objects, and notes about assumptions.
// Clients cannot read the settings, so the plan infers them from existing objects.
func (p *Planner) release(ctx context.Context, object *v1alpha2.NginxOperator) (operand.Release, []string, error) {
	release, spec := operand.Release{Image: p.DefaultImage}, &object.Spec
	running := &appsv1.Deployment{}
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(object), running)
	if err == nil && metav1.IsControlledBy(running, object) {
		err = p.inferConfig(ctx, &release, running, defaults.HealthPort(spec))
		infer(&release, running)
	}
	if client.IgnoreNotFound(err) != nil {
		return release, nil, err
	}

	var notes []string
	if spec.Image == "" && release.Image == "" {
		release.Image = releaseImage
		notes = append(notes, fmt.Sprintf(
			"spec.image is not set, and the operator's default image is unknown. Assuming %s. To change it, use --default-image", releaseImage,
		))
	}

	if defaults.HasExporter(spec) && spec.Monitoring.Image == "" && release.ExporterImage == "" {
		release.ExporterImage = wellknown.DefaultExporterImage
		notes = append(notes, "spec.monitoring.image is not set, and the operator's default exporter image is unknown. "+
			"Assuming "+release.ExporterImage)
	}

	if resolver := defaults.Nginx(spec).Resolver; resolver != nil && len(resolver.Addresses)+len(release.Nameservers) == 0 {
		release.Nameservers = []string{"10.96.0.10"}
		notes = append(notes, "spec.nginx.resolver has no addresses, and the name servers of the cluster are unknown. Assuming 10.96.0.10")
	}

	return release, notes, nil
}

// infer sets the images that the operator chose for a Deployment: the spec of its Pods has none.
func infer(release *operand.Release, running *appsv1.Deployment) {
	var spec v1alpha2.NginxOperatorSpec
	if json.Unmarshal([]byte(running.Annotations[wellknown.AnnotationSpec]), &spec) != nil {
		return
	}

	if resolver := defaults.Nginx(&spec).Resolver; resolver != nil && len(resolver.Addresses) > 0 {
		release.Nameservers = nil
	}
	declared := revision.Declaration{Children: []client.Object{running}}
	if spec.Image == "" {
		release.Image = cmp.Or(release.Image, declared.Image())
	}
	if spec.Monitoring != nil && spec.Monitoring.Image == "" {
		release.ExporterImage = declared.Exporter()
	}
}

// inferConfig sets whether the health server listens on IPv6, which only the operator's setting
// enables, and the name servers of the resolver.
func (p *Planner) inferConfig(ctx context.Context, release *operand.Release, running *appsv1.Deployment, port int32) error {
	key := client.ObjectKey{Namespace: running.Namespace, Name: ConfigOf(&running.Spec.Template.Spec)}
	if key.Name == "" {
		return nil
	}

	config := &corev1.ConfigMap{}
	err := p.Client.Get(ctx, key, config)
	release.IPv6 = strings.Contains(config.Data[nginxconf.MainFile], fmt.Sprintf("listen [::]:%d;", port))
	for _, word := range strings.Fields(strings.TrimRight(config.Data[nginxconf.ResolverFile], ";\n")) {
		if word != "resolver" && !strings.Contains(word, "=") {
			release.Nameservers = append(release.Nameservers, word)
		}
	}
	return err
}

// ConfigOf returns the name of the ConfigMap with the nginx.conf of a Pod, or "".
func ConfigOf(pod *corev1.PodSpec) string {
	for i := range pod.Volumes {
		if volume := &pod.Volumes[i]; volume.Name == "config" && volume.ConfigMap != nil {
			return volume.ConfigMap.Name
		}
	}
	return ""
}
