package preview

import (
	"context"
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
	"github.com/example/nginx-operator/internal/options"
	"github.com/example/nginx-operator/internal/record"
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
	revisions, err := Revisions(ctx, p.Client, object)
	if err != nil {
		return out, nil, err
	}
	for i := range revisions {
		recorded, err := record.Decode(revisions[i].Data.Raw)
		if err != nil {
			continue
		}
		if out.image == "" && recorded.Spec.Image == "" {
			out.image = recorded.Image
		}
		if out.exporter == "" && recorded.Spec.Monitoring != nil && recorded.Spec.Monitoring.Image == "" {
			out.exporter = recorded.Exporter
		}
	}
	var notes []string
	if needsImage && out.image == "" {
		out.image = releaseImage
		notes = append(notes, fmt.Sprintf(
			"spec.image is not set, and the operator's default image is unknown. Assuming %s. To change it, use --default-image", releaseImage,
		))
	}
	if needsExporter && out.exporter == "" {
		out.exporter = options.DefaultExporterImage
		notes = append(notes, fmt.Sprintf(
			"spec.monitoring.image is not set, and the operator's default exporter image is unknown. Assuming %s", out.exporter,
		))
	}
	return out, notes, nil
}

// runningConfig returns the nginx.conf that the Deployment of an instance mounts, or "" if there is
// none.
func (p *Planner) runningConfig(ctx context.Context, object *v1alpha2.NginxOperator) (string, error) {
	deployment := &appsv1.Deployment{}
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(object), deployment)
	if err != nil || !metav1.IsControlledBy(deployment, object) {
		return "", client.IgnoreNotFound(err)
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

// Revisions returns the records of an instance, newest first: its ControllerRevisions, and the
// record that its Deployment carries.
func Revisions(ctx context.Context, c client.Client, object *v1alpha2.NginxOperator) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := c.List(ctx, list, client.InNamespace(object.Namespace), client.MatchingLabels(wellknown.Selector(object.Name)))
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(list.Items, func(one appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&one, object) })
	if object.Status.FirstDeclarationHash != "" {
		deployment := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), deployment); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		out = record.WithCarried(object, deployment, out)
	}
	slices.SortFunc(out, func(a, b appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
	return out, nil
}
