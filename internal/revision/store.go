package revision

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// Store reads what was declared and what is in effect.
type Store struct {
	// Live is the live state of the object.
	Live live.State
	// Applier reads from the API server. It is nil if there is nothing to read.
	Applier *apply.Applier
}

// Load returns the stored declaration, or nil if the status references no ControllerRevision, or if
// another client has changed or deleted the ControllerRevision. spec, which can be nil, has the data of the ConfigMaps
// that are the same.
func (s Store) Load(ctx context.Context, object *v1alpha2.NginxOperator, spec *Declaration) (*Declaration, error) {
	reference := object.Status.StoredRevision
	if reference == nil || s.Applier == nil {
		return nil, nil
	}

	found := &appsv1.ControllerRevision{}
	err := s.Applier.Reader.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: reference.Name}, found)
	if apierrors.IsNotFound(err) || err == nil && hashOf(found.Data.Raw) != reference.Hash {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read ControllerRevision %q: %w", reference.Name, err)
	}

	out, from, err := decode(found.Data.Raw)
	if err != nil {
		return nil, err
	}

	out.Content = digests{of: from.Digests, spec: spec}
	return out, nil
}

// Last returns the last declaration of the Pods, or nil if there is no Deployment or the Deployment
// has no record of it. Its children are the Deployment and those of its ConfigMaps that the spec renders.
func (s Store) Last(ctx context.Context, object *v1alpha2.NginxOperator, spec *Declaration) (*Declaration, error) {
	live := s.Live.Deployment()
	if live == nil || s.Applier == nil {
		return nil, nil
	}

	id, deployment, err := s.lastDeployment(ctx, object, live)
	if deployment == nil || err != nil {
		return nil, err
	}

	out := &Declaration{Change: id, Content: digests{}}
	if spec != nil {
		mounted := cached.MountedConfigMaps(&deployment.Spec.Template)
		for _, child := range spec.Children {
			if configMap, ok := child.(*corev1.ConfigMap); ok && slices.Contains(mounted, configMap.Name) {
				out.Children = append(out.Children, configMap)
			}
		}
		out.Content = spec.Content
	}

	out.Children = append(out.Children, deployment)
	return out, nil
}

// lastDeployment returns the Deployment that was declared last. Another client may have brought an
// earlier one back, as kubectl rollout undo does. So it must have the Pods of the status, and is
// searched in the ReplicaSets, too.
func (s Store) lastDeployment(
	ctx context.Context, object *v1alpha2.NginxOperator, live *appsv1.Deployment,
) (change.ID, *appsv1.Deployment, error) {
	declared, err := s.declared(ctx, object, live)
	if err != nil {
		return "", nil, err
	}

	want := change.ID("")
	if of := object.Status.DeclaredRevision; of != nil {
		want = change.ID(of.Change)
	}

	if deployment, ok := declared.(*appsv1.Deployment); ok {
		pods, err := change.PodsOf(&deployment.Spec.Template)
		if id := change.NewID(ChangeOf(object, live).User(), pods); err != nil || want == "" || want.SamePods(id) {
			return id, deployment, err
		}
	}

	copies, err := s.copies(ctx, object, live)
	for _, one := range copies {
		if want.SamePods(change.NewID("", one.pods)) {
			return want, one.deployment, nil
		}
	}

	return "", nil, err
}

// ChangeOf returns the ID of the Pods that a Deployment had when the operator wrote it last.
// Releases before 0.8.0 wrote another name, for which the status has the ID.
func ChangeOf(object *v1alpha2.NginxOperator, deployment *appsv1.Deployment) change.ID {
	if deployment == nil {
		return ""
	}
	if id := deployment.Annotations[wellknown.AnnotationChange]; id != "" {
		return change.ID(id)
	}
	if of := object.Status.DeclaredRevision; of != nil && of.Revision == deployment.Labels[wellknown.LabelRecord] {
		return change.ID(of.Change)
	}
	return ""
}

// HasPods reports whether a Deployment has the Pods of a declaration. Both can be nil.
func HasPods(object *v1alpha2.NginxOperator, deployment *appsv1.Deployment, of *Declaration) bool {
	return of != nil && ChangeOf(object, deployment).SamePods(of.Change)
}

// declared returns the last declaration of a child, which the cache does not have, or nil.
func (s Store) declared(ctx context.Context, object *v1alpha2.NginxOperator, child client.Object) (client.Object, error) {
	whole, err := s.whole(ctx, object, child)
	if whole == nil || err != nil {
		return nil, err
	}
	return s.Applier.LastDeclared(whole), nil
}

// whole returns a child as the API server has it, or nil if it is gone.
func (s Store) whole(ctx context.Context, object *v1alpha2.NginxOperator, child client.Object) (client.Object, error) {
	kind := operand.KindOf(child)
	whole := operand.New(kind)
	err := s.Applier.Reader.Get(ctx, client.ObjectKeyFromObject(child), whole)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(whole, object) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read %s %q: %w", kind, child.GetName(), err)
	}
	return whole, nil
}

// Good returns the good Pods from a ReplicaSet, or nil if none has them, for an object that stores
// none. Those of a release before 0.8.0 are not known: they are of the newest older ReplicaSet with
// a ready Pod, or else of the newest older one.
func (s Store) Good(ctx context.Context, object *v1alpha2.NginxOperator) (*Declaration, error) {
	deployment := s.Live.Deployment()
	if s.Applier == nil || deployment == nil || object.Status.LastGoodRevision == nil {
		return nil, nil
	}

	good := change.ID(object.Status.LastGoodRevision.Change)
	copies, err := s.copies(ctx, object, deployment)
	for _, one := range copies {
		if good.Pods() == one.pods || good.Pods() == "" && operand.IsMarkedAsBefore(deployment) && !one.isNewest {
			id := change.NewID(good.User(), one.pods)
			operand.MarkAgain(one.deployment, string(id))
			return &Declaration{Change: id, Children: []client.Object{one.deployment}, Content: digests{}}, nil
		}
	}

	return nil, err
}

type copied struct {
	deployment *appsv1.Deployment
	pods       string
	isNewest   bool
}

// copies returns the declarations in ReplicaSets: with a ready Pod first, then the newest.
func (s Store) copies(ctx context.Context, object *v1alpha2.NginxOperator, deployment *appsv1.Deployment) ([]copied, error) {
	list := &appsv1.ReplicaSetList{}
	err := s.Applier.Reader.List(ctx, list, client.InNamespace(object.Namespace), client.MatchingLabels(wellknown.Selector(object.Name)))
	if err != nil {
		return nil, fmt.Errorf("failed to list ReplicaSets: %w", err)
	}

	slices.SortFunc(list.Items, func(a, b appsv1.ReplicaSet) int {
		return cmp.Or(cmp.Compare(min(1, b.Status.ReadyReplicas), min(1, a.Status.ReadyReplicas)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time))
	})

	newest := deployment.Annotations[wellknown.AnnotationRevision]
	var out []copied
	for i := range list.Items {
		set := &list.Items[i]
		if !metav1.IsControlledBy(set, deployment) {
			continue
		}

		from := &appsv1.Deployment{}
		from.Namespace, from.Name, from.Annotations = object.Namespace, object.Name, set.Annotations
		declared, ok := s.Applier.LastDeclared(from).(*appsv1.Deployment)
		if !ok {
			continue
		}

		pods, err := change.PodsOf(&declared.Spec.Template)
		if err != nil {
			return nil, err
		}

		out = append(out, copied{declared, pods, set.Annotations[wellknown.AnnotationRevision] == newest})
	}

	return out, nil
}
