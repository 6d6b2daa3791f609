package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/serving"
	"github.com/example/nginx-operator/pkg/untrusted"
)

// Limits of dry runs. Every Pod that reaches the webhook server can cause them.
const (
	// dryRuns bounds concurrent dry runs, each of some milliseconds.
	dryRuns = 8
	// waitForDryRun bounds the wait for a slot, and dryRunTimeout one dry run. Their sum is less
	// than the webhook's timeoutSeconds.
	waitForDryRun = 500 * time.Millisecond
	dryRunTimeout = 3 * time.Second
	// dryRunRate and dryRunBurst bound the dry runs of one address, per second and at once. With a
	// limit for all addresses, a stranger could disable the API server's dry runs.
	dryRunRate, dryRunBurst = 50, 600
	// dryRunAddresses is the number of addresses whose rate is known, each for dryRunKnown.
	dryRunAddresses, dryRunKnown = 1024, time.Minute
)

// unchecked is the warning that a Pod template was not validated, with the reason.
const unchecked = "spec: the API server did not check the Pod template, because %s. If the template is invalid, the condition " +
	"Ready reports it"

// dryRunName is the name of the Deployment in every dry run.
const dryRunName = "nginx-operator-admission-check"

// Render renders children for admission. It reads nothing from the cluster.
type Render interface {
	// PodTemplate returns the Pod template of an object, with its patches.
	PodTemplate(object *v1alpha2.NginxOperator) corev1.PodTemplateSpec
	// CheckPatches returns the errors and the warnings for the patches of an object.
	CheckPatches(object *v1alpha2.NginxOperator) (field.ErrorList, []string)
	// Refusals returns the values that are rejected unless the stored object has them.
	Refusals(object *v1alpha2.NginxOperator) []ratchet.Refusal
}

// dryRun asks the API server to validate Pod templates. A review does not prove that the API server
// sent it, so nothing in a review decides the namespace, the kind, or the name of a request.
type dryRun struct {
	client    client.Client
	render    func(object *v1alpha2.NginxOperator) corev1.PodTemplateSpec
	namespace string
	slots     *semaphore.Weighted
	rates     *untrusted.Rates
}

// The dry runs need a permission in the operator's namespace, which is not always a watched one.
//
// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,verbs=create

func newDryRun(c client.Client, render func(*v1alpha2.NginxOperator) corev1.PodTemplateSpec, namespace string) *dryRun {
	return &dryRun{
		client: c, render: render, namespace: namespace, slots: semaphore.NewWeighted(dryRuns),
		rates: untrusted.NewRates(dryRunRate, dryRunBurst, dryRunAddresses, dryRunKnown),
	}
}

// ask returns the errors that the API server's own validation finds in the Pod template of an
// object. Every other answer admits the object: its status reports the failure later. Without an
// answer, ask returns a warning.
func (d *dryRun) ask(ctx context.Context, object *v1alpha2.NginxOperator) (field.ErrorList, admission.Warnings) {
	if !d.rates.Allow(serving.AddressOf(ctx)) {
		return nil, admission.Warnings{fmt.Sprintf(unchecked, "the operator receives too many reviews from one address")}
	}

	template := d.render(object)
	serving.EndTurn(ctx)
	waiting, cancel := context.WithTimeout(ctx, waitForDryRun)
	defer cancel()
	if err := d.slots.Acquire(waiting, 1); err != nil {
		return nil, admission.Warnings{fmt.Sprintf(unchecked, "too many checks are in progress")}
	}

	defer d.slots.Release(1)

	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: dryRunName},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}

	ctx, cancel = context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	err := d.client.Create(ctx, deployment, client.DryRunAll, client.FieldOwner(wellknown.OperatorName))
	if err == nil {
		return nil, nil
	}

	log.FromContext(ctx).V(1).Info("A dry run failed", "reason", apierrors.ReasonForError(err))
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return nil, admission.Warnings{fmt.Sprintf(unchecked, "it did not answer")}
	}

	return validation.PodVerdict(err, &object.Spec, specPath), nil
}
