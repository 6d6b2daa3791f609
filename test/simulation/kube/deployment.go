package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// Annotations of the Deployment controller: the revision of a Deployment or ReplicaSet, the earlier
// revisions of a ReplicaSet, and the replicas that the Deployment had, without and with surge.
const (
	annotationPrefix   = "deployment.kubernetes.io/"
	annotationRevision = annotationPrefix + "revision"
	annotationHistory  = annotationPrefix + "revision-history"
	annotationDesired  = annotationPrefix + "desired-replicas"
	annotationMost     = annotationPrefix + "max-replicas"
)

// deployment is the Deployment controller for the strategy RollingUpdate. It follows the controller
// of Kubernetes 1.37 (pkg/controller/deployment) step by step, without events and hash collisions.
func (k *Kube) deployment(d *appsv1.Deployment) {
	if d.DeletionTimestamp != nil {
		return
	}
	k.pauseConditions(d)
	all := k.replicaSets(d)
	newest, old, ok := k.newestReplicaSet(d, all, false)
	isScaled := slices.ContainsFunc(all, func(rs *appsv1.ReplicaSet) bool {
		desired, found := rs.Annotations[annotationDesired]
		return *rs.Spec.Replicas > 0 && found && desired != text(*d.Spec.Replicas)
	})
	if d.Spec.Paused || isScaled {
		k.scaleAll(d, newest, old)
		if d.Spec.Paused {
			k.clean(d, old)
		}
		k.writeStatus(d, k.statusOf(d, newest, old))
		return
	}

	if newest == nil {
		newest, old, ok = k.newestReplicaSet(d, all, true)
	}
	if !ok {
		return
	}
	if !k.scaleNewest(d, newest, old) && !k.scaleOld(d, newest, old) && isComplete(d, &d.Status) {
		k.clean(d, old)
	}
	k.rolloutStatus(d, newest, old)
}

// replicaSets returns the ReplicaSets of a Deployment, the oldest first.
func (k *Kube) replicaSets(d *appsv1.Deployment) []*appsv1.ReplicaSet {
	out := controlled[appsv1.ReplicaSet](k, storage.ReplicaSets, d)
	slices.SortStableFunc(out, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(revisionOf(a), revisionOf(b)))
	})
	return out
}

func revisionOf(rs *appsv1.ReplicaSet) int {
	number, _ := strconv.Atoi(rs.Annotations[annotationRevision])
	return number
}

func text[T int | int32](number T) string { return strconv.Itoa(int(number)) }

func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return hashOf(a) == hashOf(b)
}

func hashOf(template *corev1.PodTemplateSpec) string {
	raw, err := json.Marshal(template)
	if err != nil {
		panic(err)
	}
	sum := fnv.New32a()
	_, _ = sum.Write(raw)
	return fmt.Sprintf("%08x", sum.Sum32())
}

// newestReplicaSet returns the ReplicaSet of the current template, with the annotations of the
// Deployment, and the others. It creates a missing one if create is true. It returns false if the
// API server refuses that.
func (k *Kube) newestReplicaSet(
	d *appsv1.Deployment, all []*appsv1.ReplicaSet, create bool,
) (newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet, ok bool) {
	highest := 0
	for _, rs := range all {
		if newest == nil && sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			newest = rs
			continue
		}
		old, highest = append(old, rs), max(highest, revisionOf(rs))
	}
	progressing := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	switch {
	case newest != nil:
		before := newest.DeepCopy()
		annotate(newest, d, highest+1)
		newest.Spec.MinReadySeconds = d.Spec.MinReadySeconds
		if !equality.Semantic.DeepEqual(before, newest) {
			k.write(storage.ReplicaSets, newest, "")
			k.refresh(newest)
			return newest, old, true
		}
		progressing.Reason, progressing.Message = "FoundNewReplicaSet", fmt.Sprintf("Found new replica set %q", newest.Name)
		if conditionOf(&d.Status, appsv1.DeploymentProgressing) != nil {
			progressing.Type = ""
		}
	case !create:
		return nil, old, true
	default:
		newest = newReplicaSet(d)
		*newest.Spec.Replicas = mostReplicas(d, newest, append(slices.Clone(old), newest))
		annotate(newest, d, highest+1)
		newest.Annotations[annotationDesired], newest.Annotations[annotationMost] = annotated(d)
		if refused := k.refusal(d); refused != "" {
			progressing.Status, progressing.Reason = corev1.ConditionFalse, "ReplicaSetCreateError"
			progressing.Message = fmt.Sprintf("Failed to create new replica set %q: %s", newest.Name, refused)
			k.updateStatus(d, progressing)
			return nil, old, false
		}
		k.create(storage.ReplicaSets, newest)
		k.refresh(newest)
		progressing.Reason, progressing.Message = "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", newest.Name)
	}
	k.updateStatus(d, progressing, newest.Annotations[annotationRevision])
	return newest, old, true
}

func (k *Kube) refusal(d *appsv1.Deployment) string {
	if k.Faults.NoReplicaSet == nil {
		return ""
	}
	return k.Faults.NoReplicaSet(d)
}

// updateStatus sets a condition, unless its type is empty, and the revision of a Deployment. It
// writes nothing else of the status, not even the observed generation.
func (k *Kube) updateStatus(d *appsv1.Deployment, condition appsv1.DeploymentCondition, revision ...string) {
	before := d.DeepCopy()
	for _, number := range revision {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, annotationRevision, number)
	}
	if !equality.Semantic.DeepEqual(before.Annotations, d.Annotations) {
		k.write(storage.Deployments, d, "")
		k.refresh(d)
	}
	if condition.Type != "" {
		k.setCondition(&d.Status, condition)
	}
	k.writeStatus(before, d.Status)
	k.refresh(d)
}

// annotate gives a ReplicaSet the annotations of its Deployment, and a revision that is not lower.
func annotate(rs *appsv1.ReplicaSet, d *appsv1.Deployment, revision int) {
	for key, value := range d.Annotations {
		if !strings.HasPrefix(key, annotationPrefix) && key != corev1.LastAppliedConfigAnnotation {
			metav1.SetMetaDataAnnotation(&rs.ObjectMeta, key, value)
		}
	}
	before := rs.Annotations[annotationRevision]
	if revisionOf(rs) >= revision {
		return
	}
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, annotationRevision, text(revision))
	if history := rs.Annotations[annotationHistory]; before != "" && history != "" {
		rs.Annotations[annotationHistory] = history + "," + before
	} else if before != "" {
		rs.Annotations[annotationHistory] = before
	}
}

// annotated returns the values of annotationDesired and annotationMost.
func annotated(d *appsv1.Deployment) (desired, most string) {
	surge, _ := boundsOf(d)
	return text(*d.Spec.Replicas), text(*d.Spec.Replicas + surge)
}

func newReplicaSet(d *appsv1.Deployment) *appsv1.ReplicaSet {
	hash := hashOf(&d.Spec.Template)
	rs := &appsv1.ReplicaSet{}
	rs.Namespace, rs.Name = d.Namespace, d.Name+"-"+hash
	rs.Labels = maps.Clone(d.Spec.Template.Labels)
	rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	rs.Spec.Replicas, rs.Spec.MinReadySeconds = ptr.To[int32](0), d.Spec.MinReadySeconds
	rs.Spec.Selector = d.Spec.Selector.DeepCopy()
	rs.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	rs.Spec.Template = *d.Spec.Template.DeepCopy()
	rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return rs
}

// clean deletes old ReplicaSets beyond the history limit.
func (k *Kube) clean(d *appsv1.Deployment, old []*appsv1.ReplicaSet) {
	byRevision := slices.SortedFunc(slices.Values(old), func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	for _, rs := range byRevision[:max(len(old)-int(*d.Spec.RevisionHistoryLimit), 0)] {
		if *rs.Spec.Replicas == 0 && rs.Status.Replicas == 0 && rs.Generation <= rs.Status.ObservedGeneration {
			k.remove(storage.ReplicaSets, rs, true)
		}
	}
}
