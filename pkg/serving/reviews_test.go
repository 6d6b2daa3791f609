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
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// TestStrangersReviewsAreBounded posts small reviews that are expensive to decode, as any Pod can.
// They must not reach a webhook that has no bounds of its own, such as the webhook of an example.
func TestStrangersReviewsAreBounded(t *testing.T) {
	webhooks, asked := newWebhooks(nil), 0
	webhooks.Register("/admit", &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		asked++
		return admission.Allowed("")
	})})
	_, address := serveLocally(t, webhooks.port)
	client, url := clientAt(t, "127.0.0.1", false), "https://"+address+"/admit"

	fill := func(before, element, after string) string {
		return before + strings.Repeat(element+",", (bounds.MaxReviewBytes-len(before)-len(after))/(len(element)+1)-1) + element + after
	}
	head := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`
	for name, body := range map[string]string{
		"causes of a response":     fill(head+`"response":{"status":{"details":{"causes":[`, "{}", `]}}}}`),
		"groups of the user":       fill(head+`"request":{"userInfo":{"groups":[`, `""`, `]}}}`),
		"an object of many values": fill(head+`"request":{"object":{"spec":{"containers":[`, "{}", `]}}}}`),
		"YAML":                     "a: &a [x]\nb: [*a,*a]\n",
	} {
		t.Run(name, func(t *testing.T) {
			boundstest.CheapRequest(t, func() {
				if code := ask(t, client, url, body); code != http.StatusBadRequest {
					t.Errorf("answered %d", code)
				}
			})
		})
	}
	if asked != 0 {
		t.Errorf("the webhook was asked %d times", asked)
	}
	if code := ask(t, client, url, head+`"request":{"uid":"1"}}`); code != http.StatusOK || asked != 1 {
		t.Errorf("a review is answered with %d", code)
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
