package revision

import (
	"context"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// InEffect returns the ControllerRevision that stores the children in effect, and its reference for
// the status: the Pods of the live Deployment and the live entrance, as they were declared last.
// Stored pods, which can be nil, replace those of the live Deployment. It returns nil if the
// Deployment has no last declaration. A Service that was deleted is that of spec, which can be nil:
// what was declared last is lost with it, and while the change fails, nothing else brings one back.
func (s Store) InEffect(
	ctx context.Context, object *v1alpha2.NginxOperator, pods, spec *Declaration,
) (*appsv1.ControllerRevision, *v1alpha2.StoredRevision, error) {
	data := stored{Digests: map[string]string{}, PatchedKinds: append([]string{}, object.Status.PatchedKinds...)}
	var children []client.Object
	if pods != nil {
		children = slices.DeleteFunc(slices.Clone(pods.Children), operand.IsEntrance)
		data.Change, data.Generation = pods.Change, pods.Generation
		if from, ok := pods.Content.(digests); ok {
			data.Digests = from.of
		}

		data.Spec = specOf(pods.Deployment())
	} else {
		var err error
		if children, err = s.livePods(ctx, object, &data); children == nil || err != nil {
			return nil, nil, err
		}
	}

	entrance, err := s.liveChildren(ctx, object, operand.EntranceKinds()...)
	if err != nil {
		return nil, nil, err
	}

	if spec != nil && operand.ChildOf[*corev1.Service](entrance) == nil {
		if service := operand.ChildOf[*corev1.Service](spec.Children); service != nil {
			entrance = append(entrance, service)
		}
	}

	raw, err := data.encode(append(children, entrance...))
	if err != nil {
		return nil, nil, err
	}

	name := string(raw)
	if before := object.Status.StoredRevision; before != nil { // another client may have changed it
		name += before.Name
	}

	revision := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: object.Name + "-" + operand.ShortHash(name), Labels: wellknown.ChildLabels(object.Name, ""),
		},
		Revision: object.Generation,
	}

	revision.Data.Raw = raw
	return revision, &v1alpha2.StoredRevision{Name: revision.Name, Hash: hashOf(raw), HasEntrance: true}, nil
}

// livePods returns the last declaration of the live Deployment, the ConfigMaps that it mounts, and
// the size of the instance.
func (s Store) livePods(ctx context.Context, object *v1alpha2.NginxOperator, data *stored) ([]client.Object, error) {
	last, err := s.Last(ctx, object, nil)
	if last == nil || err != nil {
		return nil, err
	}

	deployment := last.Deployment()
	data.Change, data.Spec = last.Change, specOf(deployment)
	operand.MarkAgain(deployment, string(last.Change))
	out := []client.Object{}
	for _, name := range cached.MountedConfigMaps(&deployment.Spec.Template) {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: name}}
		whole, err := s.whole(ctx, object, configMap)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			continue // a user's ConfigMap, or one that is gone
		}
		if data.Digests[name], err = digestOf(whole.(*corev1.ConfigMap)); err != nil {
			return nil, err
		}
		if declared := s.Applier.LastDeclared(whole); declared != nil {
			out = append(out, declared)
		}
	}

	size, err := s.liveChildren(ctx, object, "PodDisruptionBudget", "HorizontalPodAutoscaler")
	return slices.Concat(out, []client.Object{deployment}, size), err
}

// liveChildren returns what was declared last of the children of some kinds.
func (s Store) liveChildren(ctx context.Context, object *v1alpha2.NginxOperator, kinds ...string) ([]client.Object, error) {
	var out []client.Object
	for _, kind := range kinds {
		for _, child := range s.Live.Owned(kind) {
			declared, err := s.declared(ctx, object, child)
			if err != nil {
				return nil, err
			}
			if declared != nil {
				out = append(out, declared)
			}
		}
	}

	return out, nil
}

// specOf returns the part of the spec with which a Deployment was declared, or nil without it.
func specOf(deployment *appsv1.Deployment) json.RawMessage {
	if text := deployment.Annotations[wellknown.AnnotationSpec]; json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}
