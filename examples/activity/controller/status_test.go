package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

var (
	began = metav1.NewTime(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))
	ended = metav1.NewTime(began.Add(5 * time.Second))
)

func podWith(phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{
			// What others inject says nothing about the command.
			{Name: "injected", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 99}}},
			{Name: containerName, State: state},
		}},
	}
}

func terminated(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: began, FinishedAt: ended,
	}}
}

// The status follows the process.
func TestComputeStatus(t *testing.T) {
	unschedulable := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{
		Phase:      corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}},
	}}
	evicted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory.",
	}}
	running := v1.ActivityStatus{Prosta: v1.Running, Pod: "p", StartTime: &began}
	final := v1.ActivityStatus{Prosta: v1.Failed, Pod: "p", ExitCode: ptr.To[int32](3), StartTime: &began, FinishTime: &ended, Message: "exit code 3"}
	for name, test := range map[string]struct {
		before v1.ActivityStatus
		pod    *corev1.Pod
		want   v1.ActivityStatus
	}{
		"just made": {
			pod:  &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}},
			want: v1.ActivityStatus{Prosta: v1.Pending, Pod: "p"},
		},
		"made after a quota was in the way": {
			before: v1.ActivityStatus{Prosta: v1.Pending, Message: "exceeded quota"},
			pod:    &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}},
			want:   v1.ActivityStatus{Prosta: v1.Pending, Pod: "p"},
		},
		"no node takes it": {pod: unschedulable, want: v1.ActivityStatus{Prosta: v1.Pending, Pod: "p", Message: "0/1 nodes are available"}},
		"no image": {
			pod:  podWith(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}),
			want: v1.ActivityStatus{Prosta: v1.Pending, Pod: "p", Message: "ErrImagePull: not found"},
		},
		"about to begin": {
			pod:  podWith(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}),
			want: v1.ActivityStatus{Prosta: v1.Pending, Pod: "p"},
		},
		"running":                     {pod: podWith(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}), want: running},
		"succeeded":                   {before: running, pod: podWith(corev1.PodSucceeded, terminated(0, "Completed")), want: v1.ActivityStatus{Prosta: v1.Succeeded, Pod: "p", ExitCode: ptr.To[int32](0), StartTime: &began, FinishTime: &ended}},
		"failed":                      {before: running, pod: podWith(corev1.PodFailed, terminated(3, "Error")), want: final},
		"ended while the Pod goes on": {before: running, pod: podWith(corev1.PodRunning, terminated(3, "Error")), want: final},
		"succeeded while the Pod goes on": {
			pod:  podWith(corev1.PodRunning, terminated(0, "Completed")),
			want: v1.ActivityStatus{Prosta: v1.Succeeded, Pod: "p", ExitCode: ptr.To[int32](0), StartTime: &began, FinishTime: &ended},
		},
		"out of memory": {
			pod:  podWith(corev1.PodFailed, terminated(137, "OOMKilled")),
			want: v1.ActivityStatus{Prosta: v1.Failed, Pod: "p", ExitCode: ptr.To[int32](137), StartTime: &began, FinishTime: &ended, Message: "exit code 137, OOMKilled"},
		},
		"a shell that is not there": {
			pod: podWith(corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 128, Reason: "StartError", Message: "no such file", FinishedAt: ended,
			}}),
			want: v1.ActivityStatus{Prosta: v1.Failed, Pod: "p", ExitCode: ptr.To[int32](128), FinishTime: &ended, Message: "StartError: no such file"},
		},
		"evicted before it began":     {pod: evicted, want: v1.ActivityStatus{Prosta: v1.Failed, Pod: "p", Message: "The node was low on resource: memory."}},
		"evicted while it ran":        {before: running, pod: evicted, want: v1.ActivityStatus{Prosta: v1.Failed, Pod: "p", StartTime: &began, Message: "The node was low on resource: memory."}},
		"failed without a word":       {pod: podWith(corev1.PodFailed, corev1.ContainerState{}), want: v1.ActivityStatus{Prosta: v1.Failed, Pod: "p", Message: "the Pod failed without a word of its container"}},
		"deleted while it ran":        {before: running, want: v1.ActivityStatus{Prosta: v1.Failed, Pod: "p", StartTime: &began, Message: `Pod "p" was deleted before its end was seen; an Activity does not run twice`}},
		"deleted after it had ended":  {before: final, want: final},
		"what is final does not move": {before: final, pod: podWith(corev1.PodRunning, corev1.ContainerState{}), want: final},
	} {
		if diff := cmp.Diff(test.want, computeStatus(test.before, test.pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An Event tells that the Pod was made, and one how it ended; nothing else does, and nothing twice.
func TestTold(t *testing.T) {
	running := v1.ActivityStatus{Prosta: v1.Running, Pod: "p"}
	succeeded := v1.ActivityStatus{Prosta: v1.Succeeded, Pod: "p"}
	for name, test := range map[string]struct {
		before, after v1.ActivityStatus
		want          []string
	}{
		"made":              {after: v1.ActivityStatus{Prosta: v1.Pending, Pod: "p"}, want: []string{"Normal Created"}},
		"made and seen run": {after: running, want: []string{"Normal Created"}},
		"seen at its end":   {after: succeeded, want: []string{"Normal Created", "Normal Succeeded"}},
		"begun":             {before: v1.ActivityStatus{Prosta: v1.Pending, Pod: "p"}, after: running},
		"ended":             {before: running, after: succeeded, want: []string{"Normal Succeeded"}},
		"failed":            {before: running, after: v1.ActivityStatus{Prosta: v1.Failed, Pod: "p"}, want: []string{"Warning Failed"}},
		"refused":           {after: v1.ActivityStatus{Prosta: v1.Failed}, want: []string{"Warning Failed"}},
		"nothing":           {before: succeeded, after: succeeded},
	} {
		var got []string
		for _, one := range told(test.before, test.after) {
			got = append(got, one.eventType+" "+one.reason)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A Pod is worth a pass when the status would say something else, or when it has to be let go.
func TestProcessChanged(t *testing.T) {
	base := podWith(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}})
	base.Finalizers = []string{finalizer}
	base.OwnerReferences = []metav1.OwnerReference{{Kind: "Activity", Name: "a", Controller: ptr.To(true)}}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing":                  {func(*corev1.Pod) {}, false},
		"a label":                  {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, false},
		"an address":               {func(p *corev1.Pod) { p.Status.PodIP = "192.0.2.1" }, false},
		"readiness":                {func(p *corev1.Pod) { p.Status.ContainerStatuses[1].Ready = true }, false},
		"another container":        {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount++ }, false},
		"let go":                   {func(p *corev1.Pod) { p.Finalizers = nil }, false},
		"its end":                  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		"deleted while it is held": {func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
	} {
		after := base.DeepCopy()
		test.change(after)
		if got := processChanged().Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: base, ObjectNew: after}); got != test.want {
			t.Errorf("%s: passed %t", name, got)
		}
	}
}
