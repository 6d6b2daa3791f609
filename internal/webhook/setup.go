// Package webhook is admission: what a write of a NginxOperator goes through before it is stored.
package webhook

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Where the webhook server answers for defaults and for validation.
const (
	PathDefault  = "/mutate-operator-example-com-v1alpha2-nginxoperator"
	PathValidate = "/validate-operator-example-com-v1alpha2-nginxoperator"
)

// Setup adds the webhooks to the manager's webhook server.
func Setup(mgr manager.Manager) error {
	SetupV1alpha1(mgr)
	server := mgr.GetWebhookServer()
	server.Register(PathDefault, &admission.Webhook{Handler: minimalPatch{Defaulter{}}})
	validator := admission.WithValidator(mgr.GetScheme(), Validator{})
	validator.Handler = fromV1alpha1{validator.Handler}
	server.Register(PathValidate, validator)
	return nil
}
