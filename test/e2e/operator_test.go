package e2e

// The operator itself.
//
//   - Metrics are served over HTTPS to who has the ClusterRole for it, and to nobody else.
//   - A new instance costs one write for each child and at most two for the status, until it is ready.
//   - An image of the operator's own that cannot be pulled shows in the status within seconds, and is taken back.
//   - When the leader stops, another one leads within 2 s; when it is killed, within 20 s; it works then.
//   - Instances outlive an uninstallation, and a reinstallation picks them up with the same Pods and does what was changed
//     meanwhile. No request is lost.

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
	"k8s.io/utils/ptr"
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
		// The cleanup after an aborted run knows it by the beginning of its name.
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
	url := forward(t, suite.operatorNamespace, "service/"+metricsService, 8443)
	scrape := func(ctx context.Context, account *corev1.ServiceAccount) (int, string, error) {
		token := &authenticationv1.TokenRequest{}
		if account != nil {
			if err := suite.admin.SubResource("token").Create(ctx, account, token); err != nil {
				return 0, "", err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return harness.GetMetrics(ctx, url, token.Status.Token)
	}
	// The operator caches what the API server decides, so the binding may take a moment.
	waitFor(t, suite.operatorNamespace, "metrics", patience, func(ctx context.Context) error {
		status, body, err := scrape(ctx, account)
		if err == nil && (status != http.StatusOK || !strings.Contains(body, `nginx_operator_objects{ready="True"}`)) {
			err = fmt.Errorf("the answer is %d: %.500s", status, body)
		}
		return err
	})
	for _, test := range []struct {
		who    string
		as     *corev1.ServiceAccount
		status int
	}{{"without a token", nil, http.StatusUnauthorized}, {"without the permission", stranger, http.StatusForbidden}} {
		status, body, err := scrape(t.Context(), test.as)
		must(t, err)
		if status != test.status || strings.Contains(body, "nginx_operator") {
			t.Errorf("%s: the answer is %d instead of %d: %.200s", test.who, status, test.status, body)
		}
	}
}

// forward makes a port of something in the cluster reachable until the end of the test and returns its HTTPS address.
// Through the API server's proxy the token would not arrive.
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
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed it
	for lines.Scan() {
		if match := forwarding.FindStringSubmatch(lines.Text()); match != nil {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return "https://" + match[1]
		}
	}
	fatal(t, namespace, "kubectl port-forward ended: %s", stderr.String())
	return ""
}

// missingImage cannot be pulled anywhere.
const missingImage = "ghcr.io/example/no-such-image:v0"

// badImageLimit is what "within seconds" means for an image that cannot be pulled, counted from when the operator that
// knows of it leads.
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

// setOperatorEnv sets an environment variable of the operator through its Subscription, or takes all of them back.
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

func testLeaderStops(t *testing.T) {
	operator := suite.operatorNamespace
	inTime(t, 2*time.Second, func() time.Duration {
		before, err := leader(t.Context(), operator)
		must(t, err)
		name, _, _ := strings.Cut(before, "_")
		must(t, suite.admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: name}}))
		after, took := waitForOtherLeader(t, operator, before)
		t.Logf("FIGURE leader stopped: %s leads after %s", after, seconds(took))
		operatorWorks(t)
		waitForInstall(t, operator)
		return took
	})
}

// testLeaderIsKilled kills the process of the leader, which then cannot give the Lease back. For that it has to be on
// the node, so it is for the local cluster only.
func testLeaderIsKilled(t *testing.T) {
	operator := suite.operatorNamespace
	before, err := leader(t.Context(), operator)
	must(t, err)
	killLeader(t, operator, before)
	after, took := waitForOtherLeader(t, operator, before)
	t.Logf("FIGURE leader killed: %s leads after %s", after, seconds(took))
	if took > 20*time.Second {
		t.Errorf("the change of leader took %s", seconds(took))
	}
	operatorWorks(t)
	waitForInstall(t, operator)
}

// killLeader kills the process of the replica that has the identity of a Lease.
func killLeader(t *testing.T, operator, identity string) {
	t.Helper()
	name, _, _ := strings.Cut(identity, "_")
	pod := &corev1.Pod{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: operator, Name: name}, pod))
	_, container, found := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	if !found {
		t.Fatalf("the container of %s is %q", name, pod.Status.ContainerStatuses[0].ContainerID)
	}
	_, err := command(t.Context(), "ctr", "tasks", "kill", "--signal=SIGKILL", container)
	must(t, err)
}

// operatorWorks requires a new instance to become ready.
func operatorWorks(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t, restricted)
	newInstance(t, namespace, "web", 1)
	serviceServes(t, namespace, "web", 8080)
}

func testReinstall(t *testing.T) {
	operator := suite.operatorNamespace
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	pods := uidsOf(t, object)
	load := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))

	uninstall(t, operator)
	// Without the operator nothing converts, so only the version that is stored can be read and written.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
	holds(t, namespace, "an instance changed while nobody looks after it", 2*time.Second, func(ctx context.Context) error {
		now, err := podsOf(ctx, object)
		if err == nil && len(now) != len(pods) {
			err = fmt.Errorf("there are %d Pods", len(now))
		}
		return err
	})
	if left := uidsOf(t, object); !slices.Equal(left, pods) {
		t.Errorf("the Pods were %v and are %v without the operator", pods, left)
	}

	applyManifest(t, operator, harness.SubscriptionManifest)
	installed := waitForInstall(t, operator)
	took := waitForReady(t, object)
	t.Logf("FIGURE reinstall: %s, the change made meanwhile is done %s later", seconds(installed), seconds(took))
	now := uidsOf(t, object)
	if len(now) != 3 {
		t.Errorf("there are %d Pods instead of 3", len(now))
	}
	for _, pod := range pods {
		if !slices.Contains(now, pod) {
			t.Error("a Pod that served was replaced")
		}
	}
	load.finish(t, namespace, "load through uninstallation and reinstallation")
}
