// Package record has the records of applied declarations. A record is a ControllerRevision with the
// spec and the hashes and files of everything that it references, so that children can be restored
// from it.
package record

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/carried"
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

	// stored reads the data of the record if a Deployment carries it, or is nil.
	stored func(context.Context) ([]byte, error)
}

// NewDeclaration returns a declaration with its record.
func NewDeclaration(
	object *v1alpha2.NginxOperator, in operand.Inputs, read func(context.Context) (operand.Files, error),
) (*Declaration, error) {
	revision, err := desiredRevision(object, in)
	return &Declaration{Object: object, Inputs: in, Revision: revision, Files: read}, err
}

// Rendering is a declaration with the live state, and its children.
type Rendering struct {
	*Declaration
	// Entrance is the object with the spec of the entrance, if it is that of another declaration, or
	// nil.
	Entrance *v1alpha2.NginxOperator
	operand.Composed
	// Recorded means that the record is a ControllerRevision. If it is false, the Deployment
	// carries the record.
	Recorded bool

	contents *contents
}

// NewRendering returns the rendering of a declaration without children.
func NewRendering(of *Declaration) Rendering {
	return Rendering{
		Declaration: of, Recorded: true, contents: &contents{object: of.Object, in: of.Inputs, read: of.Files, stored: of.stored},
	}
}

// EntranceObject returns the object with the spec of the entrance.
func (r Rendering) EntranceObject() *v1alpha2.NginxOperator { return cmp.Or(r.Entrance, r.Object) }

// Contents returns the data of the ConfigMaps and of the record. It reads the files at most once.
func (r Rendering) Contents() apply.Content { return r.contents }

// WithLiveRecord returns the rendering with the record of the live Deployment: its label, and the
// annotation with which it carries a record. A preview must not report a change of these alone.
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
		delete(deployment.Annotations, wellknown.AnnotationFirstDeclaration)
		if first := r.Inputs.Deployment.Annotations[wellknown.AnnotationFirstDeclaration]; first != "" {
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationFirstDeclaration, carried.Head(first))
		}
		r.Children[i] = deployment
	}
	return r
}

// SamePods reports whether two declarations have the same Pod template, apart from the names of
// container ports. It is false if the patches of one cannot be applied.
func SamePods(a, b *Declaration) bool {
	running := operand.FixedNames(&a.Object.Spec, &b.Object.Spec)
	var templates [2]*corev1.PodTemplateSpec
	for i, of := range []*Declaration{a, b} {
		in := of.Inputs
		in.Missing, in.Deployment, in.Suffix, in.Running = nil, nil, "", running
		children, err := operand.Children(of.Object, in)
		if err != nil {
			return false
		}
		templates[i] = operand.PodTemplateOf(children)
	}
	return equality.Semantic.DeepEqual(templates[0], templates[1])
}
