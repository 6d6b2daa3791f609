package e2e

// A hostile tenant has the ClusterRole edit in one namespace and can reach Services. It stores and
// posts objects that are expensive to read, both while the webhooks run and while they do not. The
// attacks affect only its own namespace.
//
//   - No container of the operator restarts or becomes unready, and none uses more than half of its
//     memory limit.
//   - Every change of an object in another namespace is applied, and the instance there loses no
//     request.
//   - No status, Event, or operand in one namespace mentions the other namespace, and none contains
//     the text of a Secret.
//
// Each attack has a minimum of objects or answers. The integration tests have the attacks that need
// no Pods: what schema and admission refuse (ratchet_test.go, workload_test.go, v1alpha1_test.go),
// forged records (records_test.go), and forged content (forged_test.go).

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// secretText is in Secrets, and must not appear anywhere else.
const secretText = "TEXTOFASECRET"

// scaled returns one of two values: that of the gate, or that of a full run.
func scaled[T any](gate, full T) T {
	if suite.full {
		return full
	}
	return gate
}

func testHostileTenant(t *testing.T) {
	attacker, other := newTenant(t), newNamespace(t, restricted)
	object := newInstance(t, other, "web", 1)
	load := startLoad(t, other, suite.reach.service(other, "web", 8080))

	// While no operator runs, the API server skips its admission. A restart of the operator is
	// enough.
	missed := missedReviews(t)
	scaleOperator(t, 0)
	for _, attack := range append(attacks(t, "unasked", object), writtenAttack{"many labels", labelObjects()}) {
		attacker.createAll(t, largeWriters, attack.objects)
	}
	if missedReviews(t) == missed {
		t.Error("the API server has missed no review without an operator, so the number of missed reviews shows nothing")
	}
	scaleOperator(t, 2)
	waitForInstall(t, suite.operatorNamespace)
	survivesLargeObjects(t, attacker, object)
	before := operatorProcesses(t)
	prober := startNeighbour(t, object)
	prober.endures(t, "what was stored without admission", func() {})

	for _, attack := range attacks(t, "asked", object) {
		prober.endures(t, attack.name, func() { attacker.createAll(t, largeWriters, attack.objects) })
	}
	if suite.local { // the test reaches Pods, and reads the audit log
		strangers(t, prober)
	}
	tenantSecretInStatus(t, attacker)
	prober.endures(t, "deletions of a child", func() { attacker.deleteChildren(t) })
	prober.endures(t, "many objects", func() { attacker.createAll(t, smallWriters, smallObjects()) })

	prober.finish(t, "beside a hostile tenant", 10)
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

// operatorProcess identifies a container of the operator, its restarts, and since when its Pod is
// ready.
type operatorProcess struct {
	uid      types.UID
	restarts int32
	ready    string
}

// operatorProcesses returns the containers of the operator by Pod name.
func operatorProcesses(t *testing.T) map[string]operatorProcess {
	t.Helper()
	pods, err := operatorPods(t.Context(), suite.operatorNamespace)
	must(t, err)
	out := map[string]operatorProcess{}
	for i := range pods {
		process := operatorProcess{uid: pods[i].UID}
		for _, status := range pods[i].Status.ContainerStatuses {
			process.restarts += status.RestartCount
		}
		for _, condition := range pods[i].Status.Conditions {
			if condition.Type == corev1.PodReady {
				process.ready = fmt.Sprintf("%s since %s", condition.Status, condition.LastTransitionTime)
			}
		}
		out[pods[i].Name] = process
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
