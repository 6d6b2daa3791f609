package e2e

// A hostile tenant has the ClusterRole edit in one namespace and can reach Services. It stores and
// posts objects that are expensive to read, both while the webhooks run and while they do not. The
// attacks affect only its own namespace.
//
//   - No container of the operator restarts, and none uses more than half of its memory limit.
//   - Every change of an object in another namespace is applied within five seconds, and the
//     instance there loses no request.
//   - No status, Event, or operand in one namespace mentions the other namespace, and none contains
//     the text of a Secret.
//   - If the tenant damages the records on its own children, the operator still restores the
//     children.

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	// neighbourLimit is the time limit for a change in another namespace, including the write.
	neighbourLimit = 5 * time.Second
	// neighbourPause is the time between two changes. Without a pause, the neighbour's namespace
	// would lose its priority too (internal/operatormanager/queue.go).
	neighbourPause = time.Second
	// neighbourRounds is the minimum number of the neighbour's changes after each kind of attack.
	neighbourRounds = 3
	// smallObjects is the number of concurrently created objects. allSmallObjects is the number in
	// the full run.
	smallObjects, allSmallObjects = 200, 1000
	// largeWriters is the number of concurrent writers of objects that keep the API server busy for
	// seconds. smallWriters is the number for other objects.
	largeWriters, smallWriters = 4, 16
	// deletions is the number of consecutive deletions of a child.
	deletions = 50
	// reviewSize is the size of a ConversionReview in postReviews, in bytes.
	reviewSize = 700 << 20
	// secretText is in Secrets, and must not appear anywhere else.
	secretText = "TEXTOFASECRET"
)

// tenant is the attacker: a ServiceAccount with the ClusterRole edit in one namespace.
type tenant struct {
	client.Client
	namespace string
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	namespace := newNamespace(t, restricted)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant"}}
	must(t, suite.admin.Create(t.Context(), account))
	kubectl(t, "create", "rolebinding", "tenant", "-n", namespace, "--clusterrole=edit", "--serviceaccount="+namespace+":tenant")
	token := &authenticationv1.TokenRequest{}
	must(t, suite.admin.SubResource("token").Create(t.Context(), account, token))
	config, err := ctrl.GetConfig()
	must(t, err)
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.QPS, config.WarningHandler = token.Status.Token, -1, rest.NoWarnings{}
	api, err := client.New(config, client.Options{Scheme: operatormanager.NewScheme()})
	must(t, err)
	me := &tenant{api, namespace}
	waitFor(t, namespace, "the RBAC permissions of the tenant", patience, func(ctx context.Context) error {
		return me.List(ctx, &v1alpha2.NginxOperatorList{}, client.InNamespace(namespace))
	})
	return me
}

// try stores objects and returns the number of stored objects and the last refusal. A refusal of an
// object is expected. It is an error if the tenant has no permission to try. The API server has
// many errors for requests that it cannot read, so all other errors are refusals.
func (a *tenant) try(ctx context.Context, objects ...client.Object) (taken int, refusal, err error) {
	results := make([]error, len(objects))
	group := errgroup.Group{}
	group.SetLimit(largeWriters)
	for i, object := range objects {
		object.SetNamespace(a.namespace)
		group.Go(func() error {
			results[i] = a.Create(ctx, object)
			return nil
		})
	}
	_ = group.Wait()
	for i, result := range results {
		switch {
		case result == nil:
			taken++
		// Admission also returns Forbidden, so only RBAC's message identifies a missing permission.
		case strings.Contains(result.Error(), "cannot create resource"), apierrors.IsUnauthorized(result), apierrors.IsAlreadyExists(result):
			err = errors.Join(err, fmt.Errorf("%T %s: %w", objects[i], objects[i].GetName(), result))
		default:
			refusal = result
		}
	}
	return taken, refusal, err
}

// neighbour is an instance in another namespace, with a client that repeatedly changes an
// annotation in spec.service.
type neighbour struct {
	*background
	object *v1alpha2.NginxOperator

	mu sync.Mutex
	// slowest is the slowest change since the last call of goesOn. written is the duration of its
	// write.
	slowest, written time.Duration
}

func startNeighbour(t *testing.T, object *v1alpha2.NginxOperator) *neighbour {
	t.Helper()
	const annotation = "example.com/round"
	key := client.ObjectKeyFromObject(object)
	out := &neighbour{object: object}
	out.background = startBackground(t, "changes in another namespace", neighbourPause, func(ctx context.Context, n int) error {
		ctx, cancel := context.WithTimeout(ctx, neighbourLimit)
		defer cancel()
		began, written := time.Now(), time.Duration(0)
		defer func() { out.note(time.Since(began), written) }()
		patch := fmt.Appendf(nil, `{"spec":{"service":{"annotations":{%q:"%d"}}}}`, annotation, n)
		if err := suite.admin.Patch(ctx, newObject(key.Namespace, key.Name, 1), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		written = time.Since(began)
		return eventually(ctx, func(ctx context.Context) error {
			service := &corev1.Service{}
			if err := suite.admin.Get(ctx, key, service); err != nil {
				return err
			}
			if got := service.Annotations[annotation]; got != strconv.Itoa(n) {
				return fmt.Errorf("the Service has round %s instead of %d", got, n)
			}
			return nil
		})
	})
	return out
}

func (n *neighbour) note(took, written time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if took > n.slowest {
		n.slowest, n.written = took, written
	}
}

// goesOn waits until the neighbour has made more changes. The test fails if one of them fails.
func (n *neighbour) goesOn(t *testing.T, during string) {
	t.Helper()
	began := n.Counts()
	waitFor(t, n.object.Namespace, "changes in another namespace", patience, func(context.Context) error {
		if now := n.Counts(); now.Total < began.Total+neighbourRounds {
			return fmt.Errorf("%d changes", now.Total-began.Total)
		}
		return nil
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	t.Logf("FIGURE slowest change in another namespace, %s: %s, of which the write took %s", during, seconds(n.slowest), seconds(n.written))
	n.slowest = 0
	if now := n.Counts(); now.Failed > began.Failed {
		t.Errorf("%s: %d of %d changes in another namespace took more than %s: %v", during, now.Failed-began.Failed,
			now.Total-began.Total, neighbourLimit, now.Last)
	}
}

// operatorProcess identifies a container of the operator and its restarts.
type operatorProcess struct {
	uid      types.UID
	restarts int32
}

// operatorProcesses returns the containers of the operator by Pod name.
func operatorProcesses(t *testing.T) map[string]operatorProcess {
	t.Helper()
	pods, err := operatorPods(t.Context(), suite.operatorNamespace)
	must(t, err)
	out := map[string]operatorProcess{}
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			out[pods[i].Name] = operatorProcess{pods[i].UID, status.RestartCount}
		}
	}
	return out
}

// withinMemory requires that no process of the operator has used more than half of its memory
// limit. It reads the peak from the kernel, so it needs processes on this machine: only the local
// cluster has them.
func withinMemory(t *testing.T) {
	t.Helper()
	pods, err := operatorPods(t.Context(), suite.operatorNamespace)
	must(t, err)
	for i := range pods {
		_, container, _ := strings.Cut(pods[i].Status.ContainerStatuses[0].ContainerID, "containerd://")
		limit := pods[i].Spec.Containers[0].Resources.Limits.Memory().Value()
		out, err := command(t.Context(), "ctr", "tasks", "list")
		must(t, err)
		match := regexp.MustCompile(`(?m)^` + container + `\s+(\d+)\s`).FindStringSubmatch(out)
		if container == "" || limit == 0 || match == nil {
			t.Errorf("%s has container %q with a limit of %d, and is not found among the tasks:\n%s", pods[i].Name, container, limit, out)
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc", match[1], "status"))
		must(t, err)
		peak := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB`).FindSubmatch(status)
		if peak == nil {
			t.Errorf("process %s reports no peak of its memory", match[1])
			continue
		}
		used, err := strconv.ParseInt(string(peak[1]), 10, 64)
		must(t, err)
		t.Logf("FIGURE %s has used %d MiB of %d at most", pods[i].Name, used>>10, limit>>20)
		if used<<10 > limit/2 {
			t.Errorf("%s has used %d MiB, more than half of its limit of %d", pods[i].Name, used>>10, limit>>20)
		}
	}
}

func testHostileTenant(t *testing.T) {
	operator := suite.operatorNamespace
	attacker := newTenant(t)
	other := newNamespace(t, restricted)
	object := newInstance(t, other, "web", 1)
	load := startLoad(t, other, suite.reach.service(other, "web", 8080))

	// While no operator runs, the API server skips its admission. A restart of the operator is
	// enough.
	scaleOperator(t, 0)
	labels := labelObjects()
	stored := append(attacks(t, "unasked", object), attack{"many labels", labels, len(labels)})
	for _, attack := range stored {
		attacker.strike(t, attack)
	}
	scaleOperator(t, 2)
	waitForInstall(t, operator)
	before := operatorProcesses(t)
	prober := startNeighbour(t, object)
	prober.goesOn(t, "after what was stored without admission")

	for _, attack := range attacks(t, "asked", object) {
		attacker.strike(t, attack)
		prober.goesOn(t, attack.name)
	}
	strangers(t, prober)
	tenantRules(t, attacker)
	prober.goesOn(t, "while a tenant declares what is refused")
	tenantForgesContent(t, attacker)
	prober.goesOn(t, "while content is forged")
	tenantSecretInStatus(t, attacker)
	attacker.forgeRecords(t)
	prober.goesOn(t, "while the records on children are forged")
	attacker.deleteChildren(t)
	prober.goesOn(t, "while a child is deleted again and again")
	attacker.createMany(t)
	prober.goesOn(t, "while many objects are created")

	prober.finish(t, "beside a hostile tenant", 2*neighbourRounds)
	t.Logf("FIGURE slowest change in another namespace: %s", seconds(prober.Counts().Slowest))
	load.finish(t, other, "load beside a hostile tenant")
	if now := operatorProcesses(t); !maps.Equal(before, now) {
		t.Errorf("the operator was %v and is %v", before, now)
		keepReport(t, other)
	}
	if suite.local {
		withinMemory(t)
	}
	nothingOf(t, attacker.namespace, other)
	nothingOf(t, other, attacker.namespace)
	// The operator must handle the deletions too. One request of the API server cannot delete a
	// thousand objects, so the test retries.
	waitFor(t, attacker.namespace, "the end of all objects", 2*patience, func(ctx context.Context) error {
		return attacker.DeleteAllOf(ctx, &v1alpha2.NginxOperator{}, client.InNamespace(attacker.namespace))
	})
}

// strangers attacks the operator's ports from Pods without a token. Only on the local cluster can
// the test reach the addresses of Pods and read the audit log.
func strangers(t *testing.T, prober *neighbour) {
	t.Helper()
	if !suite.local {
		return
	}
	postReviews(t)
	for _, attack := range []struct {
		during string
		make   func(*testing.T)
	}{
		{"while strangers hold idle connections", strangerIdleConnections},
		{"while strangers send random tokens", strangerTokens},
		{"while strangers send bodies byte by byte", strangerSlowBodies},
		{"while strangers post reviews", strangerReviews},
		{"while a stranger posts reviews of another namespace", func(t *testing.T) { strangerDeputy(t, newStrangers(t, 1)[0]) }},
	} {
		began := time.Now()
		attack.make(t)
		prober.goesOn(t, attack.during)
		t.Logf("FIGURE %s: %s", attack.during, seconds(time.Since(began)))
	}
}

// strike stores the objects of one attack, and requires that enough of them are stored.
func (a *tenant) strike(t *testing.T, attack attack) {
	t.Helper()
	taken, refusal, err := a.try(t.Context(), attack.objects...)
	must(t, err)
	t.Logf("%s: %d of %d objects were taken, others refused: %.300v", attack.name, taken, len(attack.objects), refusal)
	if taken < attack.atLeast {
		t.Errorf("%s: only %d objects were taken, that shows nothing", attack.name, taken)
	}
}

// scaleOperator scales the operator. For 0 replicas, it waits until all Pods are gone.
func scaleOperator(t *testing.T, replicas int) {
	t.Helper()
	operator := suite.operatorNamespace
	kubectl(t, "scale", "deployment", operatorName, "-n", operator, fmt.Sprintf("--replicas=%d", replicas))
	if replicas > 0 {
		return
	}
	waitFor(t, operator, "no webhook to answer", patience, func(ctx context.Context) error {
		pods, err := operatorPods(ctx, operator)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("there are %d Pods", len(pods))
		}
		return err
	})
}

// postReviews posts oversized ConversionReviews to the conversion webhook, more of them than there
// are replicas. Any answer is fine.
func postReviews(t *testing.T) {
	t.Helper()
	url := fmt.Sprintf("https://%s-service.%s.svc.cluster.local/convert", operatorName, suite.operatorNamespace)
	group, ctx := errgroup.WithContext(t.Context())
	for range 4 {
		poster := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // #nosec G402 -- whom it reaches is not the question
		}}
		group.Go(func() error {
			body := io.MultiReader(strings.NewReader(`{"kind":"ConversionReview","request":{"uid":"`), io.LimitReader(endless('a'), reviewSize))
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
			if err != nil {
				return fmt.Errorf("failed to make a request: %w", err)
			}
			request.ContentLength = -1
			request.Header.Set("Content-Type", "application/json")
			if response, err := poster.Do(request); err == nil {
				_ = response.Body.Close()
			}
			return nil
		})
	}
	must(t, group.Wait())
}

// endless is a reader that repeats one byte without end.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// forgeRecords writes invalid records to the children of an instance, and requires that the
// operator restores each child anyway.
func (a *tenant) forgeRecords(t *testing.T) {
	t.Helper()
	victim := newInstance(t, a.namespace, victimName, 1)
	for _, record := range forgedRecords {
		for kind, apiVersion := range map[string]string{"Service": "v1", "NetworkPolicy": "networking.k8s.io/v1", "Deployment": "apps/v1"} {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"annotations": map[string]string{wellknown.AnnotationLastDeclared: record},
				"labels":      map[string]string{wellknown.LabelPartOf: "somebody-else"},
			}})
			must(t, err)
			target := objectOf(apiVersion, kind, victim.Name)
			target.SetNamespace(a.namespace)
			must(t, a.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, patch)))
			what := fmt.Sprintf("%s with the record %.40s to be restored", kind, record)
			waitFor(t, a.namespace, what, restoreLimit, func(ctx context.Context) error {
				if err := a.Get(ctx, client.ObjectKeyFromObject(target), target); err != nil {
					return err
				}
				if got := target.GetLabels()[wellknown.LabelPartOf]; got != wellknown.OperatorName {
					return fmt.Errorf("it is part of %s", got)
				}
				return nil
			})
		}
	}
	waitForReady(t, victim)
}

// deleteChildren deletes a child of an instance each time that the operator has recreated it.
func (a *tenant) deleteChildren(t *testing.T) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: victimName}}
	for range deletions {
		waitFor(t, a.namespace, "a child to delete", patience, func(ctx context.Context) error { return a.Delete(ctx, service.DeepCopy()) })
	}
}

// createMany creates many small objects concurrently.
func (a *tenant) createMany(t *testing.T) {
	t.Helper()
	count := smallObjects
	if suite.full {
		count = allSmallObjects
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(smallWriters)
	for i := range count {
		// The request to a busy API server may time out.
		group.Go(func() error {
			return eventually(ctx, func(ctx context.Context) error {
				return client.IgnoreAlreadyExists(a.Create(ctx, newObject(a.namespace, fmt.Sprintf("small-%d", i), 0)))
			})
		})
	}
	must(t, group.Wait())
}

// viewed maps each kind that a viewer of a namespace can read to its apiVersion.
var viewed = map[string]string{
	"NginxOperator": v1alpha2.GroupVersion.String(), "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1",
	"ConfigMap": "v1", "Service": "v1", "Pod": "v1", "Event": "v1",
}

// nothingOf requires that no object in namespace contains the name of the namespace other or the
// text of a Secret. It reads the viewed kinds, but only the ConfigMaps of the instances.
func nothingOf(t *testing.T, other, namespace string) {
	t.Helper()
	for kind, apiVersion := range viewed {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		options := []client.ListOption{client.InNamespace(namespace)}
		if kind == "ConfigMap" {
			instances, err := labels.Parse(wellknown.LabelInstance + " in (web," + victimName + ")")
			must(t, err)
			options = append(options, client.MatchingLabelsSelector{Selector: instances})
		}
		must(t, suite.admin.List(t.Context(), list, options...))
		for i := range list.Items {
			raw, err := list.Items[i].MarshalJSON()
			must(t, err)
			for _, text := range []string{other, secretText} {
				if strings.Contains(string(raw), text) {
					t.Errorf("%s %s in %s has %s in it: %.2000s", kind, list.Items[i].GetName(), namespace, text, raw)
				}
			}
		}
	}
}
