//go:build bench

package bench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// fakeNodeName is the name of the fake Node, and the value of its label kubernetes.io/hostname.
const fakeNodeName = "fake"

// fakeNodeTaint keeps the Pods of all other programs away from the fake Node.
var fakeNodeTaint = corev1.Taint{Key: "kwok.x-k8s.io/node", Value: "fake", Effect: corev1.TaintEffectNoSchedule}

// startFakeNode adds a Node without a machine to the cluster, because the Pods of a measurement are
// more than a machine can run. kwok plays the kubelet: it reports each Pod of the Node as running
// and ready, renews the Lease of the Node every ten seconds, and writes the status of the Node
// about every 15 minutes. All other controllers and the scheduler are real. The processor time of
// kwok is not that of the operator. startFakeNode returns when the Node is ready. The cleanup of
// the test removes it.
func (e *environment) startFakeNode(t *testing.T) {
	t.Helper()
	module := exec.CommandContext(t.Context(), "go", "list", "-m", "-f={{.Dir}}", "sigs.k8s.io/kwok")
	module.Dir = filepath.Join("..", "..", "hack", "tools", "kwok")
	dir := must1(module.Output())(t)
	args := []string{"--kubeconfig=" + os.Getenv("KUBECONFIG"), "--manage-single-node=" + fakeNodeName, "--node-lease-duration-seconds=40"}
	for _, stage := range []string{
		"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready", "pod/fast/pod-delete",
	} {
		args = append(args, "--config="+filepath.Join(strings.TrimSpace(string(dir)), "kustomize", "stage", stage+".yaml"))
	}
	log := must1(os.Create(filepath.Join(t.TempDir(), "kwok.log")))(t)
	t.Cleanup(func() { must(t, log.Close()) })
	kwok := exec.Command("kwok", args...)
	kwok.Stdout, kwok.Stderr = log, log
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fakeNodeName, Labels: map[string]string{corev1.LabelHostname: fakeNodeName}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{fakeNodeTaint}},
	}
	must(t, client.IgnoreAlreadyExists(e.admin.Create(t.Context(), node)))
	t.Cleanup(func() { must(t, e.admin.Delete(context.Background(), node)) }) // the context of the test has ended
	must(t, kwok.Start())
	t.Cleanup(func() {
		must(t, kwok.Process.Kill())
		_ = kwok.Wait() // it was killed
	})
	waitFor(t, time.Minute, func() error {
		if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		said, _ := os.ReadFile(log.Name())
		return errors.New("the fake Node is not ready; kwok: " + string(said))
	})
}

// onFakeNode returns the placement of Pods on the fake Node.
func onFakeNode() *v1alpha2.PodTemplate {
	return &v1alpha2.PodTemplate{
		NodeSelector: map[string]string{corev1.LabelHostname: fakeNodeName},
		Tolerations: []corev1.Toleration{
			{Key: fakeNodeTaint.Key, Operator: corev1.TolerationOpExists, Effect: fakeNodeTaint.Effect},
		},
	}
}
