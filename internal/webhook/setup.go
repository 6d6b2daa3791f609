// Package webhook has the admission of NginxOperators: defaulting, validation, and the protection
// of v1alpha2 fields in writes at v1alpha1.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/review"
	"github.com/example/nginx-operator/pkg/serving"
	"github.com/example/nginx-operator/pkg/untrusted"
)

// Paths of the webhook server for defaulting and validation.
const (
	PathDefault  = "/mutate-operator-example-com-v1alpha2-nginxoperator"
	PathValidate = "/validate-operator-example-com-v1alpha2-nginxoperator"
)

// The selector matches our own CRD only.
//
// +kubebuilder:webhook:path=/mutate-apiextensions-k8s-io-v1-customresourcedefinition,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=2,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=create;update,versions=v1,name=conversion.nginxoperators.operator.example.com,admissionReviewVersions=v1,serviceName=webhook-service,serviceNamespace=system,patch=`{"objectSelector":{"matchLabels":{"app.kubernetes.io/name":"nginx-operator"}}}`

// PathCRD is the path of the webhook for the CRD of the API (guard.Admission).
const PathCRD = "/mutate-apiextensions-k8s-io-v1-customresourcedefinition"

// Setup adds the webhooks to a server. The client is for dry runs in the operator's own namespace.
// watches reports whether the operator manages the objects of a namespace.
func Setup(server webhook.Server, c client.Client, render Render, namespace string, watches func(string) bool) {
	verdict := newDryRun(c, render.PodTemplate, namespace)
	validator := Validator{Verdict: verdict.ask, Patches: render.CheckPatches, Refusals: render.Refusals, Watches: watches}
	for path, handler := range handlers(c.Scheme(), validator) {
		server.Register(path, review.Handler(handler))
	}
}

func handlers(scheme *runtime.Scheme, validator Validator) map[string]admission.Handler {
	return map[string]admission.Handler{
		PathV1alpha1: admission.HandlerFunc(keepAnnotation),
		PathDefault:  bounded(admission.HandlerFunc(setDefaults)),
		PathValidate: fromV1alpha1(bounded(admission.WithValidator(scheme, validator).Handler)),
	}
}

// bounded rejects an object that exceeds the bounds of decoding. It omits such a stored object, so
// that a write that restores it is validated alone.
func bounded(next admission.Handler) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		if err := within(request.Object.Raw); err != nil {
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
			}

			response := admission.Denied("")
			response.Result = ptr.To(status.Status())
			return response
		}
		if len(request.OldObject.Raw) > 0 && within(request.OldObject.Raw) != nil {
			request.Operation, request.OldObject = admissionv1.Create, runtime.RawExtension{}
		}
		return next.Handle(ctx, request)
	}
}

func within(raw []byte) error {
	object, err := bounds.Read(raw)
	if err != nil {
		return err
	}

	spec, _ := object["spec"].(map[string]any)
	if errs := codec.Quantities(spec, field.NewPath("spec")); len(errs) > 0 {
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		return apierrors.NewInvalid(v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind(), name, errs)
	}

	_, err = codec.DecodeText(raw)
	return err
}

// fromV1alpha1 lets a v1alpha2 handler answer for writes at v1alpha1. The API server would convert
// them too (matchPolicy Equivalent), with another request to the conversion webhook for each write.
func fromV1alpha1(next admission.Handler) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		if request.Kind.Version == v1alpha1.GroupVersion.Version {
			for _, object := range []*runtime.RawExtension{&request.Object, &request.OldObject} {
				raw, err := upgrade(object.Raw)
				if err != nil {
					return admission.Errored(http.StatusBadRequest, err)
				}
				object.Raw = raw
			}
			request.Kind.Version = v1alpha2.GroupVersion.Version
		}
		return next.Handle(ctx, request)
	}
}

// upgrade converts a v1alpha1 object. When an object is created, the old one is empty.
func upgrade(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := bounds.JSON(raw); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}

	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}

	conversion.ToV1alpha2(object)
	return object.MarshalJSON()
}

// Limits of dry runs. Every Pod that reaches the webhook server can cause them.
const (
	// dryRuns bounds concurrent dry runs, each of some milliseconds.
	dryRuns = 8
	// waitForDryRun and dryRunTimeout together are less than the webhook's timeoutSeconds.
	waitForDryRun = 500 * time.Millisecond
	dryRunTimeout = 3 * time.Second
	// dryRunRate and dryRunBurst bound the dry runs of one address, per second and at once. With a
	// limit for all addresses, a stranger could disable the API server's dry runs.
	dryRunRate, dryRunBurst = 50, 600
	// dryRunAddresses is the number of addresses whose rate is known, each for dryRunKnown.
	dryRunAddresses, dryRunKnown = 1024, time.Minute
)

const unchecked = "spec: the API server did not check the Pod template, because %s. If the template is invalid, the condition " +
	"Ready reports it"

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
