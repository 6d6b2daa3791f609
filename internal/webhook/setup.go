// Package webhook has the admission of NginxOperators: defaulting, validation, and the protection
// of v1alpha2 fields in writes at v1alpha1.
package webhook

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/pkg/review"
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

// handlers returns the handler of each path.
func handlers(scheme *runtime.Scheme, validator Validator) map[string]admission.Handler {
	return map[string]admission.Handler{
		PathV1alpha1: admission.HandlerFunc(keepAnnotation),
		PathDefault:  bounded(admission.HandlerFunc(setDefaults)),
		PathValidate: fromV1alpha1(bounded(admission.WithValidator(scheme, validator).Handler)),
	}
}
