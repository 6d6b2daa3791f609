package serving

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/nginx-operator/pkg/certificates"
)

// authenticator is a filter that counts the requests that reach it, because each request can cost a
// TokenReview. It accepts tokens that start with "good".
type authenticator struct {
	asked, running, most atomic.Int64
	takes                time.Duration
}

func (a *authenticator) filter(next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked.Add(1)
		a.most.Store(max(a.most.Load(), a.running.Add(1)))
		defer a.running.Add(-1)
		time.Sleep(a.takes)
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer good") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization") // like the authenticator of Kubernetes
		next.ServeHTTP(w, r)
	}), nil
}

func scrape(handler http.Handler, address, token string) int {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.RemoteAddr = address + ":1"
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code
}

func newMetrics(t *testing.T, a *authenticator) http.Handler {
	t.Helper()
	handler, err := NewMetrics(a.filter, http.HandlerFunc(nobody))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// TestRandomTokensAreLimited sends a random token with each request, 100 times per second. Only a
// few of these tokens may cause a TokenReview. Prometheus must always get an answer, even after its
// token has changed.
func TestRandomTokensAreLimited(t *testing.T) {
	const span, scrapeEvery = time.Minute, 15 * time.Second
	for name, test := range map[string]struct {
		addresses int
		most      float64
	}{
		"from one address":        {1, addressBurst + addressRate*span.Seconds()},
		"from eight addresses":    {8, 8 * (addressBurst + addressRate*span.Seconds())},
		"from a hundred":          {100, strangersBurst + strangersRate*span.Seconds()},
		"of Prometheus's address": {0, addressBurst + addressRate*span.Seconds()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &authenticator{}
				handler := newMetrics(t, a)
				if code := scrape(handler, "192.0.2.1", "good-1"); code != http.StatusOK {
					t.Fatalf("answered %d", code)
				}
				scrapes, ticks := a.asked.Load(), 0
				for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					address := "192.0.2.1"
					if test.addresses > 0 {
						address = fmt.Sprintf("198.51.100.%d", ticks%test.addresses)
					}
					code := scrape(handler, address, fmt.Sprint("random-", ticks))
					if code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
						t.Fatalf("a random token is answered with %d", code)
					}
					if ticks++; ticks%int(scrapeEvery/(10*time.Millisecond)) > 0 {
						continue
					}
					tokens := []string{"good-1"}
					if test.addresses > 0 {
						tokens = append(tokens, fmt.Sprint("good-", ticks))
					}
					for _, token := range tokens {
						scrapes++
						if code := scrape(handler, "192.0.2.1", token); code != http.StatusOK {
							t.Errorf("Prometheus is answered %d with %s", code, token)
						}
					}
				}
				random := a.asked.Load() - scrapes
				t.Logf("%d of %d random tokens were reviewed", random, ticks)
				if float64(random) > test.most || random == 0 {
					t.Errorf("%d of %d random tokens were reviewed, want at most %g", random, ticks, test.most)
				}
			})
		})
	}
}

// TestTokenReviewsAtOnceAreLimited verifies that a slow API server gets few concurrent TokenReviews
// of random tokens, and that these do not block Prometheus.
func TestTokenReviewsAtOnceAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authenticator{}
		handler := newMetrics(t, a)
		if code := scrape(handler, "192.0.2.1", "good-1"); code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
		a.takes = time.Minute
		codes := make(chan int, 20)
		for i := range cap(codes) {
			go func() { codes <- scrape(handler, fmt.Sprintf("198.51.100.%d", i), "random") }()
		}
		synctest.Wait()
		if most := a.most.Load(); most != strangersAtOnce {
			t.Errorf("%d were reviewed at once, want %d", most, strangersAtOnce)
		}
		if code := scrape(handler, "192.0.2.1", "good-2"); code != http.StatusOK {
			t.Errorf("Prometheus is answered %d", code)
		}
		refused := 0
		for range cap(codes) {
			if <-codes == http.StatusTooManyRequests {
				refused++
			}
		}
		if want := cap(codes) - strangersAtOnce; refused != want {
			t.Errorf("%d were refused, want %d", refused, want)
		}
	})
}

// TestOtherRequestsCostNoReview verifies that only GET and HEAD of /metrics reach the
// authenticator, because each method would cost a separate review.
func TestOtherRequestsCostNoReview(t *testing.T) {
	a := &authenticator{}
	handler := newMetrics(t, a)
	for _, request := range []*http.Request{
		httptest.NewRequest("RANDOM", "/metrics", nil), httptest.NewRequest(http.MethodPost, "/metrics", nil),
		httptest.NewRequest(http.MethodGet, "/debug", nil),
	} {
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	if asked := a.asked.Load(); asked > 0 {
		t.Errorf("%d requests were authenticated", asked)
	}
}

// TestMetricsTLS verifies that the certificate in a directory is reloaded, and that the certificate
// is self-signed if the directory has none.
func TestMetricsTLS(t *testing.T) {
	config, err := MetricsTLS(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, err := config.GetCertificate(nil)
	if err != nil || certificates.Outdated(own.Leaf) != nil || own.Leaf.VerifyHostname("localhost") != nil {
		t.Errorf("the self-signed certificate is %+v, %v", own, err)
	}
	dir := t.TempDir()
	writePair(t, dir)
	if config, err = MetricsTLS(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	first, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	// The watch starts some time after MetricsTLS returns.
	eventually(t, func() bool {
		writePair(t, dir)
		next, err := config.GetCertificate(nil)
		return err == nil && !next.Leaf.Equal(first.Leaf)
	})
}

// writePair writes another certificate and its key to a directory.
func writePair(t *testing.T, dir string) {
	t.Helper()
	data, err := certificates.New([]string{"localhost"}, certificates.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
