//go:build bench

package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/certificates"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
	"github.com/example/nginx-operator/test/stranger/attack"
)

const (
	// hostileTime is the duration of each measurement. An attack has to reach the operator
	// hostileLeast times in it.
	hostileTime  = 15 * time.Second
	hostileLeast = 200
	// bystanderPause is the time between two requests of a client that is measured.
	bystanderPause = 20 * time.Millisecond
	// bystanderBar bounds the 99th percentile of handshakes and reviews without an attack.
	bystanderBar = 200 * time.Millisecond
)

// TestHostile measures the operator's other clients while strangers attack one of its ports, with
// an RSA and with an ECDSA certificate. The operator uses one processor, as always. The attackers
// and this test are processes of their own. Only the measurements without an attack have a bar.
func TestHostile(t *testing.T) {
	for key, args := range map[string]func(*testing.T, *environment) []string{
		"rsa":   func(*testing.T, *environment) []string { return nil }, // the operator creates it
		"ecdsa": useECDSA,
	} {
		t.Run(key, func(t *testing.T) {
			e := newEnvironment(t)
			b := &bystander{environment: e, object: newInstance(e.newNamespace(t, "quiet"), 0)}
			b.operator = e.startLeader(t, args(t, e)...)
			must(t, e.admin.Create(t.Context(), b.object))
			e.waitForStatus(t, b.object.Namespace, 1, time.Minute)

			for what, p99 := range b.measure(t, key+"-alone", "at most 200") {
				if p99 > bystanderBar {
					t.Errorf("without an attack, 99 percent of %s took %s", what, p99)
				}
			}
			for _, attacked := range []struct{ kind, port, target string }{
				{"handshakes", "webhooks", b.operator.Webhooks},
				{"handshakes", "metrics", b.operator.Metrics},
				{"reviews", "webhooks", b.operator.Webhooks},
			} {
				for _, addresses := range []int{1, 10} {
					stop := startAttack(t, attacked.kind, attacked.target, addresses)
					what := fmt.Sprintf("%s-%s-at-%s-from-%d", key, attacked.kind, attacked.port, addresses)
					b.measure(t, what, "no bar")
					reached := stop()
					harness.Report("hostile-attack-"+what, float64(reached), fmt.Sprintf("attempts that reached the operator (at least %d)", hostileLeast))
					if reached < hostileLeast {
						t.Errorf("%s: only %d attempts reached the operator, that shows nothing", what, reached)
					}
				}
			}
		})
	}
}

// startAttack starts the attackers. stop ends them, and returns how often they reached the
// operator.
func startAttack(t *testing.T, kind, target string, addresses int) (stop func() int) {
	t.Helper()
	attackers := exec.Command(os.Args[0])
	attackers.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", attackVariable, kind, target, addresses))
	attackers.Stderr = os.Stderr
	in := must1(attackers.StdinPipe())(t)
	out := must1(attackers.StdoutPipe())(t)
	must(t, attackers.Start())
	t.Cleanup(func() { _ = attackers.Process.Kill() })
	return func() (reached int) {
		must(t, in.Close())
		if _, err := fmt.Fscan(out, &reached); err != nil {
			t.Errorf("the attackers counted nothing: %v", err)
		}
		must(t, attackers.Wait())
		return reached
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
// a change until it receives the leader's next request for the same object. measure returns the
// 99th percentiles of the handshakes and the reviews.
func (b *bystander) measure(t *testing.T, during, bar string) map[string]time.Duration {
	t.Helper()
	dial, began := attack.From("127.0.0.1"), time.Now()
	var mu sync.Mutex
	var group sync.WaitGroup
	took := map[string][]time.Duration{}
	for what, do := range map[string]func(ctx context.Context) error{
		"handshakes": func(ctx context.Context) error { return attack.Handshake(ctx, dial, b.operator.Webhooks) },
		"reviews":    func(ctx context.Context) error { return review(ctx, dial, b.operator.Webhooks, "{}") },
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
	out := map[string]time.Duration{}
	for what, durations := range took {
		out[what] = reportHostile(what, during, bar, durations)
	}
	reportHostile("changes", during, "no bar", changes)
	reportHostile("leader-calls", during, "no bar", b.leaderCalls(t, began))
	return out
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

func reportHostile(what, during, bar string, took []time.Duration) (p99 time.Duration) {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	p99 = took[min(len(took)-1, len(took)*99/100)]
	unit := fmt.Sprintf("ms (%s; %d of them)", bar, len(took))
	harness.Report(fmt.Sprintf("hostile-%s-p50-%s", what, during), milliseconds(took[len(took)/2]), unit)
	harness.Report(fmt.Sprintf("hostile-%s-p99-%s", what, during), milliseconds(p99), unit)
	return p99
}

// useECDSA creates the certificate of the webhooks with an ECDSA key, as cert-manager can do, and
// returns the argument for the same certificate at the metrics port.
func useECDSA(t *testing.T, e *environment) []string {
	t.Helper()
	key := must1(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
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
