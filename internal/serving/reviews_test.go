package serving

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/bounds/boundstest"
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
