package storagemigration

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// This file speaks with the control plane's migrator.

// nudgeInterval is when the migrator is asked for the second time to go on. By itself it waits, after a webhook was away for seconds, or
// while its own cache is behind, up to 17 minutes. Each time it gets twice as long as before: a migration that ends after a nudge is in
// conflict with it and starts again, for ever where it takes longer than the interval.
const nudgeInterval = 5 * time.Second

// nudges is when a migration may be nudged.
type nudges struct {
	// of is the UID of the StorageVersionMigration.
	of   types.UID
	next time.Time
	// pause is the time from the last nudge to the next.
	pause time.Duration
}

// due reports whether a migration is to be nudged now.
func (n *nudges) due(of types.UID, now time.Time) bool {
	if n.of != of {
		*n = nudges{of: of}
	}
	return !now.Before(n.next)
}

// done notes that a migration was nudged.
func (n *nudges) done(now time.Time) {
	n.pause = max(2*n.pause, nudgeInterval)
	n.next = now.Add(n.pause)
}

// nudgeAnnotation is on the StorageVersionMigration; a change of it makes the migrator look at once.
const nudgeAnnotation = "operator.example.com/nudged-at"

// api returns the API of StorageVersionMigrations that the cluster has, nil where it has none that can be used.
func (r *Reconciler) api() (*schema.GroupVersionKind, error) {
	if r.Manifest == nil {
		return nil, nil
	}
	for _, api := range apis {
		resources, err := r.Discovery.ServerResourcesForGroupVersion(api.GroupVersion().String())
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("failed to look for the API of storage migrations: %w", err)
		}
		if err == nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == api.Kind }) {
			return &api, nil
		}
	}
	return nil, nil
}

func (r *Reconciler) create(ctx context.Context, s *situation) error {
	object, err := forCRD(r.Manifest, *s.migrator, s.crd)
	if err != nil {
		return fmt.Errorf("failed to make the %s: %w", manifestKind, err)
	}
	// A leader before this one may have been faster.
	if err := r.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("failed to create the %s: %w", manifestKind, err)
	}
	log.FromContext(ctx).Info("Asked the control plane to migrate the stored objects", "api", s.migrator.GroupVersion().String())
	return nil
}

// nudge makes the control plane look at a migration that runs. While it works on it, it looks once more when it is done.
func (r *Reconciler) nudge(ctx context.Context, m *migration) error {
	over := m.is(conditionSucceeded) || m.is(conditionFailed)
	now := time.Now()
	if !m.is(conditionRunning) || over || m.object.GroupVersionKind().Group == kubeMigratorGroup || !r.nudges.due(m.object.GetUID(), now) {
		return nil
	}
	// The migrator first notes the newest change of an object; only one that comes after that wakes it.
	since, _, _ := unstructured.NestedString(m.object.Object, "status", "resourceVersion")
	if since == "" && now.Sub(m.object.GetCreationTimestamp().Time) < nudgeInterval {
		return nil
	}
	r.nudges.done(now)
	if since != "" {
		r.wake(ctx)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, nudgeAnnotation, now.UTC().Format(time.RFC3339))
	if err := r.Client.Patch(ctx, m.object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("failed to have the control plane look at the %s: %w", manifestKind, err)
	}
	return nil
}

// wake rewrites one object. The migrator begins when its cache has a change of an object that is newer than the migration;
// where nobody writes any, it would wait up to a minute for a bookmark. Where this fails, that is what happens.
func (r *Reconciler) wake(ctx context.Context) {
	rewriter := &rewriter{client: r.Client, kind: r.Target}
	page, err := rewriter.page(ctx, metav1.ListOptions{Limit: 1, Continue: r.woken})
	r.woken = page.Continue
	if err == nil && len(page.Items) > 0 {
		err = rewriter.one(ctx, &page.Items[0])
	}
	if err != nil {
		log.FromContext(ctx).V(1).Info("No object could be written to wake the control plane", "why", err.Error())
	}
}

// remove deletes the StorageVersionMigration, if it is still the one that was looked at.
func (r *Reconciler) remove(ctx context.Context, s *situation) error {
	if s.migration == nil {
		return nil
	}
	uid := s.migration.object.GetUID()
	err := r.Client.Delete(ctx, s.migration.object, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("failed to delete the %s: %w", manifestKind, err)
	}
	return nil
}

// listen passes on to the log what the control plane says about the migration that it runs: how far it is, and what it meets.
func (r *Reconciler) listen(ctx context.Context, m *migration) {
	if said := m.message(conditionRunning); said != r.heard {
		r.heard = said
		log.FromContext(ctx).Info("The control plane migrates", "says", said)
	}
}
