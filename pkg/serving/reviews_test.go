package serving

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/pkg/bounds"
)

// TestStrangersReviewsAreBounded posts reviews that are expensive to decode. They must not reach a
// webhook that has no bounds of its own, such as the webhook of an example.
func TestStrangersReviewsAreBounded(t *testing.T) {
	asked := 0
	webhooks := newWebhooks(nil)
	webhooks.Register("/admit", &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		asked++
		return admission.Allowed("")
	})})
	_, address := serveLocally(t, webhooks.port)

	const head = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":`
	many := strings.Repeat("{},", bounds.MaxValues) + "{}"
	for body, want := range map[string]int{
		"a: &a [x]\nb: [*a,*a]\n":                                   http.StatusBadRequest,
		head + `{"object":{"spec":{"containers":[` + many + `]}}}}`: http.StatusBadRequest,
		head + `{"uid":"1"}}`:                                       http.StatusOK,
	} {
		if code := ask(t, clientAt(t, "127.0.0.1", false), "https://"+address+"/admit", body); code != want {
			t.Errorf("%.90s is answered with %d", body, code)
		}
	}
	if asked != 1 {
		t.Errorf("the webhook was asked %d times", asked)
	}
}

// TestPanicsLogLittleOfStrangers verifies that a handler that panics on its input, whose text a
// stranger chooses, writes few lines, and that each has the stack.
func TestPanicsLogLittleOfStrangers(t *testing.T) {
	var lines []string
	logger := funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{})
	synctest.Test(t, func(t *testing.T) { // time does not advance
		_, handler := serve(t, "/validate", func(http.ResponseWriter, *http.Request) { panic(strings.Repeat("forged\n", 10_000)) })
		for range 100 {
			request := httptest.NewRequestWithContext(log.IntoContext(t.Context(), logger), http.MethodPost, "/validate", strings.NewReader("{}"))
			recorder := httptest.NewRecorder()
			if handler.ServeHTTP(recorder, request); recorder.Code != http.StatusInternalServerError {
				t.Fatalf("answered %d", recorder.Code)
			}
		}
	})
	if len(lines) != 20 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if strings.Contains(line, "\n") || len(line) > 8<<10 || !strings.Contains(line, "TestPanicsLogLittleOfStrangers") {
			t.Errorf("%d bytes: %.2000q", len(line), line)
		}
	}
}
