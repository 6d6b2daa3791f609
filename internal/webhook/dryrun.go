package webhook

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
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

// Render makes children for admission.
type Render interface {
	// Child returns the child of a kind that an object gets, as far as its spec says it.
	Child(object *v1alpha2.NginxOperator, kind string) client.Object
	// CheckPatches returns what is wrong with the patches of an object, and what to warn of.
	CheckPatches(object *v1alpha2.NginxOperator) (field.ErrorList, []string)
}

// dryRun has the API server validate children that nobody stores.
type dryRun struct {
	client client.Client
	render func(object *v1alpha2.NginxOperator, kind string) client.Object
	slots  *semaphore.Weighted
}

// newDryRun returns dry runs with a client that reads nothing from the cache and keeps to itself what the API server warns of: the
// reconciler hears it again.
func newDryRun(mgr manager.Manager, render Render) (*dryRun, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	c, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	return &dryRun{client: c, render: render.Child, slots: semaphore.NewWeighted(dryRuns)}, err
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
		child := d.render(object, kind)
		if service, isService := child.(*corev1.Service); isService {
			d.leaveOut(ctx, service)
		}
		err := d.client.Create(ctx, child, client.DryRunAll, apply.FieldOwner)
		if err != nil {
			log.FromContext(ctx).V(1).Info("A dry run failed", "kind", kind, "reason", apierrors.ReasonForError(err))
		}
		errs = append(errs, validation.Verdict(err, &object.Spec, specPath)...)
		errs = append(errs, validation.PatchVerdict(err, &object.Spec, kind, specPath)...)
	}
	return errs
}

// leaveOut takes from a Service the ports of the nodes that its stored form has: to another Service they are taken.
func (d *dryRun) leaveOut(ctx context.Context, service *corev1.Service) {
	asks := func(port corev1.ServicePort) bool { return port.NodePort != 0 }
	if !slices.ContainsFunc(service.Spec.Ports, asks) {
		return
	}
	stored := &corev1.Service{}
	if err := d.client.Get(ctx, client.ObjectKeyFromObject(service), stored); err != nil {
		return // there is none, or the dry run meets the same error
	}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		if slices.ContainsFunc(stored.Spec.Ports, func(other corev1.ServicePort) bool { return other.NodePort == port.NodePort }) {
			port.NodePort = 0
		}
	}
}
