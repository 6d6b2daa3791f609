// Package kube models the controllers and kubelets of a cluster on the storage of the simulation:
// Deployments, ReplicaSets, Pods, HorizontalPodAutoscalers, EndpointSlices, and garbage collection.
// It works only when Tick is called, in a fixed order.
package kube

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// startTime is the time until a container is ready. endTime is the time until it has ended.
const (
	startTime = 2 * time.Second
	endTime   = 6 * time.Second
)

// Faults are failures of the cluster. The zero value has none.
type Faults struct {
	// Unpullable has the images that no kubelet can pull, with the reason.
	Unpullable map[string]string
	// Crashes reports whether nginx crashes in a Pod.
	Crashes func(*corev1.Pod) bool
	// Unschedulable is true if no node accepts new Pods.
	Unschedulable bool
	// StartError is the reason and the message with which the kubelet fails to start containers.
	StartError corev1.ContainerStateWaiting
	// Exits returns the error message with which nginx exits when it starts in a Pod, or "".
	Exits func(*corev1.Pod) string
	// NoReplicaSet returns the error with which the API server refuses new ReplicaSets of a
	// Deployment, or "".
	NoReplicaSet func(*appsv1.Deployment) string
}

// Kube is the controllers and kubelets of a cluster.
type Kube struct {
	Store  *storage.Store
	Faults Faults

	seen int64
	next time.Time
	pods int
	// wait is the earliest time at which something happens without a write.
	wait time.Time
}

// New returns a cluster on a storage.
func New(store *storage.Store) *Kube { return &Kube{Store: store} }

// Changed makes the next Tick process all objects. Call it after a change of the faults.
func (k *Kube) Changed() { k.seen = 0 }

// Next returns the time at which Tick must be called even if nothing is written, or zero.
func (k *Kube) Next() time.Time {
	if k.next.IsZero() {
		return k.next
	}
	return k.next.Add(-k.Store.Skew)
}

// Tick runs each controller once, and reports whether one of them wrote.
func (k *Kube) Tick() bool {
	now := k.Store.Now()
	if k.Store.Revision() == k.seen && (k.next.IsZero() || now.Before(k.next)) {
		return false
	}
	before := k.Store.Revision()
	k.wait = time.Time{}
	k.Store.GarbageCollect()
	each(k, storage.Autoscalers, k.scale)
	each(k, storage.Deployments, k.deployment)
	each(k, storage.ReplicaSets, k.replicaSet)
	each(k, storage.Pods, k.pod)
	each(k, storage.Services, k.endpoints)
	k.seen, k.next = k.Store.Revision(), k.wait
	if k.seen != before {
		k.seen = 0 // another controller may have to process the changes
		return true
	}
	return false
}

// each calls work for each object of a kind that existed at the start.
func each[T any, P storage.Typed[T]](k *Kube, of *storage.Resource, work func(P)) {
	for _, found := range k.Store.List(of, "") {
		work(storage.As[T, P](found))
	}
}

// after makes Tick run again at a time.
func (k *Kube) after(at time.Time) {
	if k.wait.IsZero() || at.Before(k.wait) {
		k.wait = at
	}
}

// controlled returns the objects of a kind that an object controls.
func controlled[T any, P storage.Typed[T]](k *Kube, of *storage.Resource, owner client.Object) []P {
	var out []P
	for _, found := range k.Store.List(of, owner.GetNamespace()) {
		if metav1.IsControlledBy(found.Meta(), owner) {
			out = append(out, storage.As[T, P](found))
		}
	}
	return out
}

func keyOf(of *storage.Resource, object client.Object) storage.Key {
	return storage.Key{Resource: of, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// write stores a changed object or its subresource.
func (k *Kube) write(of *storage.Resource, object client.Object, subresource string) {
	_, err := k.Store.Update(keyOf(of, object), storage.ToMap(object), subresource)
	if err != nil && !apierrors.IsNotFound(err) {
		panic(err) // the controllers of the model read and write in one step
	}
}

// refresh replaces an object by its stored form, with the new resource version.
func (k *Kube) refresh(object client.Object) {
	switch object := object.(type) {
	case *appsv1.ReplicaSet:
		if found := k.Store.Get(keyOf(storage.ReplicaSets, object)); found != nil {
			*object = *storage.As[appsv1.ReplicaSet](found)
		}
	case *appsv1.Deployment:
		if found := k.Store.Get(keyOf(storage.Deployments, object)); found != nil {
			*object = *storage.As[appsv1.Deployment](found)
		}
	}
}

func (k *Kube) create(of *storage.Resource, object client.Object) {
	if _, err := k.Store.Create(keyOf(of, object), storage.ToMap(object)); err != nil && !apierrors.IsAlreadyExists(err) {
		panic(err)
	}
}

func (k *Kube) remove(of *storage.Resource, object client.Object, now bool) {
	if _, err := k.Store.Delete(keyOf(of, object), storage.DeleteOptions{Now: now}); err != nil && !apierrors.IsNotFound(err) {
		panic(err)
	}
}

func at(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
