package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/examples/foo/api/v1"
)

// Reconciler tells Foos whether their friend exists. All fields are required.
type Reconciler struct {
	// Client reads Foos from the cache, with read-your-writes consistency, and writes their status.
	Client client.Client
	// Pods lists the metadata of Pods by podIndex.
	Pods client.Reader
	// Recorder sends the Events.
	Recorder events.EventRecorder
}

var _ reconcile.ObjectReconciler[*v1.Foo] = &Reconciler{}

// Reconcile looks for the friend of one Foo and writes the status if it differs, with one patch. The Event follows the
// patch that it speaks of.
func (r *Reconciler) Reconcile(ctx context.Context, foo *v1.Foo) (reconcile.Result, error) {
	friends, err := r.friends(ctx, foo.Spec.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	before, after := foo.Status, computeStatus(foo, friends)
	if before == after {
		return reconcile.Result{}, nil
	}
	patched := foo.DeepCopy()
	patched.Status = after
	if err := r.Client.Status().Patch(ctx, patched, client.MergeFrom(foo)); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return reconcile.Result{}, nil // the Foo is gone, and so is the question
		}
		return reconcile.Result{}, fmt.Errorf("failed to write status: %w", err)
	}
	log.FromContext(ctx).Info("Wrote status", "friend", foo.Spec.Name, "happy", after.Happy)
	if reason, message := told(before, after, foo.Spec.Name, friends); reason != "" {
		r.Recorder.Eventf(foo, nil, corev1.EventTypeNormal, reason, "Reconcile", "%s", message)
	}
	return reconcile.Result{}, nil
}

// friends returns the Pods of a name, of all namespaces, as namespace/name in the order of their names.
func (r *Reconciler) friends(ctx context.Context, name string) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.Pods.List(ctx, list, client.MatchingFields{podIndex: name}); err != nil {
		return nil, fmt.Errorf("failed to list Pods: %w", err)
	}
	out := make([]string, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, client.ObjectKeyFromObject(&list.Items[i]).String())
	}
	slices.Sort(out)
	return out, nil
}

// computeStatus returns what the status of a Foo has to be while these Pods have the name that it looks for.
func computeStatus(foo *v1.Foo, friends []string) v1.FooStatus {
	return v1.FooStatus{Happy: len(friends) > 0, ObservedGeneration: foo.Generation}
}

// told returns the Event that a change of the status is worth, "" for none: only a change of happiness is. A Foo that
// finds no friend at first was not happy before.
func told(before, after v1.FooStatus, name string, friends []string) (reason, message string) {
	switch {
	case before.Happy == after.Happy:
		return "", ""
	case after.Happy:
		return v1.ReasonFriendFound, "found " + strings.Join(friends[:min(len(friends), 3)], ", ")
	default:
		return v1.ReasonFriendLost, fmt.Sprintf("no Pod in the cluster is named %q", name)
	}
}
