//go:build bench || soak

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/test/harness/repeat"
	"github.com/example/nginx-operator/test/stranger/attack"
)

// attackVariable makes this program attack an operator instead of running tests, so that the
// attackers have a process of their own. Its value is the kind of the attack, the address of a port,
// and the number of the attackers' addresses.
const attackVariable = "BENCH_ATTACK"

const (
	// attackersAt is the number of attackers at one address, close to the operator's limit of
	// connections.
	attackersAt = 180
	// attackReview is the size of a spec that attackers post.
	attackReview = 3 << 10
)

// attackUntilEOF attacks until stdin ends. It prints the number of attempts that reached the
// operator.
func attackUntilEOF(attacks string) error {
	var kind, target string
	var addresses int
	if _, err := fmt.Sscan(attacks, &kind, &target, &addresses); err != nil {
		return fmt.Errorf("failed to read %s: %w", attackVariable, err)
	}
	spec := `{"config":{"inline":"` + strings.Repeat(`# a\n`, attackReview/5) + `server { listen 8080; }"}}`
	attempt := map[string]func(context.Context, attack.Dial) error{
		"handshakes": func(ctx context.Context, dial attack.Dial) error { return attack.Handshake(ctx, dial, target) },
		"reviews":    func(ctx context.Context, dial attack.Dial) error { return review(ctx, dial, target, spec) },
	}[kind]
	if attempt == nil {
		return fmt.Errorf("%s has the unknown kind %q", attackVariable, kind)
	}
	var attackers []func(context.Context, int) error
	for i := range addresses * attackersAt {
		dial := attack.From(fmt.Sprintf("127.0.2.%d", i%addresses+1))
		attackers = append(attackers, func(ctx context.Context, _ int) error { return attempt(ctx, dial) })
	}
	running := repeat.Start(context.Background(), 0, attackers...)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	counts := running.Counts()
	fmt.Println(counts.Total - counts.Failed)
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
