package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
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
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	planned = manifest.DeepCopy()
	switch {
	case a.ServerSide:
		err = a.serverSide(ctx, c, planned)
	case live == nil:
		if err = noteApplied(planned); err == nil {
			err = c.Create(ctx, planned, client.FieldValidation(metav1.FieldValidationStrict))
		}
	default:
		var patch client.Patch
		if patch, err = threeWay(manifest, live); err == nil {
			planned = live.DeepCopy()
			err = c.Patch(ctx, planned, patch, client.FieldValidation(metav1.FieldValidationStrict))
		}
	}
	return live, planned, err
}

func (a Apply) serverSide(ctx context.Context, c client.Client, planned *unstructured.Unstructured) error {
	options := []client.ApplyOption{client.FieldOwner(a.FieldManager)}
	if a.ForceConflicts {
		options = append(options, client.ForceOwnership)
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(planned), options...)
}

// noteApplied adds the annotation of kubectl apply to a manifest.
func noteApplied(manifest *unstructured.Unstructured) error {
	annotations := manifest.GetAnnotations()
	delete(annotations, lastApplied)
	manifest.SetAnnotations(annotations)
	raw, err := json.Marshal(manifest.Object)
	if err != nil {
		return fmt.Errorf("failed to encode %s: %w", manifest.GetName(), err)
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[lastApplied] = string(raw) + "\n"
	manifest.SetAnnotations(annotations)
	return nil
}

// threeWay returns the patch that kubectl apply would send.
func threeWay(manifest, live *unstructured.Unstructured) (client.Patch, error) {
	original := live.GetAnnotations()[lastApplied]
	if original == "" {
		original = "{}"
	}
	manifest = manifest.DeepCopy()
	if err := noteApplied(manifest); err != nil {
		return nil, err
	}
	modified, err1 := json.Marshal(manifest.Object)
	current, err2 := json.Marshal(live.Object)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("failed to encode %s: %w", manifest.GetName(), err)
	}
	if typed, err := clientgoscheme.Scheme.New(manifest.GroupVersionKind()); err == nil {
		meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
		if err != nil {
			return nil, err
		}
		patch, err := strategicpatch.CreateThreeWayMergePatch([]byte(original), modified, current, meta, true)
		return client.RawPatch(types.StrategicMergePatchType, patch), err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(original), modified, current)
	return client.RawPatch(types.MergePatchType, patch), err
}

// isInstance reports whether a manifest is an NginxOperator of any version.
func isInstance(kind schema.GroupVersionKind) bool {
	return kind.GroupKind() == v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind()
}
