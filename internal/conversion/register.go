package conversion

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Path is where the webhook server answers conversion requests.
const Path = "/convert"

// Register adds the conversion to the manager's webhook server.
func Register(mgr manager.Manager) {
	mgr.GetWebhookServer().Register(Path, NewHandler())
}

// NewHandler returns what answers conversion requests.
func NewHandler() http.Handler { return handler{} }
