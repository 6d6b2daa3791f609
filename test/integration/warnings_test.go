package integration

import (
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/scheme"
)

// recordedWarnings records the warnings that the API server sends to a client. It only counts the
// deprecation warning of v1alpha1, which comes with each request.
type recordedWarnings struct {
	mu         sync.Mutex
	texts      []string
	deprecated int
}

const deprecation = "operator.example.com/v1alpha1 NginxOperator is deprecated; use operator.example.com/v1alpha2"

// HandleWarningHeader records one warning.
func (w *recordedWarnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(text, deprecation) {
		w.deprecated++
		return
	}
	w.texts = append(w.texts, text)
}

func (w *recordedWarnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts
}

// warningClient returns a client with all RBAC permissions that passes its warnings to a handler.
func warningClient(t *testing.T, warnings rest.WarningHandler) client.Client {
	t.Helper()
	config := rest.CopyConfig(suite.config)
	config.WarningHandler = warnings
	return must1(client.New(config, client.Options{Scheme: scheme.New()}))(t)
}
