package kube

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
)

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

// active returns the ReplicaSets that want Pods.
func active(sets ...*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return slices.DeleteFunc(slices.Clone(sets), func(rs *appsv1.ReplicaSet) bool { return rs == nil || *rs.Spec.Replicas == 0 })
}

func wanted(sets ...*appsv1.ReplicaSet) (out int32) {
	for _, rs := range active(sets...) {
		out += *rs.Spec.Replicas
	}
	return out
}

func available(sets ...*appsv1.ReplicaSet) (out int32) {
	for _, rs := range sets {
		if rs != nil {
			out += rs.Status.AvailableReplicas
		}
	}
	return out
}

// mostReplicas returns the replicas of the newest ReplicaSet that the surge allows.
func mostReplicas(d *appsv1.Deployment, newest *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) int32 {
	surge, _ := boundsOf(d)
	now, current := wanted(all...), *newest.Spec.Replicas
	if most := *d.Spec.Replicas + surge; now < most {
		return current + min(most-now, *d.Spec.Replicas-current)
	}
	return current
}

// scaleNewest scales the newest ReplicaSet in a rollout, and reports whether it did.
func (k *Kube) scaleNewest(d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) bool {
	number := *d.Spec.Replicas
	if *newest.Spec.Replicas < number {
		number = mostReplicas(d, newest, append(slices.Clone(old), newest))
	}
	return k.scaleTo(d, newest, number, false)
}

// scaleOld scales the old ReplicaSets down in a rollout, Pods that are not available first, and
// reports whether it did.
func (k *Kube) scaleOld(d *appsv1.Deployment, newest *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) bool {
	old := active(all...)
	_, unavailable := boundsOf(d)
	least := *d.Spec.Replicas - unavailable
	spare := wanted(old...) + *newest.Spec.Replicas - least - (*newest.Spec.Replicas - newest.Status.AvailableReplicas)
	if len(old) == 0 || spare <= 0 {
		return false
	}
	scaled := false
	for _, rs := range old {
		if sick := min(spare, *rs.Spec.Replicas-rs.Status.AvailableReplicas); sick > 0 {
			scaled = k.scaleTo(d, rs, *rs.Spec.Replicas-sick, false) || scaled
			spare -= sick
		}
	}
	excess := available(append(slices.Clone(old), newest)...) - least
	for _, rs := range old {
		if count := min(excess, *rs.Spec.Replicas); count > 0 {
			scaled = k.scaleTo(d, rs, *rs.Spec.Replicas-count, false) || scaled
			excess -= count
		}
	}
	return scaled
}

// scaleAll follows a change of the replicas outside of a rollout: it scales the only active
// ReplicaSet, or all of them in proportion.
func (k *Kube) scaleAll(d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	sets := active(append(slices.Clone(old), newest)...)
	switch {
	case len(sets) == 1:
		k.scaleTo(d, sets[0], *d.Spec.Replicas, false)
		return
	case len(sets) == 0:
		if latest := cmp.Or(newest, last(old)); latest != nil {
			k.scaleTo(d, latest, *d.Spec.Replicas, false)
		}
		return
	case isSaturated(d, newest):
		for _, rs := range active(old...) {
			k.scaleTo(d, rs, 0, false)
		}
		return
	}

	surge, _ := boundsOf(d)
	allowed := int32(0)
	if *d.Spec.Replicas > 0 {
		allowed = *d.Spec.Replicas + surge
	}
	missing, added := allowed-wanted(sets...), int32(0)
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		older := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		if missing > 0 {
			older = -older
		}
		return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), older)
	})
	sizes := make([]int32, len(sets))
	for i, rs := range sets {
		share := fraction(d, rs)
		if missing > 0 {
			share = min(share, missing-added)
		} else {
			share = max(share, missing-added)
		}
		sizes[i] = *rs.Spec.Replicas + share
		added += share
	}
	sizes[0] = max(sizes[0]+missing-added, 0)
	for i, rs := range sets {
		k.scaleTo(d, rs, sizes[i], true)
	}
}

// fraction returns the change of a ReplicaSet in proportion to the change of its Deployment.
func fraction(d *appsv1.Deployment, rs *appsv1.ReplicaSet) int32 {
	if *d.Spec.Replicas == 0 {
		return -*rs.Spec.Replicas
	}
	surge, _ := boundsOf(d)
	before, err := strconv.ParseFloat(rs.Annotations[annotationMost], 64)
	if err != nil || before == 0 {
		before = float64(d.Status.Replicas)
	}
	size := float64(*rs.Spec.Replicas) * float64(*d.Spec.Replicas+surge) / before
	return int32(math.Round(size)) - *rs.Spec.Replicas
}

func isSaturated(d *appsv1.Deployment, rs *appsv1.ReplicaSet) bool {
	return rs != nil && rs.Annotations[annotationDesired] == text(*d.Spec.Replicas) && *rs.Spec.Replicas == *d.Spec.Replicas &&
		rs.Status.AvailableReplicas == *d.Spec.Replicas
}

func last(sets []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	if len(sets) == 0 {
		return nil
	}
	return sets[len(sets)-1]
}

// scaleTo scales a ReplicaSet, and reports whether its replicas changed. With all, it also writes
// annotations alone.
func (k *Kube) scaleTo(d *appsv1.Deployment, rs *appsv1.ReplicaSet, number int32, all bool) bool {
	desired, most := annotated(d)
	isSame := *rs.Spec.Replicas == number
	if isSame && (!all || rs.Annotations[annotationDesired] == desired && rs.Annotations[annotationMost] == most) {
		return false
	}
	rs.Spec.Replicas = ptr.To(number)
	rs.Annotations[annotationDesired], rs.Annotations[annotationMost] = desired, most
	k.write(storage.ReplicaSets, rs, "")
	k.refresh(rs)
	return !isSame
}
