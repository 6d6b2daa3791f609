package command

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// warnings prints the API server's warnings, each once.
func (c *cli) warnings() rest.WarningHandler {
	return &collected{report: c.warn}
}

// warn prints a warning as kubectl does.
func (c *cli) warn(text string) {
	_, _ = fmt.Fprintln(c.ErrOut, printer.PainterOf(c.ErrOut).Paint(printer.Yellow, "Warning:"), printer.Line(text))
}

// collected collects the API server's warnings, each once.
type collected struct {
	// report is called with each warning, unless it is nil.
	report func(text string)

	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *collected) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code != 299 || text == "" || slices.Contains(w.all, text) {
		return
	}
	w.all = append(w.all, text)
	if w.report != nil {
		w.report(text)
	}
}
