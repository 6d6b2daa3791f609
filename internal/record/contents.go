package record

import (
	"bytes"
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// contents has the data of the ConfigMaps and of the record of a declaration.
type contents struct {
	object *v1alpha2.NginxOperator
	in     operand.Inputs
	read   func(context.Context) (operand.Files, error)
	found  *operand.Files
	// stored reads the data of a record that exists, or is nil.
	stored func(context.Context) ([]byte, error)
	// carried is the annotation with which a Deployment is created, or "".
	carried string
}

var _ apply.Content = &contents{}

// files reads the files once.
func (c *contents) files(ctx context.Context) (operand.Files, error) {
	if c.found == nil {
		found, err := c.read(ctx)
		if err != nil {
			return operand.Files{}, err
		}
		c.found = &found
	}
	return *c.found, nil
}

// record returns the data of the record.
func (c *contents) record(ctx context.Context) ([]byte, error) {
	if c.stored != nil {
		return c.stored(ctx)
	}
	found, err := c.files(ctx)
	if err != nil {
		return nil, err
	}
	return DataOf(c.object, c.in).encode(found)
}

// Fill implements apply.Content.
func (c *contents) Fill(ctx context.Context, child client.Object) error {
	switch child := child.(type) {
	case *corev1.ConfigMap:
		if child.Data != nil || child.BinaryData != nil {
			return nil
		}
		found, err := c.files(ctx)
		if err != nil {
			return err
		}
		// The maps are shared with other copies.
		switch child.Name {
		case operand.ContentName(c.object, c.in):
			child.Data, child.BinaryData = maps.Clone(found.Text), maps.Clone(found.Binary)
		case operand.FilesName(c.object, c.in):
			child.Data, child.BinaryData = maps.Clone(found.FileText), maps.Clone(found.FileBinary)
		default:
			child.Data = found.Config
		}
	case *appsv1.ControllerRevision:
		if child.Data.Raw != nil {
			return nil
		}
		var err error
		child.Data.Raw, err = c.record(ctx)
		return err
	case *appsv1.Deployment:
		if _, declared := child.Annotations[wellknown.AnnotationFirstDeclaration]; declared && c.carried != "" {
			child.Annotations[wellknown.AnnotationFirstDeclaration] = c.carried
		}
	}
	return nil
}

// Holds implements apply.Content. It compares all data of a ConfigMap, because other data with the
// 40-bit hash of its name can be computed. If the record of a blocked object had no room for the
// files, it compares only the hash.
func (c *contents) Holds(ctx context.Context, child, live client.Object) (bool, error) {
	switch live := live.(type) {
	case *corev1.ConfigMap:
		want := child.DeepCopyObject().(*corev1.ConfigMap)
		err := c.Fill(ctx, want)
		if IsUnusable(err) && apply.IsForged(err) == nil {
			return ptr.Deref(live.Immutable, false) && c.isNamed(live), nil
		}
		return ptr.Deref(live.Immutable, false) && maps.Equal(want.Data, live.Data) &&
			maps.EqualFunc(want.BinaryData, live.BinaryData, bytes.Equal), err
	case *appsv1.ControllerRevision:
		return isRecord(live), nil
	}
	return true, nil
}

// isNamed reports whether the name of a ConfigMap has the hash of its data.
func (c *contents) isNamed(live *corev1.ConfigMap) bool {
	kept := Data{Spec: c.object.Spec}
	switch live.Name {
	case operand.ContentName(c.object, c.in):
		kept.Content = c.in.Content.Hash
		return kept.has(operand.Files{Text: live.Data, Binary: live.BinaryData})
	case operand.FilesName(c.object, c.in):
		kept.FilesHash = c.in.Files.Hash
		return kept.has(operand.Files{FileText: live.Data, FileBinary: live.BinaryData})
	}
	kept.Config = c.in.Config.Hash
	return len(live.BinaryData) == 0 && kept.has(operand.Files{Config: live.Data})
}
