// Package live has the live state of an NginxOperator: its children, ReplicaSets, and Pods. A
// reconcile reads it once from the operator's cache, and adds its own writes.
package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// State is the live state of an object. It does not change: With and Without return another one.
type State struct {
	object *v1alpha2.NginxOperator
	// objects are the children, bridges, ReplicaSets, and Pods, and others with a child's name.
	objects []client.Object
	// unread has the errors of the reads that failed, by kind.
	unread map[string]error
}

// Read reads the live state of an object, with one read of each kind. Reads of the kinds that the
// operator writes wait until the cache has these writes, except for the lists that would wait for
// writes to all objects. Find does not know a child that these lists lack. A missing kind is not
// read, because the cache would wait for it.
//
// The error is that of a kind without which there is no status. The functions that need another
// kind return its error.
func Read(ctx context.Context, reader client.Reader, object *v1alpha2.NginxOperator, missing map[string]string) (State, error) {
	out := State{object: object, unread: map[string]error{}}
	for _, kind := range singleKinds() {
		if missing[kind] != "" {
			continue
		}

		child := operand.New(kind)
		err := reader.Get(ctx, client.ObjectKeyFromObject(object), child)
		switch {
		case err == nil:
			out.objects = append(out.objects, child)
		case !apierrors.IsNotFound(err):
			out.unread[kind] = fmt.Errorf("failed to read %s: %w", kind, err)
		}
	}

	instance := []client.ListOption{client.InNamespace(object.Namespace), client.MatchingFields{cached.InstanceIndex: object.Name}}
	unwaited := append(slices.Clone(instance), client.DisableReadYourWritesConsistency)
	bridges := client.MatchingLabels{discoveryv1.LabelServiceName: object.Name, discoveryv1.LabelManagedBy: wellknown.OperatorName}
	for _, of := range []struct {
		kind    string
		list    client.ObjectList
		options []client.ListOption
	}{
		{revisionKind, &appsv1.ControllerRevisionList{}, instance},
		{"EndpointSlice", &discoveryv1.EndpointSliceList{}, []client.ListOption{client.InNamespace(object.Namespace), bridges}},
		{"ConfigMap", &corev1.ConfigMapList{}, unwaited},
		{"PodDisruptionBudget", &policyv1.PodDisruptionBudgetList{}, unwaited},
		{"ReplicaSet", &appsv1.ReplicaSetList{}, unwaited},
		{"Pod", &corev1.PodList{}, unwaited},
	} {
		if err := reader.List(ctx, of.list, of.options...); err != nil {
			out.unread[of.kind] = fmt.Errorf("failed to list %ss: %w", of.kind, err)
			continue
		}
		_ = meta.EachListItem(of.list, func(item runtime.Object) error {
			out.objects = append(out.objects, item.(client.Object))
			return nil
		})
	}

	return out, out.errorOf("Deployment", "Service", ingressKind, operand.HTTPRouteKind.Kind, "Pod")
}

// singleKinds returns the kinds of which an object has at most one child, which has its name.
func singleKinds() []string {
	return append([]string{"Deployment", "Service"}, operand.DispensableKinds()...)
}

func (s State) errorOf(kinds ...string) error {
	var errs []error
	for _, kind := range kinds {
		errs = append(errs, s.unread[kind])
	}
	return errors.Join(errs...)
}

// With returns the state after writes, with the children as the API server returned them.
func (s State) With(written ...client.Object) State {
	out := s.Without(written...)
	out.objects = append(out.objects, written...)
	return out
}

// Without returns the state after the deletion of children.
func (s State) Without(deleted ...client.Object) State {
	s.objects = slices.DeleteFunc(slices.Clone(s.objects), func(child client.Object) bool {
		return slices.ContainsFunc(deleted, func(other client.Object) bool { return keyOf(other) == keyOf(child) })
	})
	return s
}

// Find implements apply.Live.
func (s State) Find(child client.Object) (found client.Object, known bool) {
	wanted := keyOf(child)
	if at := slices.IndexFunc(s.objects, func(other client.Object) bool { return keyOf(other) == wanted }); at >= 0 {
		return s.objects[at], true
	}
	return nil, wanted.name == s.object.Name && slices.Contains(singleKinds(), wanted.kind) && s.unread[wanted.kind] == nil
}

func (s State) owns(child client.Object) bool {
	return metav1.IsControlledBy(child, s.object) && child.GetDeletionTimestamp().IsZero()
}

type key struct{ kind, name string }

func keyOf(child client.Object) key { return key{operand.KindOf(child), child.GetName()} }
