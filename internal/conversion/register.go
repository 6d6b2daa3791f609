package conversion

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example/nginx-operator/pkg/untrusted"
)

// Path is the path of conversion requests on the webhook server.
const Path = "/convert"

// Register adds the conversion to the manager's webhook server. The function is called for each
// review that is answered with a failure.
func Register(mgr manager.Manager, failed func()) {
	mgr.GetWebhookServer().Register(Path, NewHandler(failed))
}

// NewHandler returns the handler of conversion requests. It calls the function for each request
// that is answered with a failure.
func NewHandler(failed func()) http.Handler { return handler{failed, untrusted.NewLimit()} }
