// Package preview finds what a manifest would change: the objects themselves by dry runs, and the children of instances by the operator's
// own reconciler, whose writes become dry runs here.
package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
)

// write is what was done to an object, in a dry run: before is nil where it is created, after where it is deleted.
type write struct {
	before, after client.Object
	// unchecked: whoever asks may not do that, so the API server was not asked about the result.
	unchecked bool
}

// dryRuns is a client that reads what manifests plan as if it were stored, and makes a dry run of each write, which it keeps.
type dryRuns struct {
	client.Client

	planned map[identity]*unstructured.Unstructured
	writes  []write
}

// identity names an object, whatever version it is read in.
type identity struct {
	schema.GroupKind
	types.NamespacedName
}

func (d *dryRuns) identityOf(object client.Object, key types.NamespacedName) (identity, error) {
	gvk, err := d.GroupVersionKindFor(object)
	return identity{gvk.GroupKind(), key}, err
}

// Get implements client.Reader.
func (d *dryRuns) Get(ctx context.Context, key types.NamespacedName, object client.Object, options ...client.GetOption) error {
	id, err := d.identityOf(object, key)
	if err != nil {
		return err
	}
	if planned, found := d.planned[id]; found {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(planned.Object, object)
	}
	return d.Client.Get(ctx, key, object, options...)
}

// List implements client.Reader. The operator's cache finds by an index what labels find here.
func (d *dryRuns) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	all := (&client.ListOptions{}).ApplyOptions(options)
	if all.FieldSelector != nil {
		if instance, found := all.FieldSelector.RequiresExactMatch(operatormanager.InstanceIndex); found {
			all.FieldSelector, all.LabelSelector = nil, labels.SelectorFromSet(wellknown.Selector(instance))
		}
	}
	return d.Client.List(ctx, list, all)
}

// Create implements client.Writer.
func (d *dryRuns) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	// Who may create an object need not be allowed to block the deletion of its owner, which the operator is.
	owners := object.GetOwnerReferences()
	for i := range owners {
		owners[i].BlockOwnerDeletion = nil
	}
	object.SetOwnerReferences(owners)
	err := d.Client.Create(ctx, object, append(options, client.DryRunAll)...)
	unchecked, err := d.unlessMay(ctx, err, "create", object)
	if unchecked {
		object.SetUID("unchecked") // what was created has one
	}
	if err == nil {
		d.writes = append(d.writes, write{after: object, unchecked: unchecked})
	}
	return err
}

// Patch implements client.Writer.
func (d *dryRuns) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	before := object.DeepCopyObject().(client.Object)
	err := d.Client.Patch(ctx, object, patch, append(options, client.DryRunAll)...)
	unchecked, err := d.unlessMay(ctx, err, "patch", object)
	if err == nil && unchecked {
		err = merge(before, patch, object)
	}
	if err == nil {
		d.writes = append(d.writes, write{before: before, after: object, unchecked: unchecked})
	}
	return err
}

// Delete implements client.Writer. Nothing refuses a deletion but permissions, which are the operator's.
func (d *dryRuns) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	d.writes = append(d.writes, write{before: object})
	return nil
}

// unlessMay takes away the error of a write that whoever asks may not do, which says nothing of the operator, and reports that it was one.
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
		return false, fmt.Errorf("failed to ask what you may do: %w", reviewErr)
	}
	if review.Status.Allowed {
		return false, err
	}
	return true, nil
}

// merge applies a patch to an object here, without the API server's defaults and checks.
func merge(before client.Object, patch client.Patch, into client.Object) error {
	change, err := patch.Data(before)
	if err != nil {
		return err
	}
	current, err := json.Marshal(before)
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
