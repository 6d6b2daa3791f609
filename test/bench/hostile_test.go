//go:build bench

package bench

import (
	"bufio"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/pkg/certificates"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
	"github.com/example/nginx-operator/test/stranger/attack"
)

const (
	// hostileTime is the duration of each measurement. It has to contain leastChanges changes and
	// leastRequests handshakes and reviews of the other client.
	hostileTime                 = 20 * time.Second
	leastChanges, leastRequests = 50, 150
	// bystanderPause is the time between two requests of a client that is measured. With RSA, it
	// uses about 3 percent of the processor, which is less than its share beside ten attackers.
	bystanderPause = 75 * time.Millisecond
	// bystanderBar bounds the 99th percentile of handshakes and reviews. leaderP50 and leaderP99
	// bound the leader's calls.
	bystanderBar         = 200 * time.Millisecond
	leaderP50, leaderP99 = 10 * time.Millisecond, 100 * time.Millisecond
	// atOnce is the number of connections that an API server opens at once. burstBar bounds the
	// slowest handshake: then the API server's timeout ends.
	atOnce, burstBar = 192, 5 * time.Second
)

// hostileAttack is an attack on some ports. least is the number of attempts that have to reach the
// operator.
type hostileAttack struct {
	kind, at string
	targets  []string
	least    int
}

// TestHostile measures the operator's other clients while strangers attack its ports, with the
// certificate that the operator creates, and with an RSA certificate of another component. The
// operator uses two processors, as always. The attackers and this test are processes of their own.
func TestHostile(t *testing.T) {
	for key, args := range map[string]func(*testing.T, *environment) []string{
		"p256": func(*testing.T, *environment) []string { return nil }, // the operator creates it
		"rsa": func(t *testing.T, e *environment) []string {
			return useCertificate(t, e, must1(rsa.GenerateKey(rand.Reader, 2048))(t))
		},
	} {
		t.Run(key, func(t *testing.T) {
			e := newEnvironment(t)
			b := &bystander{environment: e, object: newInstance(e.newNamespace(t, "quiet"), 0)}
			b.operator = e.startLeader(t, args(t, e)...)
			must(t, e.admin.Create(t.Context(), b.object))
			b.measure(t, key+"-alone")
			b.burst(t, key+"-alone")

			webhooks, metrics := b.operator.Webhooks, b.operator.Metrics
			for _, attacked := range []hostileAttack{
				{"handshakes", "webhooks", []string{webhooks}, 1000},
				{"handshakes", "metrics", []string{metrics}, 1000},
				{"handshakes", "both", []string{webhooks, metrics}, 1000},
				{"reviews", "webhooks", []string{webhooks}, 1000},
				{"hellos", "both", []string{webhooks, metrics}, 2000},
				{"requests", "webhooks", []string{webhooks}, 200},
				{"scrapes", "metrics", []string{metrics}, 200},
				{"probes", "probes", []string{b.operator.Health}, 200},
			} {
				for _, addresses := range []int{1, 10} {
					stop := startAttack(t, b.operator, attacked, addresses)
					what := fmt.Sprintf("%s-%s-at-%s-from-%d", key, attacked.kind, attacked.at, addresses)
					b.measure(t, what)
					if addresses == 1 && attacked.at == "webhooks" {
						b.burst(t, what)
					}
					stop(what)
				}
			}
		})
	}
}

// startAttack starts the attackers. stop ends them, and requires that they reached the operator
// often enough.
func startAttack(t *testing.T, operator *harness.Manager, attacked hostileAttack, addresses int) (stop func(what string)) {
	t.Helper()
	// In a cluster, strangers and the API server do not share processors.
	attackers := exec.Command("nice", "-n", "10", os.Args[0])
	attack := fmt.Sprintf("%s=%s %d %s", attackVariable, attacked.kind, addresses, strings.Join(attacked.targets, " "))
	attackers.Env = append(os.Environ(), attack)
	attackers.Stderr = os.Stderr
	in := must1(attackers.StdinPipe())(t)
	out := must1(attackers.StdoutPipe())(t)
	must(t, attackers.Start())
	t.Cleanup(func() { _ = attackers.Process.Kill() })
	before := processorTime(t, operator.Pid())
	return func(what string) {
		t.Helper()
		for who, took := range map[string]time.Duration{
			"attackers": processorTime(t, attackers.Process.Pid), "operator": processorTime(t, operator.Pid()) - before,
		} {
			harness.Report("hostile-processor-"+who+"-"+what, took.Seconds(), "seconds of processor time")
		}
		must(t, in.Close())
		var reached, failed int
		if _, err := fmt.Fscan(out, &reached, &failed); err != nil {
			t.Errorf("the attackers counted nothing: %v", err)
		}
		must(t, attackers.Wait())
		unit := fmt.Sprintf("attempts that reached the operator (at least %d; %d failed)", attacked.least, failed)
		harness.Report("hostile-attack-"+what, float64(reached), unit)
		if reached < attacked.least {
			t.Errorf("%s: only %d attempts reached the operator, that shows nothing", what, reached)
		}
	}
}

// burst makes handshakes at once from the API server's address, and then reviews at once on the
// same connections. All have to succeed.
func (b *bystander) burst(t *testing.T, during string) {
	t.Helper()
	time.Sleep(2 * time.Second) // the API server's idle connections may then be replaced
	conns, dial := make([]*tls.Conn, atOnce), attack.From("127.0.0.1")
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}()
	body := attack.Review("default", "", "{}")
	for _, step := range []struct {
		what string
		do   func(i int) error
	}{
		{"handshakes", func(i int) error {
			conn, err := dial(t.Context(), b.operator.Webhooks)
			if err != nil {
				return err
			}
			conns[i] = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the guard checks the certificate
			return conns[i].HandshakeContext(t.Context())
		}},
		{"reviews", func(i int) error {
			if conns[i] == nil {
				return errors.New("there is no connection")
			}
			_, err := fmt.Fprintf(conns[i], "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				webhook.PathValidate, len(body), body)
			if err != nil {
				return err
			}
			response, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
			if err == nil && response.StatusCode != http.StatusOK {
				err = fmt.Errorf("answered with %s", response.Status)
			}
			return err
		}},
	} {
		took := make([]time.Duration, atOnce)
		var group sync.WaitGroup
		for i := range conns {
			group.Go(func() {
				began := time.Now()
				if err := step.do(i); err != nil {
					t.Errorf("%s: one of %d %s at once: %v", during, atOnce, step.what, err)
				}
				took[i] = time.Since(began)
			})
		}
		group.Wait()
		slowest := slices.Max(took)
		name, unit := fmt.Sprintf("hostile-burst-%s-%s", step.what, during), fmt.Sprintf("ms for the slowest of %d", atOnce)
		harness.Report(name, milliseconds(slowest), unit)
		if slowest > burstBar {
			t.Errorf("%s: the slowest of %d %s at once took %s", during, atOnce, step.what, slowest)
		}
	}
}

// bystander is the operator's other client, and an instance that it changes.
type bystander struct {
	*environment
	operator *harness.Manager
	object   *v1alpha2.NginxOperator
}

// measure reports the durations of handshakes, of small reviews, and of changes until the
// Deployment has them. The leader's calls are the times from the API server's answer to a write of
// a change until it receives the leader's next request for the same object.
func (b *bystander) measure(t *testing.T, during string) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var group sync.WaitGroup
	took := map[string][]time.Duration{}
	for what, do := range map[string]func(ctx context.Context) error{
		// Such as a kubelet's, for readiness.
		"handshakes": func(ctx context.Context) error {
			return attack.Handshake(ctx, attack.From("127.0.3.1"), b.operator.Webhooks)
		},
		// Such as another API server's. That of this test has 127.0.0.1.
		"reviews": func(ctx context.Context) error {
			return review(ctx, attack.From("127.0.3.2"), b.operator.Webhooks, "{}")
		},
	} {
		group.Go(func() {
			for time.Since(began) < hostileTime {
				start := time.Now()
				if err := do(t.Context()); err != nil {
					t.Errorf("%s: %s: %v", during, what, err)
				}
				mu.Lock()
				took[what] = append(took[what], time.Since(start))
				mu.Unlock()
				time.Sleep(bystanderPause)
			}
		})
	}
	changes := b.timeChanges(t, b.object, func(_ int, since time.Duration) bool { return since < hostileTime })
	group.Wait()
	calls := b.leaderCalls(t, began)
	requireAtMost(t, "changes", during, changes, leastChanges, time.Minute, time.Minute)
	requireAtMost(t, "leader-calls", during, calls, leastChanges, leaderP50, leaderP99)
	for what, durations := range took {
		requireAtMost(t, what, during, durations, leastRequests, bystanderBar, bystanderBar)
	}
}

// leaderCalls returns the time between the API server's answer to a write of the Deployment and the
// leader's next request in the same namespace, for each write since a point in time.
func (b *bystander) leaderCalls(t *testing.T, since time.Time) (out []time.Duration) {
	t.Helper()
	requests := must1(apiserver.ReadAudit(b.server.AuditLog, b.object.Namespace))(t)
	slices.SortFunc(requests, func(a, b apiserver.Request) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	for i, request := range requests[:len(requests)-1] {
		if request.ObjectRef.Resource == "deployments" && request.IsWrite() && request.RequestReceivedTimestamp.After(since) {
			out = append(out, requests[i+1].RequestReceivedTimestamp.Sub(request.StageTimestamp))
		}
	}
	return out
}

// requireAtMost reports the median and the 99th percentile of durations, and requires bars and a
// number of them.
func requireAtMost(t *testing.T, what, during string, took []time.Duration, least int, median, p99 time.Duration) {
	t.Helper()
	if len(took) < least {
		t.Errorf("%s: only %d %s, that shows nothing", during, len(took), what)
	}
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	for name, bar := range map[string]struct{ got, most time.Duration }{
		"p50": {percentile(took, 50), median}, "p99": {percentile(took, 99), p99},
	} {
		unit := fmt.Sprintf("ms (at most %g; %d of them)", milliseconds(bar.most), len(took))
		harness.Report(fmt.Sprintf("hostile-%s-%s-%s", what, name, during), milliseconds(bar.got), unit)
		if bar.got > bar.most {
			t.Errorf("%s: %s: %s of %s, want at most %s", during, name, bar.got, what, bar.most)
		}
	}
}

// useCertificate creates the certificate of the webhooks for a key, as cert-manager does, and
// returns the argument for the same certificate at the metrics port.
func useCertificate(t *testing.T, e *environment, key crypto.Signer) []string {
	t.Helper()
	host := "nginx-operator-webhook-service." + operatorNamespace + ".svc"
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host, host + ".cluster.local"}, IPAddresses: []net.IP{{127, 0, 0, 1}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := must1(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	private := must1(keyutil.MarshalPrivateKeyToPEM(key))(t)
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	data := map[string][]byte{
		corev1.TLSCertKey: chain, certificates.CAKey: chain, corev1.TLSPrivateKeyKey: private,
	}
	dir := t.TempDir()
	for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		must(t, os.WriteFile(filepath.Join(dir, name), data[name], 0o600))
	}
	must(t, client.IgnoreAlreadyExists(e.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "nginx-operator-webhook-server-cert"},
		Type:       corev1.SecretTypeTLS, Data: data,
	})))
	return []string{"--metrics-cert-dir=" + dir}
}
