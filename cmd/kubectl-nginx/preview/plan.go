package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/operand"
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

// Plan returns the changes that applying the manifests would make. Each manifest must have a
// namespace. NginxOperators see planned ConfigMaps and Secrets. Plan returns errors of the API
// server, including rejections by admission, and errors of manifests.
func (p *Planner) Plan(ctx context.Context, manifests []*unstructured.Unstructured) (*Plan, error) {
	out, planned := &Plan{}, map[identity]*unstructured.Unstructured{}
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
		out.Objects = append(out.Objects, Object{Change: change})
		planned[identity{after.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(after)}] = after
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for i := range out.Objects {
		object := &out.Objects[i]
		id := identity{object.group(), client.ObjectKey{Namespace: object.Namespace, Name: object.Name}}
		if !isInstance(planned[id].GroupVersionKind()) {
			continue
		}
		if err := p.planInstance(ctx, planned, planned[id], object); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// planInstance adds the changes of the child objects to an NginxOperator.
func (p *Planner) planInstance(
	ctx context.Context, planned map[identity]*unstructured.Unstructured, after *unstructured.Unstructured, into *Object,
) error {
	object, err := p.asStored(ctx, after, into.Action == Create)
	if err != nil {
		return err
	}
	dry := &dryRuns{Client: p.Client, planned: planned}
	reconciler, notes, err := p.reconciler(ctx, dry, object)
	if err != nil {
		return err
	}
	found, err := reconciler.Preview(ctx, object, func() { dry.refused = true })
	if err != nil {
		return err
	}
	into.BlockedBy, into.Paused, into.Notes = slices.Concat(found.Blockers, found.Failures), object.Spec.Paused, notes
	for _, missing := range found.Missing {
		into.Notes = append(into.Notes, missing.Message)
	}
	for _, one := range dry.writes {
		if err := dry.add(one, into); err != nil {
			return err
		}
	}
	if into.Pods == nil {
		into.Pods = &Pods{}
		deployment := &appsv1.Deployment{}
		if err := p.Client.Get(ctx, client.ObjectKeyFromObject(object), deployment); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			replicas := ptr.Deref(deployment.Spec.Replicas, 1)
			into.Pods.Before, into.Pods.After = replicas, replicas
		}
	}
	return nil
}

// add adds a write to the changes of child objects.
func (d *dryRuns) add(one write, into *Object) error {
	var states [2]*unstructured.Unstructured
	for i, object := range []client.Object{one.before, one.after} {
		if object == nil {
			continue
		}
		var err error
		if states[i], err = d.toUnstructured(object); err != nil {
			return err
		}
	}
	change, err := changeOf(states[0], states[1])
	if err != nil {
		return err
	}
	change.Unchecked = one.unchecked
	if change.Action != None {
		into.Children = append(into.Children, change)
	}
	if deployment, isDeployment := one.after.(*appsv1.Deployment); isDeployment {
		before, _ := one.before.(*appsv1.Deployment)
		into.Pods = podsOf(before, deployment)
	}
	return nil
}

// asStored returns a planned NginxOperator in the storage version, with its defaults.
func (p *Planner) asStored(ctx context.Context, planned *unstructured.Unstructured, isNew bool) (*v1alpha2.NginxOperator, error) {
	object := &v1alpha2.NginxOperator{}
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
	return object, runtime.DefaultUnstructuredConverter.FromUnstructured(planned.Object, object)
}

// reconciler returns the operator's reconciler on dry runs, and the assumptions about the settings
// of the operator.
func (p *Planner) reconciler(
	ctx context.Context, dry *dryRuns, object *v1alpha2.NginxOperator,
) (*nginxoperator.Reconciler, []string, error) {
	found, notes, err := p.settings(ctx, object)
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
			missing[kind.Kind] = fmt.Sprintf("the cluster has no %s of %s", kind.Kind, kind.GroupVersion())
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
		Release:    operand.Release{Image: found.image, ExporterImage: found.exporter, IPv6: found.ipv6},
	}, notes, nil
}
