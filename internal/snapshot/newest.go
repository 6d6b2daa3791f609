package snapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// NewestReplicaSet has the Pods of the newest ReplicaSet of a Deployment.
type NewestReplicaSet struct {
	// Known reports whether the cache has the ReplicaSet.
	Known bool
	// Began is the time of the first rollout of its Pod template.
	Began time.Time
	// Pods are the observed Pods of the ReplicaSet.
	Pods []*corev1.Pod
}

// NewestPods returns the newest ReplicaSet of the observed Deployment, which must not be nil, and
// its Pods.
func (r Reader) NewestPods(ctx context.Context, object *v1alpha2.NginxOperator, state Observed) (NewestReplicaSet, error) {
	list := &appsv1.ReplicaSetList{}
	if err := r.List(ctx, list, Owned(object)...); err != nil {
		return NewestReplicaSet{}, fmt.Errorf("failed to list ReplicaSets: %w", err)
	}
	number := state.Deployment.Annotations[wellknown.AnnotationRevision]
	at := slices.IndexFunc(list.Items, func(one appsv1.ReplicaSet) bool {
		return metav1.IsControlledBy(&one, state.Deployment) && one.Annotations[wellknown.AnnotationRevision] == number
	})
	if at < 0 {
		return NewestReplicaSet{}, nil
	}
	out := NewestReplicaSet{Known: true, Began: list.Items[at].CreationTimestamp.Time}
	for _, pod := range state.Pods {
		if metav1.IsControlledBy(pod, &list.Items[at]) {
			out.Pods = append(out.Pods, pod)
		}
	}
	return out, nil
}
