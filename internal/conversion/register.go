package conversion

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Path is where the webhook server answers conversion requests.
const Path = "/convert"

// Register adds the conversion to the manager's webhook server. The function is called for each review that is answered with a failure.
func Register(mgr manager.Manager, failed func()) {
	mgr.GetWebhookServer().Register(Path, NewHandler(failed))
}

// NewHandler returns what answers conversion requests, and calls the function for each that it answers with a failure.
func NewHandler(failed func()) http.Handler { return handler{failed} }
