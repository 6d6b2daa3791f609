package integration

import (
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatormanager "github.com/example/nginx-operator/internal/manager"
)

// recordedWarnings keeps what the API server warns a client of.
type recordedWarnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader is called for each warning.
func (w *recordedWarnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *recordedWarnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts
}

// warningClient returns a client with all rights that hands its warnings to a recorder.
func warningClient(t *testing.T, warnings rest.WarningHandler) client.Client {
	t.Helper()
	config := rest.CopyConfig(suite.config)
	config.WarningHandler = warnings
	out, err := client.New(config, client.Options{Scheme: operatormanager.NewScheme()})
	must(t, err)
	return out
}
