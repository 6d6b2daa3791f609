package webhook

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/validation"
)

// What dry runs may take. Whoever can write an object, or reach the webhook server, causes them.
const (
	// dryRuns bounds how many are under way. One takes some milliseconds.
	dryRuns = 8
	// waitForDryRun bounds the wait for others, and dryRunTimeout one of them: together less than the timeoutSeconds of the webhook.
	waitForDryRun = 500 * time.Millisecond
	dryRunTimeout = 3 * time.Second
)

// Render returns the child of a kind that an object gets, as far as its spec says it.
type Render func(object *v1alpha2.NginxOperator, kind string) client.Object

// dryRun has the API server validate children that nobody stores.
type dryRun struct {
	client client.Client
	render Render
	slots  *semaphore.Weighted
}

// newDryRun returns dry runs with a client that reads nothing from the cache and keeps to itself what the API server warns of: the
// reconciler hears it again.
func newDryRun(mgr manager.Manager, render Render) (*dryRun, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	c, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	return &dryRun{client: c, render: render, slots: semaphore.NewWeighted(dryRuns)}, err
}

// ask returns what the API server finds wrong with the children of an object that are of these kinds. Whatever else keeps it from an
// answer is none: the object is admitted, and its status tells.
func (d *dryRun) ask(ctx context.Context, object *v1alpha2.NginxOperator, kinds ...string) field.ErrorList {
	waiting, cancel := context.WithTimeout(ctx, waitForDryRun)
	defer cancel()
	if err := d.slots.Acquire(waiting, 1); err != nil {
		return nil
	}
	defer d.slots.Release(1)
	ctx, cancel = context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	var errs field.ErrorList
	for _, kind := range kinds {
		// A name that is taken is told of after all that is wrong, so it needs no other than that of the object.
		err := d.client.Create(ctx, d.render(object, kind), client.DryRunAll, apply.FieldOwner)
		if err != nil {
			log.FromContext(ctx).V(1).Info("A dry run failed", "kind", kind, "reason", apierrors.ReasonForError(err))
		}
		errs = append(errs, validation.Verdict(err, specPath)...)
	}
	return errs
}
