// Package preview computes what a manifest would change: the objects in dry runs, and the child
// objects of instances with the operator's reconciler, whose writes become dry runs.
package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// dryRuns reads planned manifests as if they were stored, and records writes as dry runs.
type dryRuns struct {
	client.Client

	planned  map[identity]*unstructured.Unstructured
	children []Change
	pods     *Pods
	// refused is true if the API server rejected a write, so the operator would stop writing.
	refused bool
}

type identity struct {
	schema.GroupKind
	types.NamespacedName
}

func (d *dryRuns) identityOf(object client.Object, key types.NamespacedName) (identity, error) {
	gvk, err := d.GroupVersionKindFor(object)
	return identity{gvk.GroupKind(), key}, err
}

func (d *dryRuns) Get(ctx context.Context, key types.NamespacedName, object client.Object, options ...client.GetOption) error {
	id, err := d.identityOf(object, key)
	if err != nil {
		return err
	}
	if planned, isPlanned := d.planned[id]; isPlanned {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(planned.Object, object)
	}
	return d.Client.Get(ctx, key, object, options...)
}

// List implements client.Reader. It uses labels instead of the index of the operator's cache.
func (d *dryRuns) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	all := (&client.ListOptions{}).ApplyOptions(options)
	if all.FieldSelector != nil {
		if instance, isExact := all.FieldSelector.RequiresExactMatch(cached.InstanceIndex); isExact {
			all.FieldSelector, all.LabelSelector = nil, labels.SelectorFromSet(wellknown.Selector(instance))
		}
	}
	return d.Client.List(ctx, list, all)
}

func (d *dryRuns) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	// The user may lack the operator's permission to block the deletion of the owner.
	owners := object.GetOwnerReferences()
	for i := range owners {
		owners[i].BlockOwnerDeletion = nil
	}

	object.SetOwnerReferences(owners)

	err := d.Client.Create(ctx, object, append(options, client.DryRunAll)...)
	unchecked, err := d.unlessMay(ctx, err, "create", object)
	if err != nil {
		return err
	}
	if unchecked {
		object.SetUID("unchecked") // a created object has a UID
	}

	return d.record(nil, object, unchecked)
}

func (d *dryRuns) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	before := object.DeepCopyObject().(client.Object)
	err := d.Client.Patch(ctx, object, patch, append(options, client.DryRunAll)...)
	unchecked, err := d.unlessMay(ctx, err, "patch", object)
	if err == nil && unchecked {
		err = merge(before, patch, object)
	}
	if err == nil && metav1.GetControllerOf(before) == nil && metav1.GetControllerOf(object) != nil {
		err = d.plan(object) // the children are rendered again after an adoption
	}
	if err != nil {
		return err
	}

	return d.record(before, object, unchecked)
}

func (d *dryRuns) plan(object client.Object) error {
	id, err := d.identityOf(object, client.ObjectKeyFromObject(object))
	if err == nil {
		d.planned[id], err = d.toUnstructured(object)
	}
	return err
}

// Delete implements client.Writer. It sends no request, because the operator has the permission.
func (d *dryRuns) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	return d.record(object, nil, false)
}

// record adds a write to the changes, unless the operator would not make it.
func (d *dryRuns) record(before, after client.Object, unchecked bool) error {
	if d.refused {
		return nil
	}

	from, errFrom := d.toUnstructured(before)
	to, errTo := d.toUnstructured(after)
	if err := errors.Join(errFrom, errTo); err != nil {
		return err
	}

	change, err := changeOf(from, to)
	if err != nil {
		return err
	}

	change.Unchecked = unchecked
	if change.Action != None {
		d.children = append(d.children, change)
	}

	if deployment, isDeployment := after.(*appsv1.Deployment); isDeployment {
		running, _ := before.(*appsv1.Deployment)
		d.pods = podsOf(running, deployment)
	}

	return nil
}

// toUnstructured returns a child with its kind, which typed clients omit. nil stays nil.
func (d *dryRuns) toUnstructured(object client.Object) (*unstructured.Unstructured, error) {
	if object == nil {
		return nil, nil
	}

	gvk, err := d.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("failed to encode %s: %w", object.GetName(), err)
	}

	converted := &unstructured.Unstructured{Object: content}
	converted.SetGroupVersionKind(gvk)
	return converted, nil
}

// unlessMay drops the error of a write that the user has no permission for, because the operator
// has the permission. It reports whether it dropped the error.
func (d *dryRuns) unlessMay(ctx context.Context, err error, verb string, object client.Object) (bool, error) {
	if !apierrors.IsForbidden(err) {
		return false, err
	}

	gvk, kindErr := d.GroupVersionKindFor(object)
	if kindErr != nil {
		return false, kindErr
	}

	mapping, mapErr := d.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if mapErr != nil {
		return false, mapErr
	}

	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: object.GetNamespace(), Name: object.GetName(), Verb: verb, Group: gvk.Group, Resource: mapping.Resource.Resource,
		},
	}}

	if reviewErr := d.Client.Create(ctx, review); reviewErr != nil {
		return false, fmt.Errorf("failed to check your permissions: %w", reviewErr)
	}
	if review.Status.Allowed {
		return false, err
	}

	return true, nil
}

// merge applies a patch locally, without the API server's defaults and validation.
func merge(before client.Object, patch client.Patch, into client.Object) error {
	change, errChange := patch.Data(before)
	current, errCurrent := json.Marshal(before)
	err := errors.Join(errChange, errCurrent)
	if err != nil {
		return err
	}

	if patch.Type() == types.StrategicMergePatchType {
		current, err = strategicpatch.StrategicMergePatch(current, change, before)
	} else {
		current, err = jsonpatch.MergePatch(current, change)
	}

	if err != nil {
		return err
	}

	merged := reflect.New(reflect.TypeOf(into).Elem())
	err = json.Unmarshal(current, merged.Interface())
	reflect.ValueOf(into).Elem().Set(merged.Elem())
	return err
}
