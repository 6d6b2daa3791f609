package preview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
	"github.com/example/nginx-operator/pkg/reference"
)

// Planner computes plans. Client is required.
type Planner struct {
	Client client.Client
	Apply  Apply
	// DefaultImage is the image of instances without spec.image. If it is "", the plan uses the
	// image in use, or the image of the plugin's release.
	DefaultImage string
}

var instanceKind = v1alpha2.GroupVersion.WithKind("NginxOperator")

// Plan returns the changes that applying the manifests would make. Each manifest must have a
// namespace. NginxOperators see planned ConfigMaps and Secrets. Plan returns errors of the API
// server, including rejections by admission, and errors of manifests.
func (p *Planner) Plan(ctx context.Context, manifests []*unstructured.Unstructured) (*Plan, error) {
	plan, planned := &Plan{}, map[identity]*unstructured.Unstructured{}
	var all []*unstructured.Unstructured
	var errs []error
	for _, manifest := range manifests {
		live, after, err := p.Apply.dryRun(ctx, p.Client, manifest)
		if err != nil {
			errs = append(errs, err)
			continue
		}

		change, err := changeOf(live, after)
		if err != nil {
			return nil, err
		}

		plan.Objects = append(plan.Objects, Object{Change: change})
		planned[identity{after.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(after)}] = after
		all = append(all, after)
	}

	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}

	for i, after := range all {
		if after.GroupVersionKind().GroupKind() != instanceKind.GroupKind() {
			continue
		}

		change := plan.Objects[i].Change
		instance, err := p.asStored(ctx, after, change.Action == Create)
		if err != nil {
			return nil, err
		}
		if plan.Objects[i], err = p.PlanInstance(ctx, instance, planned); err != nil {
			return nil, err
		}

		plan.Objects[i].Change = change
	}

	return plan, nil
}

// PlanInstance returns the effects of an NginxOperator, without its own change. planned are the
// objects that are read as if they were stored.
func (p *Planner) PlanInstance(
	ctx context.Context, object *v1alpha2.NginxOperator, planned map[identity]*unstructured.Unstructured,
) (Object, error) {
	dry := &dryRuns{Client: p.Client, planned: map[identity]*unstructured.Unstructured{}}
	maps.Copy(dry.planned, planned)
	reconciler, notes, err := p.reconciler(ctx, dry, object)
	if err != nil {
		return Object{}, err
	}

	result, err := reconciler.Preview(ctx, object, func() { dry.refused = true })
	if err != nil {
		return Object{}, err
	}

	for _, missing := range result.Missing {
		notes = append(notes, missing.Message)
	}

	if dry.pods == nil {
		dry.pods = &Pods{}
		deployment := &appsv1.Deployment{}
		err := p.Client.Get(ctx, client.ObjectKeyFromObject(object), deployment)
		if client.IgnoreNotFound(err) != nil {
			return Object{}, err
		}
		if err == nil {
			dry.pods = podsOf(deployment, deployment)
		}
	}

	return Object{
		BlockedBy: slices.Concat(result.Blockers, result.Failures), Paused: object.Spec.Paused, Notes: notes,
		Children: dry.children, Pods: dry.pods,
	}, nil
}

// Declared returns the child objects of a stored NginxOperator, or the reasons that block it.
func (p *Planner) Declared(ctx context.Context, object *v1alpha2.NginxOperator) ([]client.Object, []v1alpha2.Blocker, error) {
	reconciler, _, err := p.reconciler(ctx, &dryRuns{Client: p.Client}, object)
	if err != nil {
		return nil, nil, err
	}
	return reconciler.Declared(ctx, object)
}

func (p *Planner) asStored(ctx context.Context, planned *unstructured.Unstructured, isNew bool) (*v1alpha2.NginxOperator, error) {
	if planned.GroupVersionKind().Version == v1alpha1.GroupVersion.Version {
		planned = planned.DeepCopy()
		conversion.ToV1alpha2(planned)
		var err error
		if isNew {
			planned.SetUID("")
			planned.SetResourceVersion("")
			planned.SetManagedFields(nil)
			err = p.Client.Create(ctx, planned, client.DryRunAll)
		} else {
			err = p.Client.Update(ctx, planned, client.DryRunAll)
		}

		if err != nil {
			return nil, err
		}
	}

	object := &v1alpha2.NginxOperator{}
	return object, runtime.DefaultUnstructuredConverter.FromUnstructured(planned.Object, object)
}

func (p *Planner) reconciler(
	ctx context.Context, dry *dryRuns, object *v1alpha2.NginxOperator,
) (*nginxoperator.Reconciler, []string, error) {
	release, notes, err := p.release(ctx, object)
	if err != nil {
		return nil, nil, err
	}

	missing := map[string]string{}
	for _, child := range operand.OptionalKinds {
		kind, err := p.Client.GroupVersionKindFor(operand.New(child.Kind))
		if err != nil {
			return nil, nil, err
		}
		if _, err := p.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			missing[kind.Kind] = fmt.Sprintf("no matches for kind %q in version %q", kind.Kind, kind.GroupVersion())
		} else if err != nil {
			return nil, nil, err
		}
	}

	core := corev1.SchemeGroupVersion
	applier := nginxoperator.NewApplier(dry, dry, func(string, apply.Verb) {})
	applier.ConfirmOwners = false // the planned object need not be the stored one
	return &nginxoperator.Reconciler{
		Client:     dry,
		Applier:    applier,
		ConfigMaps: reference.NewDirect(core.WithResource("configmaps"), dry),
		Secrets:    reference.NewDirect(core.WithResource("secrets"), dry),
		Missing:    missing,
		Release:    release,
	}, notes, nil
}

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

	if defaults.HasRequestMetrics(spec) && release.RequestMetricsImage == "" {
		release.RequestMetricsImage = wellknown.DefaultRequestMetricsImage
		notes = append(notes, "the operator's image of the receiver of request metrics is unknown. Assuming "+release.RequestMetricsImage)
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
	if defaults.HasRequestMetrics(&spec) {
		release.RequestMetricsImage = declared.RequestMetrics()
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
