package preview

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/optional"
	"github.com/example/nginx-operator/internal/reference"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Plan is what manifests would change. Its JSON form is what `kubectl nginx plan -o json` prints; docs/guide/kubectl-nginx.md documents it.
type Plan struct {
	Objects []Object `json:"objects"`
	// Warnings are those of admission.
	Warnings []string `json:"warnings,omitempty"`
}

// Differs reports whether anything would change.
func (p *Plan) Differs() bool {
	for _, object := range p.Objects {
		if object.Action != None || len(object.Children) > 0 {
			return true
		}
	}
	return false
}

// What happens to an object.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
	None   = "none"
)

// Change is what happens to an object.
type Change struct {
	Action     string `json:"action"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Diff is a unified diff of the YAML, "" where nothing changes.
	Diff string `json:"diff,omitempty"`
	// Unchecked: you may not do what the operator would do, so the API server was not asked about it.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Object is what happens to an object of a manifest and, where it is a NginxOperator, to its children.
type Object struct {
	Change `json:",inline"`

	// BlockedBy are the reasons why the operator would not apply what the object declares, in the words of status.blockedBy.
	BlockedBy []v1alpha2.Blocker `json:"blockedBy,omitempty"`
	// Children are those that change.
	Children []Change `json:"children,omitempty"`
	// Pods says what happens to Pods, nil for other kinds.
	Pods *Pods `json:"pods,omitempty"`
	// Paused: the operator changes no child before spec.paused is removed.
	Paused bool `json:"paused,omitempty"`
	// Notes are what had to be assumed.
	Notes []string `json:"notes,omitempty"`
}

// Pods is what happens to the Pods of an instance.
type Pods struct {
	// Roll: running Pods are replaced by new ones.
	Roll bool `json:"roll"`
	// Before and After are how many there are to be.
	Before int32 `json:"before"`
	After  int32 `json:"after"`
	// Strategy is the rolling update's maxSurge and maxUnavailable, "" where Roll is false.
	Strategy string `json:"strategy,omitempty"`
}

// Planner makes plans. All fields are required.
type Planner struct {
	Client client.Client
	Apply  Apply
	// DefaultImage is the container image of instances that name none, "" to take it from what runs or, where that does not tell, from
	// the release of this program.
	DefaultImage string
}

// Plan returns what it would change to apply the manifests, which name their namespaces. What they plan of ConfigMaps and Secrets counts
// for the NginxOperators among them. An error is one of the API server, a refusal by admission among them, or of a manifest.
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

// planInstance adds to a NginxOperator what happens to its children.
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
	found, err := reconciler.Preview(ctx, object)
	if err != nil {
		return err
	}
	into.BlockedBy, into.Paused, into.Notes = found.Blockers, object.Spec.Paused, notes
	for _, missing := range found.Missing {
		into.Notes = append(into.Notes, missing.Message)
	}
	if found.Failure != nil {
		into.BlockedBy = append(into.BlockedBy, *found.Failure)
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

// add adds a write to what happens to children. The records of declarations are the operator's own affair.
func (d *dryRuns) add(one write, into *Object) error {
	var states [2]*unstructured.Unstructured
	for i, object := range []client.Object{one.before, one.after} {
		if object == nil {
			continue
		}
		if _, isRecord := object.(*appsv1.ControllerRevision); isRecord {
			return nil
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

// podsOf returns what a change of a Deployment means for its Pods; before is nil where it is created.
func podsOf(before, after *appsv1.Deployment) *Pods {
	out := &Pods{After: ptr.Deref(after.Spec.Replicas, 1)}
	if before == nil {
		return out
	}
	out.Before = ptr.Deref(before.Spec.Replicas, 1)
	if out.Before > 0 && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
		out.Roll = true
		if rolling := after.Spec.Strategy.RollingUpdate; rolling != nil {
			out.Strategy = fmt.Sprintf("maxSurge %s, maxUnavailable %s", rolling.MaxSurge, rolling.MaxUnavailable)
		}
	}
	return out
}

// changeOf returns what happens to an object, one state of which may be nil.
func changeOf(before, after *unstructured.Unstructured) (Change, error) {
	object, action := after, Update
	switch {
	case before == nil:
		action = Create
	case after == nil:
		object, action = before, Delete
	}
	out := Change{
		Action: action, APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
	var err error
	if out.Diff, err = Compare(before, after); err == nil && out.Diff == "" && action == Update {
		out.Action = None
	}
	return out, err
}

// asStored returns a planned NginxOperator as the operator will read it: in the version that is stored, with the defaults of that.
func (p *Planner) asStored(ctx context.Context, planned *unstructured.Unstructured, isNew bool) (*v1alpha2.NginxOperator, error) {
	object := &v1alpha2.NginxOperator{}
	if planned.GroupVersionKind().Version == v1alpha1.GroupVersion.Version {
		converted := &unstructured.Unstructured{Object: map[string]any{}}
		converted.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
		if err := conversion.ToV1alpha2(planned, converted); err != nil {
			return nil, err
		}
		var err error
		if isNew {
			converted.SetUID("")
			converted.SetResourceVersion("")
			converted.SetManagedFields(nil)
			err = p.Client.Create(ctx, converted, client.DryRunAll)
		} else {
			err = p.Client.Update(ctx, converted, client.DryRunAll)
		}
		if err != nil {
			return nil, err
		}
		planned = converted
	}
	return object, runtime.DefaultUnstructuredConverter.FromUnstructured(planned.Object, object)
}

// reconciler returns the operator's reconciler on dry runs, with the settings of the operator as far as a client can tell, and what had
// to be assumed of these.
func (p *Planner) reconciler(
	ctx context.Context, dry *dryRuns, object *v1alpha2.NginxOperator,
) (*nginxoperator.Reconciler, []string, error) {
	found, notes, err := p.settings(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	kinds := map[string]*optional.API{}
	for _, kind := range operatormanager.OptionalKinds() {
		missing := ""
		if _, err := p.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			missing = fmt.Sprintf("the cluster has no %s of %s", kind.Kind, kind.GroupVersion())
		} else if err != nil {
			return nil, nil, err
		}
		kinds[kind.Kind] = optional.NewStatic(missing)
	}
	core := corev1.SchemeGroupVersion
	return &nginxoperator.Reconciler{
		Client: dry,
		Applier: &apply.Applier{
			Client: dry, Reader: dry, Annotation: wellknown.AnnotationLastDeclared, Wrote: func(string, apply.Verb) {},
		},
		ConfigMaps: reference.NewDirect(core.WithResource("configmaps"), dry),
		Secrets:    reference.NewDirect(core.WithResource("secrets"), dry),
		Optional:   kinds,

		Image: found.image, ExporterImage: found.exporter, IPv6: found.ipv6,
	}, notes, nil
}

// Declared returns the children that a stored NginxOperator declares, or what blocks it.
func (p *Planner) Declared(ctx context.Context, object *v1alpha2.NginxOperator) ([]client.Object, []v1alpha2.Blocker, error) {
	reconciler, _, err := p.reconciler(ctx, &dryRuns{Client: p.Client}, object)
	if err != nil {
		return nil, nil, err
	}
	return reconciler.Declared(ctx, object)
}
