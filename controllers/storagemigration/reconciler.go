package storagemigration

import (
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	// pollInterval is how often the control plane's migration is looked at.
	pollInterval = time.Second
	// conditionRetry is how soon a condition that could not be written is tried again.
	conditionRetry = 5 * time.Second
)

// Condition is how OLM is told whether the operator may be replaced.
type Condition interface {
	Set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error
}

// Metrics show how a migration goes.
type Metrics interface {
	Running(bool)
	Unmigrated(objects int)
	Finished(succeeded bool)
}

// Reconciler migrates. Its one request names the CRD of the API.
type Reconciler struct {
	// Client reads from the API server itself.
	Client client.Client
	// Discovery tells which APIs there are now.
	Discovery discovery.ServerResourcesInterface
	// Target is the kind of the objects, in the version that this release wants to be stored.
	Target schema.GroupVersionKind
	// Manifest is the StorageVersionMigration that the release carries; nil where objects are always rewritten by the operator.
	Manifest  *unstructured.Unstructured
	Recorder  events.EventRecorder
	Condition Condition
	Metrics   Metrics

	progress
}

// progress is what spares requests and repeated reports. A leader that begins without it does the same, with a few more.
type progress struct {
	// settled: there is nothing to do, as was seen once, so only the CRD has to be looked at.
	settled bool
	// generation is that of the CRD, which it has since then.
	generation string
	since      time.Time
	// began is when it was first seen that there is something to migrate.
	began time.Time
	// left are the objects that were refused under this generation, when all others had been rewritten; problem says so.
	left    []refused
	problem string
	// heard is what the control plane said last about the migration that it runs.
	heard string
	// nudges is when it may be asked to look at it again, woken where in the list of objects that has got to.
	nudges nudges
	woken  string
}

// Reconcile makes one step.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	next := decide(s, time.Now())
	log.FromContext(ctx).V(1).Info("Looked at the storage", "next", next, "storedVersions", s.crd.Status.StoredVersions)
	// OLM is held off before anything begins. That this fails must not keep the migration from going on.
	report := r.report(ctx, s, next)
	again, err := r.act(ctx, s, next)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, report)
	}
	if report != nil {
		log.FromContext(ctx).Info("Trying again to tell OLM", "reason", report.Error())
		if again == 0 {
			again = conditionRetry
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// observe reads the CRD and, where it matters, the migration. It returns nil where there is no CRD.
func (r *Reconciler) observe(ctx context.Context, name string) (*situation, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now := string(crd.UID) + "/" + generationOf(crd); now != r.generation {
		r.generation, r.since, r.left = now, time.Now(), nil
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
	err = r.Client.Get(ctx, client.ObjectKey{Name: wellknown.CRDName}, object)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read the %s: %w", manifestKind, err)
	}
	s.migration, err = newMigration(object)
	return s, err
}

// act does what was decided, and returns when to look again, 0 for when the CRD changes.
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

// restore makes the CRD say again that other versions may be stored.
func (r *Reconciler) restore(ctx context.Context, s *situation) error {
	versions := []string{s.target}
	for i := range s.crd.Spec.Versions {
		if name := s.crd.Spec.Versions[i].Name; name != s.target {
			versions = append(versions, name)
		}
	}
	log.FromContext(ctx).Info("Taking back what was pruned from status.storedVersions before everything was migrated",
		"storedVersions", versions)
	return r.setStoredVersions(ctx, s.crd, versions)
}

func (r *Reconciler) rewrite(ctx context.Context, s *situation) error {
	rewriter := &rewriter{client: r.Client, kind: r.Target}
	from := rewriter.all
	if len(r.left) > 0 {
		from = only(r.left)
	}
	log.FromContext(ctx).Info("Rewriting the stored objects", "because", whyRewrite(s), "leftFromBefore", len(r.left))
	total, failed, err := rewriter.rewrite(ctx, from)
	if err != nil {
		return r.failed(ctx, s, err)
	}
	before := r.left
	r.left = failed
	r.Metrics.Unmigrated(len(failed))
	if len(failed) > 0 {
		r.nameRefused(ctx, failed, before)
		return r.failed(ctx, s, describe(failed))
	}
	log.FromContext(ctx).Info("Rewrote the stored objects", "objects", total)
	// In this order: who is killed in between starts again, and does not take the failed migration for one that pruned.
	if err := r.remove(ctx, s); err != nil {
		return err
	}
	return r.prune(ctx, s)
}

func whyRewrite(s *situation) string {
	switch {
	case s.migration == nil:
		return "the cluster has no migrator"
	case s.migration.is(conditionFailed):
		return "the control plane's migrator failed: " + s.migration.message(conditionFailed)
	}
	return "nobody works on the " + manifestKind
}

// prune makes the CRD promise that all objects are stored in the target version. That is true if the CRD is
// still the one under which they were written.
func (r *Reconciler) prune(ctx context.Context, s *situation) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now := &apiextensionsv1.CustomResourceDefinition{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(s.crd), now); err != nil {
			return fmt.Errorf("failed to read the CRD: %w", err)
		}
		if now.UID != s.crd.UID || now.Generation != s.crd.Generation {
			log.FromContext(ctx).Info("The CRD changed during the migration, which begins anew")
			return nil
		}
		return r.setStoredVersions(ctx, now, []string{s.target})
	})
}

// setStoredVersions fails with a conflict where the CRD is not as it was read.
func (r *Reconciler) setStoredVersions(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, versions []string) error {
	crd.Status.StoredVersions = versions
	if err := r.Client.Status().Update(ctx, crd); err != nil {
		return fmt.Errorf("failed to write status.storedVersions of the CRD: %w", err)
	}
	return nil
}
