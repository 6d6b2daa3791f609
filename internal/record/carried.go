package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/carried"
	"github.com/example/nginx-operator/internal/wellknown"
)

// The record of the first declaration is in an annotation of the Deployment, so most objects need
// no ControllerRevision. Tenants can write Deployments. So the operator believes the annotation
// only if the status of the object has its hash. If not, it writes a ControllerRevision as for
// every other declaration.

// carrier is the kind of a record in a list if a Deployment carries it.
const carrier = "Deployment"

// confirmed returns the record in the annotation of a Deployment, and false if it has none that the
// status confirms.
func confirmed(object *v1alpha2.NginxOperator, deployment *appsv1.Deployment) (carried.Record, bool) {
	if deployment == nil || !metav1.IsControlledBy(deployment, object) {
		return carried.Record{}, false
	}
	found, ok := carried.Parse(deployment.Annotations[wellknown.AnnotationFirstDeclaration])
	return found, ok && found.Hash == object.Status.FirstDeclarationHash
}

// carriedBy returns the record that a Deployment carries, or nil if it carries none that the status
// confirms, or an old one. A record is old under the same condition under which a ControllerRevision
// is deleted: it is neither applied nor the last good one. The record has no data if the Deployment
// is from the cache.
func carriedBy(object *v1alpha2.NginxOperator, deployment *appsv1.Deployment) *appsv1.ControllerRevision {
	found, ok := confirmed(object, deployment)
	if !ok {
		return nil
	}
	name, good := Name(object, found.Name), object.Status.LastGoodRevision
	if deployment.Labels[wellknown.LabelRecord] != found.Name && (good == nil || good.Revision != name) {
		return nil
	}
	return &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{Kind: carrier},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: name, UID: deployment.UID, CreationTimestamp: deployment.CreationTimestamp,
			Annotations: map[string]string{wellknown.AnnotationFirstDeclaration: found.Hash},
		},
		Data:     runtime.RawExtension{Raw: carried.Data(deployment.Annotations[wellknown.AnnotationFirstDeclaration], found.Hash)},
		Revision: found.Revision,
	}
}

// WithCarried returns the records of an object and the record that its Deployment carries, unless
// this record is also a ControllerRevision. The Deployment can be nil.
func WithCarried(
	object *v1alpha2.NginxOperator, deployment *appsv1.Deployment, records []appsv1.ControllerRevision,
) []appsv1.ControllerRevision {
	found := carriedBy(object, deployment)
	if found == nil || slices.ContainsFunc(records, func(one appsv1.ControllerRevision) bool { return one.Name == found.Name }) {
		return records
	}
	return append(slices.Clip(records), *found)
}

// readCarried returns the record that a Deployment carries, with its data.
func (s Store) readCarried(ctx context.Context, of *appsv1.ControllerRevision, name string) (*appsv1.ControllerRevision, error) {
	deployment := &appsv1.Deployment{}
	err := s.API.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: name}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("failed to read Deployment %q: %w", name, err)
	}
	out := of.DeepCopy()
	out.Data.Raw = carried.Data(
		deployment.Annotations[wellknown.AnnotationFirstDeclaration], of.Annotations[wellknown.AnnotationFirstDeclaration])
	if err != nil || deployment.UID != of.UID || out.Data.Raw == nil {
		return nil, apierrors.NewConflict(appsv1.Resource("deployments"), name, errors.New("it was changed a moment ago"))
	}
	return out, nil
}

// Carry sets where the record of a rendering is, and whether the Deployment carries a record. A new
// Deployment carries its record if no record exists and it is small enough. From then on it carries
// this record, of whichever declaration: removing the annotation would be a new generation of the
// Deployment. Every other record is a ControllerRevision.
func (s Store) Carry(ctx context.Context, object *v1alpha2.NginxOperator, of *Rendering) error {
	of.Recorded = true
	deployment := of.Inputs.Deployment
	if s.API == nil || deployment != nil && object.Status.FirstDeclarationHash == "" {
		return nil
	}
	records, err := s.List(object)
	if err != nil {
		return err
	}

	if deployment == nil && len(records) == 0 {
		data, err := of.contents.record(ctx)
		if err != nil {
			return err
		}
		of.contents.carried = carried.New(of.Inputs.Record, of.Revision.Revision, data)
		of.Inputs.Carried = carried.Head(of.contents.carried)
		of.Recorded = of.contents.carried == ""
		return nil
	}

	found, ok := confirmed(object, deployment)
	if !ok {
		return nil
	}
	isOnly := len(records) == 1 && records[0].Kind == carrier
	of.Recorded = !isOnly || records[0].Name != of.Revision.Name
	if of.Recorded {
		spec, err := json.Marshal(of.Object.Spec)
		if err != nil || len(spec) > carried.MaxBytes {
			return err // the Deployment may need the bytes for other annotations
		}
	}
	of.Inputs.Carried = found.Head
	return nil
}

// Earlier returns the record of the good declaration, which can be nil, with its data, if it does not
// exist and a rendering is of another revision. It returns the same for the last good revision of the
// status.
func (s Store) Earlier(
	ctx context.Context, object *v1alpha2.NginxOperator, of Rendering, known *Declaration,
) ([]client.Object, error) {
	carried, err := s.carriedGood(ctx, object, of)
	if err != nil || known == nil || known.Revision.Name == of.Revision.Name {
		return carried, err
	}
	records, err := s.Live.Records()
	if err != nil {
		return nil, err
	}
	hasName := func(one client.Object) bool { return one.GetName() == known.Revision.Name }
	if slices.ContainsFunc(carried, hasName) ||
		slices.ContainsFunc(records, func(one appsv1.ControllerRevision) bool { return hasName(&one) }) {
		return carried, nil
	}
	out := known.Revision.DeepCopy()
	out.Data.Raw, err = NewRendering(known).contents.record(ctx)
	return append(carried, out), err
}

// carriedGood returns the record of the last good revision of the status if only the Deployment
// carries it.
func (s Store) carriedGood(ctx context.Context, object *v1alpha2.NginxOperator, of Rendering) ([]client.Object, error) {
	good := object.Status.LastGoodRevision
	if good == nil || good.Revision == of.Revision.Name || object.Status.FirstDeclarationHash == "" {
		return nil, nil
	}
	records, err := s.List(object)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(records, func(one appsv1.ControllerRevision) bool { return one.Name == good.Revision && one.Kind == carrier })
	if at < 0 {
		return nil, nil
	}
	found, err := s.readCarried(ctx, &records[at], object.Name)
	if err != nil {
		return nil, err
	}
	out := of.Revision.DeepCopy()
	out.Name, out.Revision, out.Data = found.Name, found.Revision, found.Data
	return []client.Object{out}, nil
}

// CarriedHash returns the hash of the record with which a rendering creates the Deployment, or "".
func (r Rendering) CarriedHash() string {
	if r.contents == nil {
		return ""
	}
	found, _ := carried.Parse(r.contents.carried)
	return found.Hash
}
