package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

// TestDesiredPod checks that the Pods of Activities match the files in testdata.
func TestDesiredPod(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "activity-sample", UID: "0001"}
	for name, spec := range map[string]v1.ActivitySpec{
		"command": {Command: "true"},
		"everything": {
			Command: "sleep 5 && echo done in $PWD as $(id -u) with $GREETING", Host: "node-1", Execuser: "1000:2000", Execcwd: "/tmp",
			Envs: []string{"EMPTY=", "EQUALS=a=b", "DOLLAR=$(GREETING) $$ $HOME"},
		},
	} {
		got, err := yaml.Marshal(desiredPod(&v1.Activity{ObjectMeta: meta, Spec: spec}, defaultImage))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Clean("../testdata/pod-" + name + ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPodName checks that the name is a valid host name, and that it differs between Activities of
// the same name.
func TestPodName(t *testing.T) {
	for _, name := range []string{"a", strings.Repeat("a", 253), strings.Repeat("a", 51) + ".b", strings.Repeat("a.", 30) + "b"} {
		got := podName(&v1.Activity{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "0001"}})
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 || len(got) > 63 {
			t.Errorf("%s: %s, %d characters: %v", name, got, len(got), problems)
		}
		if other := podName(&v1.Activity{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "0002"}}); other == got {
			t.Errorf("%s: two Activities have the Pod %s", name, got)
		}
	}
}

// TestComputeStatus checks that the status depends on the process and not on other containers in
// the Pod.
func TestComputeStatus(t *testing.T) {
	began, ended := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(1005, 0))
	pod := func(phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
		out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: phase}}
		injected := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 99}}
		out.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "injected", State: injected}, {Name: container, State: state}}
		return out
	}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	terminated := func(code int32, reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message, StartedAt: began, FinishedAt: ended,
		}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
	unscheduled := func(reason, message string) *corev1.Pod {
		out := pod(corev1.PodPending, corev1.ContainerState{})
		out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: reason, Message: message}}
		return out
	}
	evicted := pod(corev1.PodFailed, corev1.ContainerState{})
	evicted.Status.Reason, evicted.Status.Message = "Evicted", "The node was low on memory"
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		want    v1.Prosta
		message string
		exit    int32
	}{
		"gated":            {unscheduled(corev1.PodReasonSchedulingGated, "gated"), v1.Pending, "", -1},
		"unschedulable":    {unscheduled(corev1.PodReasonUnschedulable, "no node"), v1.Pending, "no node", -1},
		"no image":         {pod(corev1.PodPending, waiting("ErrImagePull", "not found")), v1.Pending, "not found", -1},
		"about to start":   {pod(corev1.PodPending, waiting("ContainerCreating", "")), v1.Pending, "", -1},
		"running":          {pod(corev1.PodRunning, running), v1.Running, "", -1},
		"succeeded":        {pod(corev1.PodSucceeded, terminated(0, "Completed", "")), v1.Succeeded, "", 0},
		"failed":           {pod(corev1.PodFailed, terminated(3, "Error", "")), v1.Failed, "exit code 3", 3},
		"Pod goes on":      {pod(corev1.PodRunning, terminated(0, "Completed", "")), v1.Succeeded, "", 0},
		"Pod goes on, bad": {pod(corev1.PodRunning, terminated(3, "Error", "")), v1.Failed, "exit code 3", 3},
		"out of memory":    {pod(corev1.PodFailed, terminated(137, "OOMKilled", "")), v1.Failed, "exit code 137, OOMKilled", 137},
		"no shell":         {pod(corev1.PodFailed, terminated(128, "StartError", "no such file")), v1.Failed, "no such file", 128},
		"evicted":          {evicted, v1.Failed, "The node was low on memory", -1},
		"says nothing":     {pod(corev1.PodFailed, corev1.ContainerState{}), v1.Failed, "the Pod failed", -1},
	} {
		got := computeStatus(v1.ActivityStatus{Message: "exceeded quota"}, test.pod)
		want := v1.ActivityStatus{Prosta: test.want, Message: test.message, Pod: "p"}
		if test.want == v1.Running || test.exit >= 0 {
			want.StartTime = &began
		}
		if test.exit >= 0 {
			want.ExitCode, want.FinishTime = &test.exit, &ended
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
