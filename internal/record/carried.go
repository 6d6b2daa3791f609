package record

import (
	"context"
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

// carriedBy returns the record that a Deployment carries, or nil if it carries none that the status
// confirms. The record has no data if the Deployment is from the cache.
func carriedBy(object *v1alpha2.NginxOperator, deployment *appsv1.Deployment) *appsv1.ControllerRevision {
	if deployment == nil {
		return nil
	}
	annotation := deployment.Annotations[wellknown.AnnotationFirstDeclaration]
	found, ok := carried.Parse(annotation)
	if !ok || found.Hash != object.Status.FirstDeclarationHash || !metav1.IsControlledBy(deployment, object) {
		return nil
	}
	return &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{Kind: carrier},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: Name(object, found.Name), UID: deployment.UID, CreationTimestamp: deployment.CreationTimestamp,
			Annotations: map[string]string{wellknown.AnnotationFirstDeclaration: found.Hash},
		},
		Data: runtime.RawExtension{Raw: carried.Data(annotation, found.Hash)}, Revision: found.Revision,
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

// Carry sets where the record of a rendering is. The Deployment carries it if it is new and no
// record exists, or if it has carried it since its creation. Otherwise, and if the record is too
// large, the record is a ControllerRevision.
func (s Store) Carry(ctx context.Context, object *v1alpha2.NginxOperator, of *Rendering) error {
	of.Recorded = true
	deployment := of.Inputs.Deployment
	if s.API == nil || deployment != nil && object.Status.FirstDeclarationHash == "" {
		return nil
	}
	records, err := s.List(ctx, object)
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

	found := carriedBy(object, deployment)
	if found == nil || found.Name != of.Revision.Name {
		return nil
	}
	of.Inputs.Carried = carried.Head(deployment.Annotations[wellknown.AnnotationFirstDeclaration])
	of.Recorded = !slices.ContainsFunc(records, func(one appsv1.ControllerRevision) bool {
		return one.Name == found.Name && one.Kind == carrier
	})
	return nil
}

// Earlier returns the record of the last good revision, with its data, if only the Deployment
// carries it, and the write of a rendering ends that. Otherwise it returns nil.
func (s Store) Earlier(ctx context.Context, object *v1alpha2.NginxOperator, of Rendering) ([]client.Object, error) {
	good := object.Status.LastGoodRevision
	if good == nil || good.Revision == of.Revision.Name || object.Status.FirstDeclarationHash == "" {
		return nil, nil
	}
	records, err := s.List(ctx, object)
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
