package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// annotationRevision is the annotation with the revision of a Deployment or ReplicaSet.
const annotationRevision = "deployment.kubernetes.io/revision"

// deployment reconciles the ReplicaSets of a Deployment with its template and replicas.
func (k *Kube) deployment(d *appsv1.Deployment) {
	if d.DeletionTimestamp != nil {
		return
	}
	sets := k.replicaSets(d)
	at := slices.IndexFunc(sets, func(rs *appsv1.ReplicaSet) bool { return sameTemplate(&rs.Spec.Template, &d.Spec.Template) })
	if at < 0 && !d.Spec.Paused {
		k.newReplicaSet(d, sets)
		return // the next Tick continues
	}
	var newest *appsv1.ReplicaSet
	var others []*appsv1.ReplicaSet
	for i, rs := range sets {
		if i == at {
			newest = rs
		} else {
			others = append(others, rs)
		}
	}
	if newest != nil && !d.Spec.Paused {
		if k.number(d, newest, others) {
			return
		}
		k.roll(d, newest, others)
		k.clean(d, others)
	}
	k.deploymentStatus(d, newest, sets)
}

func (k *Kube) replicaSets(d *appsv1.Deployment) []*appsv1.ReplicaSet {
	out := controlled[appsv1.ReplicaSet](k, storage.ReplicaSets, d)
	slices.SortFunc(out, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	return out
}

func revisionOf(rs *appsv1.ReplicaSet) int {
	number, _ := strconv.Atoi(rs.Annotations[annotationRevision])
	return number
}

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

func (k *Kube) newReplicaSet(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) {
	hash := hashOf(&d.Spec.Template)
	if k.Faults.NoReplicaSet != nil {
		if refused := k.Faults.NoReplicaSet(d); refused != "" {
			k.reportRefusal(d, fmt.Sprintf("Failed to create new replica set %q: %s", d.Name+"-"+hash, refused))
			return
		}
	}
	rs := &appsv1.ReplicaSet{}
	rs.Namespace, rs.Name = d.Namespace, d.Name+"-"+hash
	rs.Labels = maps.Clone(d.Spec.Template.Labels)
	rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	rs.Annotations = map[string]string{annotationRevision: strconv.Itoa(newestRevision(sets) + 1)}
	rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	rs.Spec.Replicas, rs.Spec.MinReadySeconds = ptr.To[int32](0), d.Spec.MinReadySeconds
	rs.Spec.Selector = d.Spec.Selector.DeepCopy()
	rs.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	rs.Spec.Template = *d.Spec.Template.DeepCopy()
	rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	k.create(storage.ReplicaSets, rs)
}

func newestRevision(sets []*appsv1.ReplicaSet) int {
	out := 0
	for _, rs := range sets {
		out = max(out, revisionOf(rs))
	}
	return out
}

// number sets the highest revision on the ReplicaSet of the current template, and on the
// Deployment. It reports whether it wrote. The ReplicaSet also gets the Deployment's minReadySeconds.
func (k *Kube) number(d *appsv1.Deployment, newest *appsv1.ReplicaSet, others []*appsv1.ReplicaSet) bool {
	if highest := newestRevision(others); revisionOf(newest) <= highest || newest.Spec.MinReadySeconds != d.Spec.MinReadySeconds {
		metav1.SetMetaDataAnnotation(&newest.ObjectMeta, annotationRevision, strconv.Itoa(max(highest+1, revisionOf(newest))))
		newest.Spec.MinReadySeconds = d.Spec.MinReadySeconds
		k.write(storage.ReplicaSets, newest, "")
		return true
	}
	if d.Annotations[annotationRevision] != newest.Annotations[annotationRevision] {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, annotationRevision, newest.Annotations[annotationRevision])
		k.write(storage.Deployments, d, "")
		return true
	}
	return false
}

// roll scales the ReplicaSets like a rolling update.
func (k *Kube) roll(d *appsv1.Deployment, newest *appsv1.ReplicaSet, others []*appsv1.ReplicaSet) {
	want := *d.Spec.Replicas
	surge, unavailable := boundsOf(d)
	old := int32(0)
	for _, rs := range others {
		old += *rs.Spec.Replicas
	}
	current := *newest.Spec.Replicas
	switch total := old + current; {
	case old == 0, current > want:
		k.setReplicas(newest, want)
	case total < want+surge:
		k.setReplicas(newest, min(want, current+want+surge-total))
	}
	if old == 0 {
		return
	}
	total, available := old+current, newest.Status.AvailableReplicas
	for _, rs := range others {
		available += rs.Status.AvailableReplicas
	}
	// Unavailable replicas are removed first, because they serve nothing.
	spare := total - (want - unavailable) - max(current-newest.Status.AvailableReplicas, 0)
	for _, rs := range others {
		sick := min(max(*rs.Spec.Replicas-rs.Status.AvailableReplicas, 0), max(spare, 0))
		if sick > 0 {
			k.setReplicas(rs, *rs.Spec.Replicas-sick)
			spare -= sick
		}
	}
	excess := available - (want - unavailable)
	for _, rs := range others {
		if count := min(excess, *rs.Spec.Replicas, max(spare, 0)); count > 0 {
			k.setReplicas(rs, *rs.Spec.Replicas-count)
			excess -= count
			spare -= count
		}
	}
}

func boundsOf(d *appsv1.Deployment) (surge, unavailable int32) {
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	value := func(of *intstr.IntOrString, up bool) int32 {
		number, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(of, intstr.FromString("25%"))), int(*d.Spec.Replicas), up)
		if err != nil {
			panic(err)
		}
		return int32(number) //nolint:gosec // the API bounds both
	}
	surge, unavailable = value(rolling.MaxSurge, true), value(rolling.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func (k *Kube) setReplicas(rs *appsv1.ReplicaSet, number int32) {
	if *rs.Spec.Replicas != number {
		rs.Spec.Replicas = ptr.To(number)
		k.write(storage.ReplicaSets, rs, "")
		// roll may write it again, which needs the new resource version.
		if found := k.Store.Get(keyOf(storage.ReplicaSets, rs)); found != nil {
			*rs = *storage.As[appsv1.ReplicaSet](found)
		}
	}
}

// clean deletes old ReplicaSets beyond the history limit.
func (k *Kube) clean(d *appsv1.Deployment, others []*appsv1.ReplicaSet) {
	var idle []*appsv1.ReplicaSet
	for _, rs := range others {
		if *rs.Spec.Replicas == 0 && rs.Status.Replicas == 0 {
			idle = append(idle, rs)
		}
	}
	for _, rs := range idle[:max(len(idle)-int(*d.Spec.RevisionHistoryLimit), 0)] {
		k.remove(storage.ReplicaSets, rs, true)
	}
}

// deploymentStatus writes the status of a Deployment.
func (k *Kube) deploymentStatus(d *appsv1.Deployment, newest *appsv1.ReplicaSet, sets []*appsv1.ReplicaSet) {
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
	for _, rs := range sets {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
	}
	if newest != nil {
		status.UpdatedReplicas = newest.Status.Replicas
	}
	status.UnavailableReplicas = max(*d.Spec.Replicas-status.AvailableReplicas, 0)
	status.Conditions = k.deploymentConditions(d, &status, newest)
	if !equality.Semantic.DeepEqual(d.Status, status) {
		d.Status = status
		k.write(storage.Deployments, d, "status")
	}
}
