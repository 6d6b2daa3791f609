package nginxoperator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/apply"
)

// The status for everything that can be observed, as users see it.
func TestStatus(t *testing.T) {
	half := func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1 }
	rolling := func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.Conditions[0].Reason = 3, 1, "ReplicaSetUpdated"
	}
	failing := func(d *appsv1.Deployment) { rolling(d); d.Status.UpdatedReplicas = 1 }
	stalled := func(d *appsv1.Deployment) {
		rolling(d)
		d.Status.Conditions[0].Status, d.Status.Conditions[0].Reason, d.Status.Conditions[0].Message = corev1.ConditionFalse, "ProgressDeadlineExceeded", "has timed out"
	}
	for name, test := range map[string]struct {
		state    observed
		applying *failure
	}{
		"nothing-yet":   {},
		"not-seen-yet":  {state: observed{deployment: newDeployment(2, func(d *appsv1.Deployment) { d.Generation = 8 })}},
		"complete":      {state: observed{deployment: newDeployment(2)}},
		"zero":          {state: observed{deployment: newDeployment(0)}},
		"rolling":       {state: observed{deployment: newDeployment(2, rolling)}},
		"lost-a-pod":    {state: observed{deployment: newDeployment(2, half)}},
		"name-conflict": {applying: applyFailure(&apply.NotOurs{Kind: "Service", Name: "web"})},
		"predecessor":   {applying: applyFailure(&apply.NotOurs{Kind: "Service", Name: "web", Predecessor: true})},
		"image-missing": {state: observed{deployment: newDeployment(2, failing), pods: []*corev1.Pod{newPod(waiting("ErrImagePull", "not found"))}}},
		"image-missing-for-long": {state: observed{
			deployment: newDeployment(2, stalled), pods: []*corev1.Pod{newPod(waiting("ErrImagePull", "not found"))},
		}},
		"stalled": {state: observed{deployment: newDeployment(2, stalled)}},
		// Only a Pod that nobody needs any more fails: all replicas serve.
		"complete-with-a-failing-pod": {state: observed{deployment: newDeployment(2), pods: []*corev1.Pod{newPod(waiting("ErrImagePull", "not found"))}}},
	} {
		t.Run(name, func(t *testing.T) {
			status := computeStatus(newObject(), inputs{image: testImage}, test.state, test.applying)
			for i := range status.Conditions {
				if status.Conditions[i].LastTransitionTime.IsZero() {
					t.Errorf("%s has no time", status.Conditions[i].Type)
				}
				status.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			raw, err := yaml.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "status-"+name+".yaml", string(raw))
		})
	}
}

// Conditions that did not change keep the time of their transition.
func TestStatusKeepsTimes(t *testing.T) {
	object := newObject()
	old := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	object.Status = computeStatus(object, inputs{image: testImage}, observed{deployment: newDeployment(2)}, nil)
	for i := range object.Status.Conditions {
		object.Status.Conditions[i].LastTransitionTime = old
	}
	same := computeStatus(object, inputs{image: testImage}, observed{deployment: newDeployment(2)}, nil)
	if diff := cmp.Diff(object.Status, same); diff != "" {
		t.Errorf("nothing happened, and the status changed:\n%s", diff)
	}
	lost := computeStatus(object, inputs{image: testImage}, observed{}, nil)
	if ready := meta.FindStatusCondition(lost.Conditions, v1alpha1.ConditionReady); !ready.LastTransitionTime.After(old.Time) {
		t.Error("Ready fell without a time")
	}
	if degraded := meta.FindStatusCondition(lost.Conditions, v1alpha1.ConditionDegraded); !degraded.LastTransitionTime.Equal(&old) {
		t.Error("Degraded did not change and has a new time")
	}
}

func TestApplyFailure(t *testing.T) {
	resource, kind := schema.GroupResource{Group: "apps", Resource: "deployments"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}
	terminating := apierrors.NewForbidden(resource, "web", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for want, err := range map[string]error{
		"":                                  nil,
		v1alpha1.ReasonNameConflict:         &apply.NotOurs{Kind: "Deployment", Name: "web"},
		v1alpha1.ReasonQuotaExceeded:        apierrors.NewForbidden(resource, "web", errors.New("exceeded quota: q")),
		v1alpha1.ReasonForbidden:            apierrors.NewForbidden(resource, "web", errors.New("not you")),
		v1alpha1.ReasonNamespaceTerminating: terminating,
		v1alpha1.ReasonInvalidChild:         apierrors.NewInvalid(kind, "web", field.ErrorList{field.Required(field.NewPath("spec"), "")}),
		v1alpha1.ReasonAPIError:             errors.New("connection refused"),
	} {
		got := ""
		if found := applyFailure(err); found != nil {
			got = found.reason
			if !strings.Contains(found.message, err.Error()) {
				t.Errorf("message %q does not tell %q", found.message, err)
			}
		}
		if got != want {
			t.Errorf("%v: reason %q, want %q", err, got, want)
		}
	}
}

func TestPodFailure(t *testing.T) {
	crashed := corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "line\n2026/01/02 03:04:05 [emerg] 7#7: unknown directive\nlast"}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, test := range map[string]struct {
		status  corev1.ContainerStatus
		reason  string
		message string
	}{
		"starting":     {status: waiting("ContainerCreating", "")},
		"pull error":   {waiting("ErrImagePull", "no such host"), v1alpha1.ReasonImagePullFailed, `cannot pull image "` + testImage + `": no such host`},
		"back-off":     {waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: no such host`), v1alpha1.ReasonImagePullFailed, `cannot pull image "` + testImage + `": no such host`},
		"no message":   {waiting("InvalidImageName", ""), v1alpha1.ReasonImagePullFailed, `cannot pull image "` + testImage + `": InvalidImageName`},
		"root image":   {waiting("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "web-1_shop(uid)", container: nginx)`), v1alpha1.ReasonContainerConfigError, `cannot start container "nginx": container has runAsNonRoot and image will run as root`},
		"first crash":  {status: corev1.ContainerStatus{RestartCount: 1, State: running, LastTerminationState: corev1.ContainerState{Terminated: &crashed}}},
		"crash loop":   {corev1.ContainerStatus{RestartCount: 3, State: waiting("CrashLoopBackOff", "").State, LastTerminationState: corev1.ContainerState{Terminated: &crashed}}, v1alpha1.ReasonCrashLoop, `container "nginx" ends again and again with exit code 1 (Error): [emerg] unknown directive`},
		"between two":  {corev1.ContainerStatus{RestartCount: 3, State: running, LastTerminationState: corev1.ContainerState{Terminated: &crashed}}, v1alpha1.ReasonCrashLoop, `container "nginx" ends again and again with exit code 1 (Error): [emerg] unknown directive`},
		"recovered":    {status: corev1.ContainerStatus{Ready: true, RestartCount: 3, State: running, LastTerminationState: corev1.ContainerState{Terminated: &crashed}}},
		"just crashed": {corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}, v1alpha1.ReasonCrashLoop, `container "nginx" ends again and again with exit code 137 (OOMKilled)`},
	} {
		t.Run(name, func(t *testing.T) {
			var want *failure
			if test.reason != "" {
				want = &failure{test.reason, test.message}
			}
			if diff := cmp.Diff(want, podFailure(newPod(test.status)), cmp.AllowUnexported(failure{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A status that says something new is written at once; counts that move while a rollout runs wait for their slot.
func TestWriteDelay(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	status := func(ready int32, progressing metav1.ConditionStatus, reason string) *v1alpha1.NginxOperatorStatus {
		return &v1alpha1.NginxOperatorStatus{ReadyReplicas: ready, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionProgressing, Status: progressing, Reason: reason, LastTransitionTime: metav1.NewTime(began)},
		}}
	}
	one, two := status(1, metav1.ConditionTrue, v1alpha1.ReasonRolloutInProgress), status(2, metav1.ConditionTrue, v1alpha1.ReasonRolloutInProgress)
	none, noneYet := status(0, metav1.ConditionTrue, v1alpha1.ReasonRolloutInProgress), status(0, metav1.ConditionTrue, v1alpha1.ReasonRolloutInProgress)
	noneYet.Replicas = 3
	waitingForLast := status(2, metav1.ConditionTrue, v1alpha1.ReasonReplicasUnavailable)
	degraded := two.DeepCopy()
	degraded.Conditions = append(degraded.Conditions, metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCrashLoop})
	generation := two.DeepCopy()
	generation.ObservedGeneration = 2
	done := status(2, metav1.ConditionFalse, v1alpha1.ReasonRolloutComplete)
	for name, test := range map[string]struct {
		old, updated *v1alpha1.NginxOperatorStatus
		after, want  time.Duration
	}{
		"nothing new":                         {one, one, time.Second, -1},
		"a count, in the first slot":          {one, two, 1200 * time.Millisecond, 3800 * time.Millisecond},
		"a count, at the end of a slot":       {one, two, 10*time.Second + 300*time.Millisecond, 0},
		"a count, within a later slot":        {one, two, 12 * time.Second, 3 * time.Second},
		"a count and the last replicas":       {one, waitingForLast, 2 * time.Second, 3 * time.Second},
		"a failure":                           {one, degraded, time.Second, 0},
		"another generation":                  {one, generation, time.Second, 0},
		"the end of the rollout":              {one, done, time.Second, 0},
		"a count while no rollout is running": {status(1, metav1.ConditionFalse, v1alpha1.ReasonRolloutComplete), done, time.Second, 0},
		"a count while nothing is ready":      {none, noneYet, 12 * time.Second, -1},
		"the first status":                    {&v1alpha1.NginxOperatorStatus{}, one, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := writeDelay(test.old, test.updated, began.Add(test.after)); got != test.want {
				t.Errorf("delay %s, want %s", got, test.want)
			}
		})
	}
}

func TestTransitions(t *testing.T) {
	of := func(failing, progressing, ready metav1.Condition) []metav1.Condition {
		failing.Type, progressing.Type, ready.Type = v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing, v1alpha1.ConditionReady
		return []metav1.Condition{failing, progressing, ready}
	}
	yes := func(reason string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason}
	}
	no := func(reason string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason}
	}
	rolling := of(no(v1alpha1.ReasonAsExpected), yes(v1alpha1.ReasonRolloutInProgress), no(v1alpha1.ReasonRolloutInProgress))
	ready := of(no(v1alpha1.ReasonAsExpected), no(v1alpha1.ReasonRolloutComplete), yes(v1alpha1.ReasonAllReplicasReady))
	lost := of(no(v1alpha1.ReasonAsExpected), yes(v1alpha1.ReasonReplicasUnavailable), no(v1alpha1.ReasonReplicasUnavailable))
	crashing := of(yes(v1alpha1.ReasonCrashLoop), yes(v1alpha1.ReasonRolloutInProgress), no(v1alpha1.ReasonCrashLoop))
	pulling := of(yes(v1alpha1.ReasonImagePullFailed), yes(v1alpha1.ReasonRolloutInProgress), no(v1alpha1.ReasonImagePullFailed))
	for name, test := range map[string]struct {
		old, updated []metav1.Condition
		want         []string
	}{
		"first status":       {nil, rolling, []string{"Normal RolloutInProgress"}},
		"the same":           {rolling, rolling, nil},
		"ready":              {rolling, ready, []string{"Normal AllReplicasReady"}},
		"lost a replica":     {ready, lost, []string{"Warning ReplicasUnavailable"}},
		"came back":          {lost, ready, []string{"Normal AllReplicasReady"}},
		"degraded":           {rolling, crashing, []string{"Warning CrashLoop"}},
		"degraded otherwise": {crashing, pulling, []string{"Warning ImagePullFailed"}},
		"recovered":          {crashing, ready, []string{"Normal Recovered", "Normal AllReplicasReady"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, change := range transitions(test.old, test.updated) {
				got = append(got, change.eventType+" "+change.reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTruncate(t *testing.T) {
	if got := truncate(strings.Repeat("ä", 2000)); len([]rune(got)) != maxMessage || !strings.HasSuffix(got, "…") {
		t.Errorf("%d characters", len([]rune(got)))
	}
	if got := truncate("short"); got != "short" {
		t.Errorf("%q", got)
	}
}
