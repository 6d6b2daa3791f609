package e2e

// Strangers attack the three ports of the operator. Each port limits the connections, the memory,
// and the TokenReviews that a client can cause (pkg/serving).

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/test/stranger/attack"
)

const (
	// webhookPort, metricsPort, and probesPort are the container ports of the operator.
	webhookPort, metricsPort, probesPort = "9443", "8443", "8081"
	// idleAtOnce is the number of concurrent dials.
	idleAtOnce = 32
	// slowBodies is the number of concurrent slow bodies, each of which takes slowBodyTime.
	slowBodies, slowBodyTime = 120, 3 * time.Second
	// reviewsAllowed is the limit of TokenReviews per second for both replicas. reviewsBurst is the
	// additional limit at the start.
	reviewsAllowed, reviewsBurst = 2 * 10, 2 * 20
)

// strangers attacks the operator from Pods without a token.
func strangers(t *testing.T, prober *neighbour) {
	t.Helper()
	pods := newStrangers(t, 9)
	// The last Pod is a client with permission.
	strangers, prometheus := pods[:8], pods[8]
	prober.endures(t, "connections of strangers", func() { strangerConnections(t, prober, strangers, prometheus) })
	prober.endures(t, "reviews of strangers", func() { strangerReviews(t, prober, strangers) })
	prober.endures(t, "work for strangers", func() { strangerWork(t, prober, strangers) })
	strangerDeputy(t, pods[0])
}

// strangerWork makes the operator compute as much as it can: handshakes at webhooks and metrics of
// all replicas, and small reviews that it answers, at the same time.
func strangerWork(t *testing.T, prober *neighbour, strangers []attack.Dial) {
	t.Helper()
	webhooks := operatorPorts(t, webhookPort)
	secured := slices.Concat(webhooks, operatorPorts(t, metricsPort))
	body := attack.Review("default", "", `{"config":{"inline":"`+strings.Repeat(`# a\n`, 600)+`server { listen 8080; }"}}`)
	siege(t, prober, "work",
		repeated{what: "handshakes at once", workers: 180, least: scaled(2000, 20000), do: func(ctx context.Context, n int) error {
			return attack.Handshake(ctx, of(strangers, n), of(secured, n/len(strangers)))
		}},
		repeated{what: "reviews at once", workers: 60, least: scaled(500, 5000), do: func(ctx context.Context, n int) error {
			url := "https://" + of(webhooks, n/len(strangers)) + webhook.PathValidate
			code, _, err := attack.Post(ctx, of(strangers, n), url, strings.NewReader(body), int64(len(body)))
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("a review is answered with %d", code)
			}
			return err
		}},
	)
}

// strangerConnections holds idle connections to each port of each replica, one Pod to the first
// replica and all Pods to the others. At the same time, it makes handshakes, and sends random
// tokens to the metrics port. A client with permission gets the metrics, and few tokens cause a
// TokenReview.
func strangerConnections(t *testing.T, prober *neighbour, strangers []attack.Dial, prometheus attack.Dial) {
	for _, port := range []string{webhookPort, metricsPort, probesPort} {
		for replica, address := range operatorPorts(t, port) {
			dials := strangers
			if replica == 0 {
				dials = strangers[:1]
			}
			conns, err := attack.Idle(t.Context(), dials, address, scaled(600, 1000), idleAtOnce)
			defer func() {
				for _, conn := range conns {
					_ = conn.Close()
				}
			}()
			must(t, err)
		}
	}

	webhooks, metrics := operatorPorts(t, webhookPort), operatorPorts(t, metricsPort)
	scrape := func(n int, dial attack.Dial, token string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+metrics[n%len(metrics)]+"/metrics", nil)
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		code, _, err := attack.Send(dial, request)
		return code, err
	}
	token := metricsToken(t)
	permitted := func(_ context.Context, n int) error {
		code, err := scrape(n, prometheus, token)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("answered with %d", code)
		}
		return err
	}
	for i := range metrics {
		must(t, permitted(t.Context(), i)) // then each replica knows the client, like a Prometheus that scrapes them
	}
	began, reviewed := time.Now(), countTokenReviews(t)
	siege(t, prober, "connections",
		repeated{what: "handshakes", workers: 4, least: scaled(200, 2000), do: func(ctx context.Context, n int) error {
			return attack.Handshake(ctx, of(strangers, n), of(slices.Concat(webhooks, metrics), n))
		}},
		repeated{what: "random tokens", workers: 4, least: scaled(100, 800), do: func(_ context.Context, n int) error {
			code, err := scrape(n, of(strangers, n), fmt.Sprintf("random-%d", n))
			if err == nil && code < http.StatusBadRequest {
				t.Errorf("a random token is answered with %d", code)
			}
			return err
		}},
		repeated{what: "scrapes with permission", workers: 1, pause: pollInterval, least: 10, always: true, do: permitted},
	)
	reviews, most := countTokenReviews(t)-reviewed, reviewsBurst+int(reviewsAllowed*time.Since(began).Seconds())
	t.Logf("FIGURE TokenReviews: %d", reviews)
	if reviews == 0 || reviews > most {
		t.Errorf("%d TokenReviews, want 1 to %d", reviews, most)
	}
}

// strangerReviews sends bodies byte by byte, reviews without end, and reviews that are expensive to
// decode.
func strangerReviews(t *testing.T, prober *neighbour, strangers []attack.Dial) {
	all := hostileReviews(operatorPorts(t, webhookPort))
	answered := make([]atomic.Bool, len(all))
	siege(t, prober, "reviews",
		repeated{what: "slow bodies", workers: slowBodies, least: slowBodies, do: func(ctx context.Context, n int) error {
			return attack.SlowBody(ctx, of(strangers, n), webhookAddress(), slowBodyTime)
		}},
		repeated{what: "endless reviews", workers: 1, pause: pollInterval, least: 4, do: func(ctx context.Context, n int) error {
			_, _, err := attack.Post(ctx, of(strangers, n), webhookURL(conversion.Path), attack.Endless('a'), -1)
			return err
		}},
		repeated{what: "hostile reviews", workers: 4, do: func(ctx context.Context, n int) error {
			review, dial := of(all, n), of(strangers, n/len(all)+n)
			code, _, err := attack.Post(ctx, dial, review.url, strings.NewReader(review.body), int64(len(review.body)))
			if err != nil {
				return fmt.Errorf("%s to %s: %w", review.what, review.url, err)
			}
			if !answered[n%len(all)].Swap(true) {
				t.Logf("%s to %s is answered with %d", review.what, review.url, code)
			}
			return nil
		}, enough: func() error {
			for i := range all {
				if !answered[i].Load() {
					return fmt.Errorf("%s to %s has no answer", all[i].what, all[i].url)
				}
			}
			return nil
		}},
	)
}

// of returns an element of a list, as if it repeated without end.
func of[T any](list []T, n int) T { return list[n%len(list)] }

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
func countTokenReviews(t *testing.T) (count int) {
	t.Helper()
	must(t, auditLines(func([]byte) error {
		count++
		return nil
	}, operatorUser(), "/tokenreviews"))
	return count
}
