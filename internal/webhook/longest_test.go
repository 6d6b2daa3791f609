//go:build !race

package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
	"github.com/example/nginx-operator/pkg/review"
)

// TestLongestReviewsAreBounded posts the longest accepted objects, as the new and as the stored
// object, to each path. Any Pod can post such a review.
func TestLongestReviewsAreBounded(t *testing.T) {
	for path, handler := range newHandlers(t) {
		version := v1alpha2.GroupVersion
		if path == PathV1alpha1 {
			version = v1alpha1.GroupVersion
		}
		for name, text := range map[string]string{"text": "x", "HTML": "<", "escapes": `\"`, "line separators": "\u2028"} {
			t.Run(strings.TrimPrefix(path, "/")+" "+name, func(t *testing.T) {
				long := strings.Repeat(text, (bounds.MaxBytes-4<<10)/len(text))
				object := func(kept string) string {
					return fmt.Sprintf(`{"apiVersion":%q,"kind":"NginxOperator",`+
						`"metadata":{"name":"web","annotations":{"a":"%s",%s}},"spec":{"tls":[{"secretName":"a"}]}}`,
						version.String(), long, kept)
				}
				body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"UPDATE",`+
					`"kind":{"group":%q,"version":%q,"kind":"NginxOperator"},"object":%s,"oldObject":%s}}`,
					version.Group, version.Version, object(`"b":"c"`), object(`"operator.example.com/v1alpha2":"{}"`))
				if !json.Valid([]byte(body)) {
					t.Fatal("the review is no JSON")
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				recorder := httptest.NewRecorder()
				if review.Handler(handler).ServeHTTP(recorder, request); recorder.Code != http.StatusOK {
					t.Errorf("answered %d: %.300s", recorder.Code, recorder.Body)
				}
				runtime.ReadMemStats(&after)
				// TotalAlloc includes garbage, and is several times as large with the race
				// detector.
				if allocated := after.TotalAlloc - before.TotalAlloc; allocated > boundstest.MaxMemory*boundstest.Larger {
					t.Errorf("%d MiB are allocated", allocated>>20)
				}
			})
		}
	}
}
