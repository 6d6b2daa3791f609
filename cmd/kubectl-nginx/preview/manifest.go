package preview

import (
	"cmp"
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastApplied is the annotation in which kubectl apply stores the last applied manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Apply has the flags of kubectl apply and kubectl diff.
type Apply struct {
	// ServerSide is --server-side. FieldManager and ForceConflicts require it.
	ServerSide     bool
	FieldManager   string
	ForceConflicts bool
}

// dryRun applies a manifest in a dry run as kubectl apply would. It returns the stored object, or
// nil if it does not exist, and the planned object.
func (a Apply) dryRun(
	ctx context.Context, c client.Client, manifest *unstructured.Unstructured,
) (live, planned *unstructured.Unstructured, err error) {
	c = client.NewDryRunClient(c)
	live = &unstructured.Unstructured{}
	live.SetGroupVersionKind(manifest.GroupVersionKind())
	err = c.Get(ctx, client.ObjectKeyFromObject(manifest), live)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, err
	}
	if err != nil {
		live = nil
	}

	planned = manifest.DeepCopy()
	if a.ServerSide {
		options := []client.ApplyOption{client.FieldOwner(a.FieldManager)}
		if a.ForceConflicts {
			options = append(options, client.ForceOwnership)
		}
		return live, planned, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(planned), options...)
	}

	if err := noteApplied(planned); err != nil {
		return nil, nil, err
	}
	if live == nil {
		return nil, planned, c.Create(ctx, planned, client.FieldValidation(metav1.FieldValidationStrict))
	}

	patch, err := threeWay(planned, live)
	if err != nil {
		return nil, nil, err
	}

	planned = live.DeepCopy()
	return live, planned, c.Patch(ctx, planned, patch, client.FieldValidation(metav1.FieldValidationStrict))
}

func noteApplied(manifest *unstructured.Unstructured) error {
	annotations := manifest.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	delete(annotations, lastApplied)
	manifest.SetAnnotations(annotations)

	raw, err := manifest.MarshalJSON()
	annotations[lastApplied] = string(raw)
	manifest.SetAnnotations(annotations)
	return err
}

func threeWay(manifest, live *unstructured.Unstructured) (client.Patch, error) {
	original := []byte(cmp.Or(live.GetAnnotations()[lastApplied], "{}"))
	modified, errModified := manifest.MarshalJSON()
	current, errCurrent := live.MarshalJSON()
	if err := errors.Join(errModified, errCurrent); err != nil {
		return nil, err
	}

	if typed, err := clientgoscheme.Scheme.New(manifest.GroupVersionKind()); err == nil {
		meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
		if err != nil {
			return nil, err
		}

		patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true)
		return client.RawPatch(types.StrategicMergePatchType, patch), err
	}

	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	return client.RawPatch(types.MergePatchType, patch), err
}
