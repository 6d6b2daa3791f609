//go:build bench

package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// operatorName is the name of the operator's Deployment and of its ServiceAccount.
	operatorName = "nginx-operator-controller-manager"
	// maxProcessorTime and maxWithReplicas are the limits for one object without replicas and with
	// two, summed over all replicas of the operator. The status of a Deployment with replicas changes
	// several times.
	maxProcessorTime = 10 * time.Millisecond
	maxWithReplicas  = 16 * time.Millisecond
	clusterPatience  = 5 * time.Minute
)

// TestCreateOnCluster runs compareCreation on the local cluster, where all controllers run, with
// the operator that OLM installed. The Pods of the instances run on a fake Node.
func TestCreateOnCluster(t *testing.T) {
	e := newClusterEnvironment(t)
	e.startFakeNode(t)
	e.placement = onFakeNode()
	// OLM would restore the replicas of the operator, and the conversion webhook of the CRD. It
	// restores them at the end: not in a cleanup, where the context of the test has ended.
	e.scale(t, "olm", "olm-operator", 0)
	defer e.scale(t, "olm", "olm-operator", 1)
	defer e.scaleOperator(t, 2)
	e.scaleOperator(t, 0)
	operator := subject{
		metrics: "cluster-create", maxProcessorTime: maxProcessorTime,
		start: func() running {
			e.scaleOperator(t, 2)
			pids := e.operatorProcesses(t)
			return running{
				processorTime: func() (sum time.Duration) {
					for _, pid := range pids {
						sum += processorTime(t, pid)
					}
					return sum
				},
				stop: func() { e.scaleOperator(t, 0) },
			}
		},
		clean:     func(namespace string) { e.deleteNamespace(t, namespace) },
		apiServer: func() time.Duration { return e.apiServerTime(t) },
		auditLog:  os.Getenv("CLUSTER_AUDIT_LOG"),
	}.sized(t, 5)
	results := []result{e.compareCreation(t, operator, 0)}
	operator.maxProcessorTime = maxWithReplicas
	results = append(results, e.compareCreation(t, operator, 2))
	e.waitForDeletions(t) // Pods end as long as the fake Node exists
	writeTable(t, "cluster-create", results)
}

// newClusterEnvironment connects to the cluster of the kubeconfig.
func newClusterEnvironment(t *testing.T) *environment {
	t.Helper()
	config := must1(ctrl.GetConfig())(t)
	clients := must1(kubernetes.NewForConfig(config))(t)
	// The bare client uses the operator's identity, so that the API server treats both alike.
	accounts := clients.CoreV1().ServiceAccounts(operatorNamespace)
	token := must1(accounts.CreateToken(t.Context(), operatorName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	operator := rest.AnonymousClientConfig(config)
	operator.BearerToken = token.Status.Token
	return newClients(t, config, operator)
}

// scale sets the replicas of a Deployment.
func (e *environment) scale(t *testing.T, namespace, name string, replicas int32) {
	t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	must(t, e.admin.Patch(t.Context(), deployment, patch))
	waitFor(t, clusterPatience, func() error {
		err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)
		status := deployment.Status
		if err == nil && (status.ObservedGeneration != deployment.Generation || status.Replicas != replicas || status.ReadyReplicas != replicas) {
			err = fmt.Errorf("%d replicas of %s, %d of them ready, want %d", status.Replicas, name, status.ReadyReplicas, replicas)
		}
		return err
	})
}

// scaleOperator scales the operator. It waits until all replicas are ready and one of them leads,
// or, for 0 replicas, until no Pod is left.
func (e *environment) scaleOperator(t *testing.T, replicas int32) {
	t.Helper()
	e.scale(t, operatorNamespace, operatorName, replicas)
	waitFor(t, clusterPatience, func() error {
		pods := e.operatorPods(t)
		if len(pods) != int(replicas) {
			return fmt.Errorf("%d Pods of the operator, want %d", len(pods), replicas)
		}
		leads := false
		for i := range pods {
			leads = leads || strings.HasPrefix(e.leader(t), pods[i].Name+"_")
		}
		if replicas > 0 && !leads {
			return errors.New("no replica leads")
		}
		return nil
	})
}

func (e *environment) operatorPods(t *testing.T) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	must(t, e.admin.List(t.Context(), pods, client.InNamespace(operatorNamespace), client.MatchingLabels{
		"app.kubernetes.io/component": "controller-manager",
	}))
	return pods.Items
}

// operatorProcesses returns the process IDs of the operator's replicas. They run on this machine.
func (e *environment) operatorProcesses(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, pod := range e.operatorPods(t) {
		pids = append(pids, containerProcess(t, pod.Status.ContainerStatuses[0].ContainerID))
	}
	return pids
}

// containerProcess returns the ID of the first process of a container on this machine.
func containerProcess(t *testing.T, id string) int {
	t.Helper()
	tasks := must1(exec.CommandContext(t.Context(), "ctr", "tasks", "list").Output())(t)
	_, container, _ := strings.Cut(id, "containerd://")
	match := regexp.MustCompile(`(?m)^` + container + `\s+(\d+)\s`).FindSubmatch(tasks)
	if container == "" || match == nil {
		t.Fatalf("container %q is not found among the tasks:\n%s", container, tasks)
	}
	return must1(strconv.Atoi(string(match[1])))(t)
}

// withChildren returns a process ID and those of its child processes.
func withChildren(t *testing.T, pid int) []int {
	t.Helper()
	pids := []int{pid}
	for child := range strings.FieldsSeq(string(must1(os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid)))(t))) {
		pids = append(pids, must1(strconv.Atoi(child))(t))
	}
	return pids
}

// deleteNamespace starts to delete a namespace with its contents. waitForDeletions waits for its
// end.
func (e *environment) deleteNamespace(t *testing.T, name string) {
	t.Helper()
	e.deleteAll(t, name)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, e.admin.Delete(t.Context(), namespace, &client.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	e.deleting = append(e.deleting, name)
}
