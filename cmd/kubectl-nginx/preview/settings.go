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
	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/options"
	"github.com/example/nginx-operator/internal/wellknown"
)

// releaseImage is the container image that this release pins for instances that name none (config/manager/manager.yaml).
const releaseImage = "docker.io/nginxinc/nginx-unprivileged:1.28.0"

// settings are those of the operator on which children depend. A client cannot ask for them, but what runs tells of them.
type settings struct {
	image, exporter string
	ipv6            bool
}

// settings returns those of the operator, and says what it had to assume.
func (p *Planner) settings(ctx context.Context, object *v1alpha2.NginxOperator) (settings, []string, error) {
	out := settings{image: p.DefaultImage}
	config, err := p.runningConfig(ctx, object)
	if err != nil {
		return out, nil, err
	}
	// The health server listens on IPv6 where the operator's setting says so, and nobody else declares it.
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
		record, err := nginxoperator.Recorded(&revisions[i])
		if err != nil {
			continue
		}
		if out.image == "" && record.Spec.Image == "" {
			out.image = record.Image
		}
		if out.exporter == "" && record.Spec.Monitoring != nil && record.Spec.Monitoring.Image == "" {
			out.exporter = record.ExporterImage
		}
	}
	var notes []string
	if needsImage && out.image == "" {
		out.image = releaseImage
		notes = append(notes, fmt.Sprintf(
			"spec.image is not given, and nothing that runs tells the operator's default: assumed %s (see --default-image)", releaseImage,
		))
	}
	if needsExporter && out.exporter == "" {
		out.exporter = options.DefaultExporterImage
		notes = append(notes, fmt.Sprintf(
			"spec.monitoring.image is not given, and nothing that runs tells the operator's default: assumed %s", out.exporter,
		))
	}
	return out, notes, nil
}

// runningConfig returns the nginx.conf that the Deployment of an instance mounts, "" where there is none.
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

// ConfigOf returns the name of the ConfigMap from which a Pod has its nginx.conf, "" where there is none.
func ConfigOf(pod *corev1.PodSpec) string {
	at := slices.IndexFunc(pod.Volumes, func(one corev1.Volume) bool { return one.Name == "config" && one.ConfigMap != nil })
	if at < 0 {
		return ""
	}
	return pod.Volumes[at].ConfigMap.Name
}

// Revisions returns the ControllerRevisions of an instance, the one that was applied last first.
func Revisions(ctx context.Context, c client.Client, object *v1alpha2.NginxOperator) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := c.List(ctx, list, client.InNamespace(object.Namespace), client.MatchingLabels(wellknown.Selector(object.Name)))
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(list.Items, func(one appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&one, object) })
	slices.SortFunc(out, func(a, b appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
	return out, nil
}
