package rollout

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/wellknown"
)

// forgotten returns the failure of a declaration whose object has lost its status, or nil. Such a
// declaration has a record of the current generation, the Deployment serves another one, and an older
// ReplicaSet was created after the record. So it was rolled out, and then replaced without a change of
// the spec.
func (r Decider) forgotten(
	object *v1alpha2.NginxOperator, declared *record.Declaration,
) (*v1alpha2.FailedRevision, error) {
	if object.Status.ObservedGeneration != 0 || object.Status.LastGoodRevision != nil {
		return nil, nil
	}
	live := r.Live.Deployment()
	if !health.ProgressOf(live).Complete {
		return nil, nil
	}
	applied := record.Name(object, live.Labels[wellknown.LabelRecord])
	revisions, err := r.Records.List(object)
	if err != nil {
		return nil, err
	}
	kept := recordOf(revisions, declared.Revision.Name)
	if kept == nil || recordOf(revisions, applied) == nil || applied == declared.Revision.Name || kept.Revision != object.Generation {
		return nil, nil
	}

	replicaSets, err := r.Live.ReplicaSets()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(replicaSets, func(one *appsv1.ReplicaSet) bool {
		return metav1.IsControlledBy(one, live) && !one.CreationTimestamp.Before(&kept.CreationTimestamp) &&
			one.Annotations[wellknown.AnnotationRevision] != live.Annotations[wellknown.AnnotationRevision]
	}) {
		return nil, nil
	}
	message := fmt.Sprintf("generation %d was rolled back before the status of the object was lost", declared.Object.Generation)
	return &v1alpha2.FailedRevision{
		Revision: declared.Revision.Name, Reason: v1alpha2.ReasonRolledBack, Message: message, Time: metav1.NewTime(time.Now()),
	}, nil
}
