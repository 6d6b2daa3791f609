// Package webhook is admission: what a write of a NginxOperator goes through before it is stored.
package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Where the webhook server answers for defaults and for validation.
const (
	PathDefault  = "/mutate-operator-example-com-v1alpha2-nginxoperator"
	PathValidate = "/validate-operator-example-com-v1alpha2-nginxoperator"
)

// Setup adds the webhooks to the manager's webhook server.
func Setup(mgr manager.Manager, render Render) error {
	verdict, err := newDryRun(mgr, render)
	if err != nil {
		return fmt.Errorf("failed to make the client of dry runs: %w", err)
	}
	for path, webhook := range handlers(mgr.GetScheme(), Validator{Verdict: verdict.ask, Patches: render.CheckPatches}) {
		mgr.GetWebhookServer().Register(path, webhook)
	}
	return nil
}

// handlers returns what answers at each path.
func handlers(scheme *runtime.Scheme, validator Validator) map[string]*admission.Webhook {
	validating := admission.WithValidator(scheme, validator)
	validating.Handler = fromV1alpha1{bounded{validating.Handler}}
	return map[string]*admission.Webhook{
		PathV1alpha1: {Handler: V1alpha1{}},
		PathDefault:  {Handler: bounded{minimalPatch{Defaulter{}}}},
		PathValidate: validating,
	}
}
