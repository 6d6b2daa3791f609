// Package record has the records of applied declarations. A record is a ControllerRevision with the
// spec and the hashes and files of everything that it references, so that children can be restored
// from it.
package record

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Declaration is an object with everything that its children depend on, and its record.
type Declaration struct {
	// Object has the spec.
	Object *v1alpha2.NginxOperator
	// Inputs has everything else that the children depend on.
	Inputs operand.Inputs
	// Revision is the record without its data, which Contents adds when the record is written.
	Revision *appsv1.ControllerRevision
	// Files reads the data of the ConfigMaps.
	Files func(context.Context) (operand.Files, error)
}

// NewDeclaration returns a declaration with its record.
func NewDeclaration(
	object *v1alpha2.NginxOperator, in operand.Inputs, read func(context.Context) (operand.Files, error),
) (*Declaration, error) {
	revision, err := desiredRevision(object, in)
	return &Declaration{object, in, revision, read}, err
}

// Contents returns the data of the ConfigMaps and of the record. It reads the files at most once.
func (d *Declaration) Contents() apply.Content {
	return &contents{object: d.Object, in: d.Inputs, read: d.Files}
}

// Rendering is a declaration with the live state, and its children.
type Rendering struct {
	*Declaration
	// Children are all children, with the patches of the spec.
	Children []client.Object
}

// WithLiveRecord returns the rendering with the record label of the live Deployment. A preview must
// not report a change of this label alone.
func (r Rendering) WithLiveRecord() Rendering {
	if r.Inputs.Deployment == nil {
		return r
	}
	r.Children = slices.Clone(r.Children)
	for i, child := range r.Children {
		deployment, ok := child.(*appsv1.Deployment)
		if !ok {
			continue
		}
		deployment = deployment.DeepCopy()
		delete(deployment.Labels, wellknown.LabelRecord)
		if record := r.Inputs.Deployment.Labels[wellknown.LabelRecord]; record != "" {
			deployment.Labels[wellknown.LabelRecord] = record
		}
		r.Children[i] = deployment
	}
	return r
}

// HasPodsOf reports whether another declaration has the same Pod template if it is rendered for the
// same live state. The error is an operand.NotPatched.
func (r Rendering) HasPodsOf(other *Declaration) (bool, error) {
	in := other.Inputs
	in.Missing, in.Deployment, in.Suffix, in.Running = r.Inputs.Missing, r.Inputs.Deployment, r.Inputs.Suffix, r.Inputs.Running
	children, err := operand.Children(other.Object, in)
	if err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(operand.PodTemplateOf(r.Children), operand.PodTemplateOf(children)), nil
}
