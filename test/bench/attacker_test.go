//go:build bench || soak

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/test/harness/repeat"
	"github.com/example/nginx-operator/test/stranger/attack"
)

// attackVariable makes this program attack an operator instead of running tests, so that the
// attackers have a process of their own. Its value is the kind of the attack, the number of the
// attackers' addresses, and the addresses of the attacked ports.
const attackVariable = "BENCH_ATTACK"

const (
	// attackersAt is the number of attackers at one address, close to the operator's limit of
	// connections.
	attackersAt = 180
	// attackReview is the size of a spec that attackers post.
	attackReview = 3 << 10
)

// attempts returns the attempt of each kind of attack at a port.
func attempts() map[string]func(ctx context.Context, dial attack.Dial, target string) error {
	spec := `{"config":{"inline":"` + strings.Repeat(`# a\n`, attackReview/5) + `server { listen 8080; }"}}`
	return map[string]func(context.Context, attack.Dial, string) error{
		"handshakes": attack.Handshake,
		"hellos":     attack.Hello,
		"reviews": func(ctx context.Context, dial attack.Dial, target string) error {
			return review(ctx, dial, target, spec)
		},
		"scrapes": func(ctx context.Context, dial attack.Dial, target string) error {
			return attack.Requests(ctx, dial, http.MethodGet, "https", target, "/metrics")
		},
		"requests": func(ctx context.Context, dial attack.Dial, target string) error {
			return attack.Requests(ctx, dial, http.MethodPost, "https", target, webhook.PathValidate)
		},
		"probes": func(ctx context.Context, dial attack.Dial, target string) error {
			return attack.Requests(ctx, dial, http.MethodGet, "http", target, "/readyz")
		},
	}
}

// attackUntilEOF attacks until stdin ends. It prints the number of attempts that reached the
// operator, and the number of those that failed.
func attackUntilEOF(attacks string) error {
	words := strings.Fields(attacks)
	if len(words) < 3 {
		return fmt.Errorf("%s is %q, want a kind, a number of addresses, and ports", attackVariable, attacks)
	}
	attempt, targets := attempts()[words[0]], words[2:]
	addresses, err := strconv.Atoi(words[1])
	if attempt == nil || err != nil {
		return fmt.Errorf("%s has the unknown kind %q, or no number: %w", attackVariable, words[0], err)
	}
	each := attackersAt
	if words[0] == "reviews" {
		each /= addresses // a review takes two turns, for which more attackers would wait longer than their timeout
	}
	var attackers []func(context.Context, int) error
	for i := range addresses * each {
		dial, target := attack.From(fmt.Sprintf("127.0.2.%d", i%addresses+1)), targets[i/addresses%len(targets)]
		attackers = append(attackers, func(ctx context.Context, _ int) error { return attempt(ctx, dial, target) })
	}
	running := repeat.Start(context.Background(), 0, attackers...)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	counts := running.Counts()
	fmt.Println(counts.Total-counts.Failed, counts.Failed)
	return nil
}

// review posts the review of an object to an operator, which has to admit it.
func review(ctx context.Context, dial attack.Dial, target, spec string) error {
	body := attack.Review("default", "", spec)
	code, answer, err := attack.Post(ctx, dial, "https://"+target+webhook.PathValidate, strings.NewReader(body), int64(len(body)))
	if err == nil && (code != http.StatusOK || !bytes.Contains(answer, []byte(`"allowed":true`))) {
		err = fmt.Errorf("a review is answered with %d: %s", code, answer)
	}
	return err
}
