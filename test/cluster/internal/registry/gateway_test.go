package registry

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// roundTripper returns the requested URL in a header of the response.
type roundTripper struct{}

func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Asked", r.URL.String())
	return recorder.Result(), nil
}

func TestGatewayHandler(t *testing.T) {
	handler := gatewayHandler(roundTripper{})
	for _, test := range []struct {
		method, url string
		code        int
		asked       string
	}{
		{http.MethodGet, "https://quay.io/v2/a/manifests/1", 200, "https://192.0.2.1:5000/v2/quay.io/a/manifests/1"},
		{http.MethodHead, "https://registry-1.docker.io/v2/a/blobs/1", 200, "https://192.0.2.1:5000/v2/docker.io/a/blobs/1"},
		{http.MethodPost, "https://quay.io/v2/a/blobs/uploads/", 405, ""},
		{http.MethodGet, "https://quay.io:443/v2/a/blobs/1", 200, "https://192.0.2.1:5000/v2/quay.io/a/blobs/1"},
		{http.MethodGet, "https://anything/v2/", 200, "https://192.0.2.1:5000/v2/"},
		{http.MethodGet, "https://example.com/v2/a/manifests/1", 404, ""},
		{http.MethodGet, "https://quay.io/token", 404, ""},
	} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(test.method, test.url, nil))
		if recorder.Code != test.code || recorder.Header().Get("Asked") != test.asked {
			t.Errorf("%s %s: got %d, %s", test.method, test.url, recorder.Code, recorder.Header().Get("Asked"))
		}
	}
}
