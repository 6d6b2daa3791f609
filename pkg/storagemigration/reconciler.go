// Package storagemigration migrates stored objects to the storage version of the CRD after an
// upgrade has changed it. The elected leader uses the cluster's migrator (StorageVersionMigration,
// KEP-4192), or rewrites the objects itself. The migration is complete when status.storedVersions of
// the CRD lists the storage version only. It is not pruned while an object is stored in another one.
//
// Each reconcile evaluates the CRD and the StorageVersionMigration in the cluster, so another leader
// can continue at any point. For the reasons, see docs/adr/0015-storage-migration.md.
package storagemigration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// pollInterval is the interval of checks of the control plane's migration.
	pollInterval = time.Second
	// conditionRetry is the time until the next attempt to write a condition.
	conditionRetry = 5 * time.Second
)

// Condition tells OLM whether it may replace the operator.
type Condition interface {
	Set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error
}

// Metrics show the progress of a migration.
type Metrics interface {
	Running(bool)
	Unmigrated(objects int)
	Finished(succeeded bool)
}

// Reconciler migrates the stored objects. Each request has the name of the API's CRD.
type Reconciler struct {
	// Client reads from the API server, without a cache.
	Client client.Client
	// Discovery returns the APIs that the cluster serves.
	Discovery discovery.ServerResourcesInterface
	// Target is the kind of the objects, in the storage version of this release.
	Target schema.GroupVersionKind
	// Manifest is that of this release, or nil if the operator always rewrites the objects.
	Manifest *unstructured.Unstructured
	// Namespaces are the namespaces in which the operator may read and write the objects, or empty
	// for all namespaces. ClusterRole is the operator's role, for the error if that is too few.
	Namespaces  []string
	ClusterRole string
	Recorder    events.EventRecorder
	Condition   Condition
	Metrics     Metrics

	progress
}

// progress avoids requests and repeated reports. A new leader starts without it.
type progress struct {
	// settled is true if all objects are stored in the target version, so only the CRD is read.
	settled bool
	// generation is the UID and generation of the CRD. since is when this process first saw them.
	generation string
	since      time.Time
	// began is when this process first saw that there is something to migrate.
	began time.Time
	// ownRewrite is the operator's own rewrite for this generation. problem is the last reported
	// failure, and heard the last message of the control plane about its running migration.
	ownRewrite     rewriteProgress
	problem, heard string
	// nudges limits how often the control plane is nudged. The next nudge rewrites the object at
	// the continue token woken. wokenIn counts the lists, one for each namespace.
	nudges  nudges
	woken   string
	wokenIn int
}

// Reconcile executes one step of the migration.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}

	next := decide(s, time.Now())
	log.FromContext(ctx).V(1).Info("Evaluated the storage migration", "next", next, "storedVersions", s.crd.Status.StoredVersions)

	// Set the condition first, so that OLM does not replace the operator during the step. The
	// migration continues even if the condition cannot be written.
	report := r.report(ctx, s, next)
	requeueAfter, err := r.act(ctx, s, next)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, report)
	}
	if report != nil {
		log.FromContext(ctx).Info("Failed to set the OperatorCondition, retrying", "error", report.Error())
		requeueAfter = cmp.Or(requeueAfter, conditionRetry)
	}

	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}

// observe reads the CRD, or returns nil if it is gone, and the StorageVersionMigration if needed.
func (r *Reconciler) observe(ctx context.Context, name string) (*situation, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if generation := string(crd.UID) + "/" + generationOf(crd); generation != r.generation {
		r.generation, r.since, r.ownRewrite = generation, time.Now(), rewriteProgress{}
	}

	s := &situation{crd: crd, settledFor: time.Since(r.since), target: r.Target.Version, unverified: !r.began.IsZero()}
	if storedVersion(crd) != s.target || r.settled && s.pruned() {
		return s, nil
	}

	var err error
	if s.migrator, err = r.api(); err != nil || s.migrator == nil {
		return s, err
	}

	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(*s.migrator)
	err = r.Client.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read the %s: %w", manifestKind, err)
	}

	s.migration, err = newMigration(object)
	return s, err
}

func (r *Reconciler) act(ctx context.Context, s *situation, next action) (time.Duration, error) {
	const atOnce = time.Millisecond
	switch next {
	case actSettle:
		return settleTime - s.settledFor, nil
	case actWait:
		r.listen(ctx, s.migration)
		return pollInterval, r.nudge(ctx, s.migration)
	case actCreate:
		return pollInterval, r.create(ctx, s)
	case actDelete:
		return atOnce, r.remove(ctx, s)
	case actRestore:
		return atOnce, r.restore(ctx, s)
	case actRewrite:
		return atOnce, r.rewrite(ctx, s)
	case actPrune:
		return atOnce, r.prune(ctx, s)
	}

	return 0, nil
}

func (r *Reconciler) restore(ctx context.Context, s *situation) error {
	versions := []string{s.target}
	for i := range s.crd.Spec.Versions {
		if name := s.crd.Spec.Versions[i].Name; name != s.target {
			versions = append(versions, name)
		}
	}

	log.FromContext(ctx).Info("Restoring status.storedVersions, which was pruned before all objects were migrated",
		"storedVersions", versions)
	return r.setStoredVersions(ctx, s.crd, versions)
}

func (r *Reconciler) rewrite(ctx context.Context, s *situation) error {
	rewriter := &rewriter{client: r.Client, kind: r.Target}
	log.FromContext(ctx).Info("Rewriting the stored objects", "reason", whyRewrite(s),
		"alreadyRewritten", r.ownRewrite.rewritten, "failedBefore", len(r.ownRewrite.failed))
	if err := rewriter.rewrite(ctx, &r.ownRewrite); err != nil {
		return r.failed(ctx, s, r.withRemedy(err))
	}

	failed, reported := r.ownRewrite.failed, r.ownRewrite.reported
	r.ownRewrite.reported = failed
	r.Metrics.Unmigrated(len(failed))
	if len(failed) > 0 {
		r.nameRefused(ctx, failed, reported)
		return r.failed(ctx, s, describe(failed))
	}

	log.FromContext(ctx).Info("Rewrote the stored objects", "objects", r.ownRewrite.rewritten)

	// Delete the StorageVersionMigration before pruning. If the process ends in between, a failed
	// StorageVersionMigration would look as if it had pruned the versions.
	if err := r.remove(ctx, s); err != nil {
		return err
	}

	return r.prune(ctx, s)
}

// withRemedy adds the remedy to the error of an operator that may not list all objects.
func (r *Reconciler) withRemedy(err error) error {
	if len(r.Namespaces) == 0 || !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w. The operator rewrites the objects of all namespaces, not only of the watched namespaces: "+
		"until the migration has succeeded, bind ClusterRole %s to its ServiceAccount with a ClusterRoleBinding", err, r.ClusterRole)
}

func whyRewrite(s *situation) string {
	switch {
	case s.migration == nil:
		return "the cluster has no storage version migrator"
	case s.migration.is(conditionFailed):
		return "the control plane's migrator failed: " + s.migration.message(conditionFailed)
	}
	return "no controller processes the " + manifestKind
}

// prune changes nothing if the CRD is not the one for which the objects were rewritten.
func (r *Reconciler) prune(ctx context.Context, s *situation) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(s.crd), crd); err != nil {
			return fmt.Errorf("failed to read the CRD: %w", err)
		}
		if crd.UID != s.crd.UID || crd.Generation != s.crd.Generation {
			log.FromContext(ctx).Info("The CRD changed during the migration, restarting the migration")
			return nil
		}

		return r.setStoredVersions(ctx, crd, []string{s.target})
	})
}

// setStoredVersions writes status.storedVersions, unless the CRD has changed since it was read.
func (r *Reconciler) setStoredVersions(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, versions []string) error {
	crd.Status.StoredVersions = versions
	if err := r.Client.Status().Update(ctx, crd); err != nil {
		return fmt.Errorf("failed to write status.storedVersions of the CRD: %w", err)
	}
	return nil
}

// firstRetry and lastRetry bound the back-off of a failed reconcile.
const firstRetry, lastRetry = time.Second, time.Minute

// SetupWithManager adds the controller to the manager. The manager's cache must contain no other
// CRD than the CRD of the API.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("storagemigration").
		For(&apiextensionsv1.CustomResourceDefinition{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}
