package e2e

// The operator itself.
//
//   - Only clients with the metrics ClusterRole can read the metrics, over HTTPS.
//   - A new instance costs one write for each child and at most two status writes until it is ready
//     (requests_test.go).
//   - If the operator's default image cannot be pulled, the status reports that within seconds, and
//     the operator rolls back.
//   - If the leader stops, another replica leads before the Lease expires. If it is killed, another
//     replica leads within 20 s (migration_test.go). The new leader reconciles.
//   - If an optional kind is served from now on, the leader ends its process without an error, and the
//     standby does not.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

func testMetrics(t *testing.T) {
	namespace := newNamespace(t, restricted)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "scraper"}}
	must(t, suite.admin.Create(t.Context(), account))
	stranger := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stranger"}}
	must(t, suite.admin.Create(t.Context(), stranger))
	binding := &rbacv1.ClusterRoleBinding{
		// The cleanup after an aborted run finds the binding by this prefix.
		ObjectMeta: metav1.ObjectMeta{GenerateName: "nginx-operator-e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	must(t, suite.admin.Create(t.Context(), binding))
	t.Cleanup(func() {
		if err := suite.admin.Delete(context.Background(), binding); err != nil {
			t.Errorf("failed to delete the binding: %v", err)
		}
	})
	url := ""
	scrape := func(ctx context.Context, account *corev1.ServiceAccount) (int, string, error) {
		token := &authenticationv1.TokenRequest{}
		if account != nil {
			if err := suite.admin.SubResource("token").Create(ctx, account, token); err != nil {
				return 0, "", err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		if url == "" {
			url = forward(t, suite.operatorNamespace, "service/"+metricsService, 8443)
		}
		status, body, err := harness.GetMetrics(ctx, url, token.Status.Token)
		if err != nil {
			url = "" // kubectl ends with a connection that the Pod has closed
		}
		return status, body, err
	}
	// The operator caches the API server's authorization decisions, so the binding takes effect
	// late.
	waitFor(t, suite.operatorNamespace, "metrics", patience, func(ctx context.Context) error {
		status, body, err := scrape(ctx, account)
		if err == nil && (status != http.StatusOK || !strings.Contains(body, "nginx_operator_cache_synced")) {
			err = fmt.Errorf("the answer is %d: %.500s", status, body)
		}
		return err
	})
	for _, test := range []struct {
		who    string
		as     *corev1.ServiceAccount
		status int
	}{{"without a token", nil, http.StatusUnauthorized}, {"without the permission", stranger, http.StatusForbidden}} {
		var status int
		var body string
		waitFor(t, suite.operatorNamespace, "metrics", patience, func(ctx context.Context) (err error) {
			status, body, err = scrape(ctx, test.as)
			return err
		})
		if status != test.status || strings.Contains(body, "nginx_operator") {
			t.Errorf("%s: the answer is %d instead of %d: %.200s", test.who, status, test.status, body)
		}
	}
}

// forward forwards a port of a target in the cluster until the end of the test, and returns its
// HTTPS address. The API server's proxy would not pass on the token.
func forward(t *testing.T, namespace, target string, port int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", "port-forward", "-n", namespace, target, fmt.Sprintf(":%d", port))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	forwarding := regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+)`)
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has killed it
	for lines.Scan() {
		if match := forwarding.FindStringSubmatch(lines.Text()); match != nil {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return "https://" + match[1]
		}
	}
	fatal(t, namespace, "kubectl port-forward ended: %s", stderr.String())
	return ""
}

// missingImage is an image that no registry has.
const missingImage = "ghcr.io/example/no-such-image:v0"

// badImageLimit bounds the time until the status reports an image that cannot be pulled. The time
// starts when the status reports the rollout of that image.
const badImageLimit = 20 * time.Second

func testBadImage(t *testing.T) {
	operator := suite.operatorNamespace
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	pods, image := uidsOf(t, object), object.Status.Image
	load := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))

	setOperatorEnv(t, "RELATED_IMAGE_NGINX", missingImage)
	restart := waitFor(t, namespace, "a rollout of the image", installPatience, func(ctx context.Context) error {
		return hasCondition(ctx, object, v1alpha2.ConditionReady, metav1.ConditionFalse, "")
	})
	took := waitForDegraded(t, object, v1alpha2.ReasonRolledBack)
	t.Logf("FIGURE bad image: the operator that has it leads %s after the change of the Subscription; taken back %s later",
		seconds(restart), seconds(took))
	if took > badImageLimit {
		t.Errorf("the bad image took %s to show in the status", seconds(took))
	}
	if message := object.Status.BlockedBy[0].Message; !strings.Contains(message, missingImage) {
		t.Errorf("the message does not name the image: %s", message)
	}
	now := uidsOf(t, object)
	for _, pod := range pods {
		if !slices.Contains(now, pod) {
			t.Error("a Pod that served was taken away")
		}
	}

	setOperatorEnv(t, "", "")
	waitForRecovery(t, object)
	if object.Status.Image != image {
		t.Errorf("the image is %s, it was %s", object.Status.Image, image)
	}
	waitForInstall(t, operator)
	load.finish(t, namespace, "load while an image cannot be pulled, and through two rollouts of the operator")
	if left := uidsOf(t, object); !slices.Equal(left, pods) {
		t.Errorf("the Pods were %v and are %v", pods, left)
	}
}

// setOperatorEnv sets an environment variable of the operator through its Subscription. An empty
// name removes all variables.
func setOperatorEnv(t *testing.T, name, value string) {
	t.Helper()
	update(t, olmObject("Subscription", suite.operatorNamespace, packageName), func(subscription *unstructured.Unstructured) {
		if name == "" {
			unstructured.RemoveNestedField(subscription.Object, "spec", "config")
			return
		}
		env := []any{map[string]any{"name": name, "value": value}}
		if err := unstructured.SetNestedSlice(subscription.Object, env, "spec", "config", "env"); err != nil {
			t.Fatal(err)
		}
	})
}

// stopLimit bounds the change of leader after a clean stop, and killLimit after a kill. A Lease
// that the leader does not release expires after 15 seconds. `make bench` has the exact bars.
const stopLimit, killLimit = 10 * time.Second, 20 * time.Second

func testLeaderStops(t *testing.T) {
	operator := suite.operatorNamespace
	before := harness.Must1(stopLeader(t.Context()))(t)
	after, took := waitForOtherLeader(t, operator, before)
	t.Logf("FIGURE leader stopped: %s leads after %s", after, seconds(took))
	if took > stopLimit {
		t.Errorf("the change of leader took %s", seconds(took))
	}
	operatorWorks(t)
	waitForInstall(t, operator)
}

// testServedKinds waits for the end of the leader's first five minutes.
func testServedKinds(t *testing.T) {
	operator := suite.operatorNamespace
	before := harness.Must1(leader(t.Context(), operator))(t)
	installPrometheusCRDs(t)
	var after string
	took := waitFor(t, operator, "another leader", 5*time.Minute+patience, func(ctx context.Context) (err error) {
		if after, err = leader(ctx, operator); err == nil && after == before {
			err = fmt.Errorf("%s still leads", before)
		}
		return err
	})
	t.Logf("FIGURE optional kind installed: another replica leads after %s", seconds(took))
	operatorWorks(t)
	for identity, restarts := range map[string]int32{before: 1, after: 0} {
		name, _, _ := strings.Cut(identity, "_")
		waitFor(t, operator, "the container of "+name, patience, func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := suite.admin.Get(ctx, client.ObjectKey{Namespace: operator, Name: name}, pod); err != nil {
				return err
			}
			status := pod.Status.ContainerStatuses[0]
			if ended := status.LastTerminationState.Terminated; status.RestartCount != restarts || ended != nil && ended.ExitCode != 0 {
				return fmt.Errorf("restarted %d times, want %d: %+v", status.RestartCount, restarts, ended)
			}
			return nil
		})
	}
}

// stopLeader deletes the Pod of the leader, and returns its identity.
func stopLeader(ctx context.Context) (string, error) {
	identity, err := leader(ctx, suite.operatorNamespace)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(identity, "_")
	return identity, suite.admin.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: suite.operatorNamespace, Name: name}})
}

// killLeader kills the process of the replica with this Lease identity.
func killLeader(t *testing.T, operator, identity string) {
	t.Helper()
	name, _, _ := strings.Cut(identity, "_")
	pod := &corev1.Pod{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operator, Name: name}, pod))
	killContainer(t, pod, pod.Status.ContainerStatuses[0].Name)
}

// killContainer kills the process of a container, which the kubelet restarts.
func killContainer(t *testing.T, pod *corev1.Pod, name string) {
	t.Helper()
	id := statusOf(pod, name).ContainerID
	_, container, found := strings.Cut(id, "containerd://")
	if !found {
		t.Fatalf("container %s of %s is %q", name, pod.Name, id)
	}
	_, err := command(t.Context(), "ctr", "tasks", "kill", "--signal=SIGKILL", container)
	must(t, err)
}

// operatorWorks requires a new instance to become ready and to serve.
func operatorWorks(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t, restricted)
	newInstance(t, namespace, "web", 1)
	serviceServes(t, namespace, "web", 8080)
}
