package e2e

// Strangers connect to the three ports of the operator. Each port limits the connections, the
// memory, and the TokenReviews that a client can cause (internal/serving).

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// idleConnections is the number of connections of strangers to each port of each replica.
	// idleAtOnce is the number of concurrent dials.
	idleConnections, idleAtOnce = 1000, 32
	// underAttack is the time during which the kubelet's probes must succeed. Three failures in a
	// row restart a container.
	underAttack = 35 * time.Second
	// randomTokens is the number of tokens that each stranger sends. tokenStrangers is the number
	// of strangers.
	randomTokens, tokenStrangers = 200, 4
	// reviewsAllowed is the limit of TokenReviews per second for both replicas. reviewsBurst is the
	// additional limit at the start.
	reviewsAllowed, reviewsBurst = 2 * 10, 2 * 20
	// smallReviewLimit is the limit for the 99th percentile of small reviews. smallReviewCount is
	// their number.
	smallReviewLimit, smallReviewCount = 200 * time.Millisecond, 200
)

// operatorPorts returns the address of a port for each replica.
func operatorPorts(t *testing.T, port string) []string {
	t.Helper()
	pods, err := operatorPods(t.Context(), suite.operatorNamespace)
	must(t, err)
	out := make([]string, len(pods))
	for i := range pods {
		out[i] = net.JoinHostPort(pods[i].Status.PodIP, port)
	}
	return out
}

// unharmed runs an attack. It requires that no container of the operator restarts and that both
// Pods stay ready.
func unharmed(t *testing.T, attack func()) {
	t.Helper()
	before := operatorProcesses(t)
	attack()
	if now := operatorProcesses(t); !maps.Equal(before, now) {
		t.Errorf("the operator was %v and is %v", before, now)
	}
	pods, err := operatorPods(t.Context(), suite.operatorNamespace)
	must(t, err)
	for i := range pods {
		for _, condition := range pods[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue {
				t.Errorf("%s is not ready: %s", pods[i].Name, condition.Message)
			}
		}
	}
}

// strangerIdleConnections holds idleConnections to each port of each replica. One Pod connects to
// the first replica, and eight Pods connect to the others. Probes and reviews succeed during the
// attack.
func strangerIdleConnections(t *testing.T) {
	strangers := newStrangers(t, 8)
	unharmed(t, func() {
		group, ctx := errgroup.WithContext(t.Context())
		group.SetLimit(idleAtOnce)
		ports := []string{"9443", "8443", "8081"}
		connections := make(chan net.Conn, len(ports)*len(operatorPorts(t, ports[0]))*idleConnections)
		for _, port := range ports {
			for replica, address := range operatorPorts(t, port) {
				from := strangers
				if replica == 0 {
					from = strangers[:1]
				}
				for i := range idleConnections {
					group.Go(func() error {
						conn, err := from[i%len(from)].dial(ctx, "tcp", address)
						if err == nil {
							connections <- conn
						}
						return err
					})
				}
			}
		}
		must(t, group.Wait())
		close(connections)

		for end := time.Now().Add(underAttack); time.Now().Before(end); {
			smallReview(t)
			for _, address := range operatorPorts(t, "8081") {
				must(t, probe(t.Context(), "http://"+address+"/readyz"))
			}
		}
		for conn := range connections {
			_ = conn.Close()
		}
	})
}

// probe sends a request like the kubelet's.
func probe(ctx context.Context, url string) error {
	client, err := suite.reach.client(false)
	if err != nil {
		return err
	}
	return fetchText(ctx, client, url, "ok")
}

// smallReview makes the API server send small reviews with a dry run, and returns its duration.
func smallReview(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	must(t, suite.admin.Create(t.Context(), newObject("default", "small-review", 1), client.DryRunAll))
	return time.Since(began)
}

// strangerTokens sends random bearer tokens to the metrics port. Only a few of them cause a
// TokenReview, and a client with permission still gets the metrics.
func strangerTokens(t *testing.T) {
	strangers, token := newStrangers(t, tokenStrangers+1), metricsToken(t)
	urls := operatorPorts(t, "8443")
	reviewed, err := countTokenReviews()
	must(t, err)
	scrape := func(s *stranger, url, token string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+url+"/metrics", nil)
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := s.client().Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	allowed := func() {
		for _, url := range urls {
			if code, err := scrape(strangers[tokenStrangers], url, token); err != nil || code != http.StatusOK {
				t.Errorf("a client with permission is answered %d, %v", code, err)
			}
		}
	}
	allowed() // now both replicas know the client, like a Prometheus that scrapes them

	began := time.Now()
	unharmed(t, func() {
		group := errgroup.Group{}
		for i, s := range strangers[:tokenStrangers] {
			group.Go(func() error {
				for n := range randomTokens {
					code, err := scrape(s, urls[n%len(urls)], fmt.Sprintf("random-%d-%d", i, n))
					// controller-runtime's filter returns 500 for a token that the API server does
					// not know.
					refused := []int{http.StatusUnauthorized, http.StatusInternalServerError, http.StatusTooManyRequests}
					if err != nil || !slices.Contains(refused, code) {
						return fmt.Errorf("a random token is answered %d, %w", code, err)
					}
				}
				return nil
			})
		}
		for range 10 {
			allowed()
		}
		must(t, group.Wait())
	})
	now, err := countTokenReviews()
	must(t, err)
	most := reviewsBurst + int(reviewsAllowed*time.Since(began).Seconds())
	t.Logf("FIGURE TokenReviews for %d random tokens: %d", tokenStrangers*randomTokens, now-reviewed)
	if now-reviewed > most {
		t.Errorf("%d TokenReviews, want at most %d", now-reviewed, most)
	}
}

// metricsToken returns a token with permission to read the metrics.
func metricsToken(t *testing.T) string {
	t.Helper()
	namespace := newNamespace(t, restricted)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "scraper"}}
	must(t, suite.admin.Create(t.Context(), account))
	kubectl(t, "create", "clusterrole", namespace, "--verb=get", "--non-resource-url=/metrics")
	kubectl(t, "create", "clusterrolebinding", namespace, "--clusterrole="+namespace, "--serviceaccount="+namespace+":scraper")
	t.Cleanup(func() {
		for _, kind := range []string{"clusterrole", "clusterrolebinding"} {
			if out, err := command(context.Background(), "kubectl", "delete", kind, namespace); err != nil {
				t.Errorf("failed to delete %s %s: %v: %s", kind, namespace, err, out)
			}
		}
	})
	token := &authenticationv1.TokenRequest{}
	must(t, suite.admin.SubResource("token").Create(t.Context(), account, token))
	return token.Status.Token
}

// countTokenReviews returns the number of TokenReviews of the operator in the audit log.
func countTokenReviews() (count int, err error) {
	err = auditLines(func([]byte) error {
		count++
		return nil
	}, operatorUser(), "/tokenreviews")
	return count, err
}

// strangerSlowBodies announces bodies of 60 MiB to the conversion webhook from six Pods, and sends
// them byte by byte. Small reviews of the API server stay fast.
func strangerSlowBodies(t *testing.T) {
	const pods, each = 6, 20
	strangers := newStrangers(t, pods)
	unharmed(t, func() {
		ctx, stop := context.WithCancel(t.Context())
		group := errgroup.Group{}
		for _, s := range strangers {
			for range each {
				group.Go(func() error {
					for ctx.Err() == nil {
						slowBody(ctx, s)
					}
					return nil
				})
			}
		}
		times := make([]time.Duration, smallReviewCount)
		for i := range times {
			times[i] = smallReview(t)
		}
		stop()
		must(t, group.Wait())
		slices.Sort(times)
		p99 := times[len(times)*99/100]
		t.Logf("FIGURE dry runs beside slow bodies: half in %s, 99 percent in %s", times[len(times)/2], p99)
		if p99 > smallReviewLimit {
			t.Errorf("99 percent of the dry runs took %s, want less than %s", p99, smallReviewLimit)
		}
	})
}

// slowBody sends one body byte by byte until the server closes the connection or ctx is done.
func slowBody(ctx context.Context, s *stranger) {
	conn, err := s.dial(ctx, "tcp", webhookAddress())
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // #nosec G402 -- a stranger trusts nobody
	_, err = fmt.Fprintf(secured, "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 60<<20)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, err = secured.Write([]byte(" "))
		}
	}
}
