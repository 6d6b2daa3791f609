package status

import (
	"errors"
	"slices"
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

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestStatus verifies the complete status for each kind of live state.
func TestStatus(t *testing.T) {
	noImage := []*corev1.Pod{fixture.NewPod(fixture.Waiting("ErrImagePull", "not found"))}
	half := func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1 }
	rolling := func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.Conditions[0].Reason = 3, 1, "ReplicaSetUpdated"
	}
	stalled := func(d *appsv1.Deployment) {
		rolling(d)
		condition := &d.Status.Conditions[0]
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, "ProgressDeadlineExceeded", "has timed out"
	}
	missing := failure.Failure{Reason: v1alpha2.ReasonReferenceNotFound, Message: `spec.tls[0].secretName: Secret "shop" does not exist`}
	wrong := failure.Failure{
		Reason:  v1alpha2.ReasonInvalidConfiguration,
		Message: `spec.config.configMapRef: ConfigMap "servers", key "nginx.conf": line 3: listen: no such port`,
	}
	tookBack := failure.Failure{
		Reason: v1alpha2.ReasonRolledBack, Message: `rolled back generation 3 (image "nginx:none"): cannot pull image`,
	}
	taken := &apply.NotOurs{
		Kind: "Service", Name: "web", OwnerKind: "NginxOperator",
		Others: []*apply.NotOurs{{Kind: "Deployment", Name: "web", Controller: `Shop "web"`}},
	}
	for name, test := range map[string]struct {
		state    live.Observed
		applying *failure.Failure
		blockers []failure.Failure
		waiting  []string
		paused   bool
	}{
		"nothing-yet":          {},
		"blocked":              {state: live.Observed{Deployment: fixture.NewDeployment(2)}, blockers: []failure.Failure{missing, wrong}},
		"blocked-at-first":     {blockers: []failure.Failure{missing}},
		"paused":               {state: live.Observed{Deployment: fixture.NewDeployment(2)}, paused: true},
		"paused-while-rolling": {state: live.Observed{Deployment: fixture.NewDeployment(2, rolling)}, paused: true},
		"paused-with-changes": {
			state:   live.Observed{Deployment: fixture.NewDeployment(2)},
			paused:  true,
			waiting: []string{`Deployment "web"`, `the deletion of PodDisruptionBudget "web"`},
		},
		"rolled-back": {state: live.Observed{Deployment: fixture.NewDeployment(2)}, blockers: []failure.Failure{tookBack}},
		"rolling-back": {
			state:    live.Observed{Deployment: fixture.NewDeployment(2, rolling), Pods: noImage},
			blockers: []failure.Failure{tookBack},
		},
		"paused-and-blocked": {
			state: live.Observed{Deployment: fixture.NewDeployment(2)}, paused: true, blockers: []failure.Failure{missing},
		},

		"not-seen-yet":  {state: live.Observed{Deployment: fixture.NewDeployment(2, func(d *appsv1.Deployment) { d.Generation = 8 })}},
		"complete":      {state: live.Observed{Deployment: fixture.NewDeployment(2)}},
		"zero":          {state: live.Observed{Deployment: fixture.NewDeployment(0)}},
		"rolling":       {state: live.Observed{Deployment: fixture.NewDeployment(2, rolling)}},
		"lost-a-pod":    {state: live.Observed{Deployment: fixture.NewDeployment(2, half)}},
		"name-conflict": {applying: WriteFailure(taken, nil)},
		"predecessor":   {applying: WriteFailure(&apply.NotOurs{Kind: "Service", Name: "web", Predecessor: true}, nil)},

		"image-missing":          {state: live.Observed{Deployment: fixture.NewDeployment(2, rolling), Pods: noImage}},
		"image-missing-for-long": {state: live.Observed{Deployment: fixture.NewDeployment(2, stalled), Pods: noImage}},
		"stalled":                {state: live.Observed{Deployment: fixture.NewDeployment(2, stalled)}},
		// All replicas serve. Only a Pod that is no longer needed fails.
		"complete-with-a-failing-pod": {state: live.Observed{Deployment: fixture.NewDeployment(2), Pods: noImage}},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			object.Spec.Paused = test.paused
			result := newOutcome(t, object)
			result.Failure, result.Blockers, result.Waiting = test.applying, test.blockers, test.waiting
			switch {
			case len(test.blockers) > 0 && test.blockers[0].Reason == v1alpha2.ReasonRolledBack:
				result.State = rollout.StateRolledBack
			case len(test.blockers) > 0:
				result.State, result.Applied = rollout.StateUnusable, nil
			}
			exists := test.state
			if test.state.Deployment != nil {
				exists = with(exists, object, newOutcome(t, object))
			}
			status := statusOf(object, exists, result)
			for i := range status.Conditions {
				if status.Conditions[i].LastTransitionTime.IsZero() {
					t.Errorf("%s has no time", status.Conditions[i].Type)
				}
				status.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			if status.LastGoodRevision != nil {
				status.LastGoodRevision.Time = metav1.Time{}
			}
			raw, err := yaml.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			fixture.Golden(t, "status-"+name+".yaml", string(raw))
		})
	}
}

func statusOf(object *v1alpha2.NginxOperator, state live.Observed, result Outcome) v1alpha2.NginxOperatorStatus {
	status, _ := Compute(object, state, result, time.Now())
	return status
}

// newOutcome returns the outcome of a reconcile without failures.
func newOutcome(t *testing.T, object *v1alpha2.NginxOperator) Outcome {
	t.Helper()
	in := declaredInputs(t, object)
	applied := &revision.Declaration{Generation: object.Generation, Object: object, Inputs: in, Children: operand.Desired(object, in)}
	var err error
	if applied.Change, err = change.Of(object, in, &applied.Deployment().Spec.Template); err != nil {
		t.Fatal(err)
	}
	return Outcome{
		Resolution: rollout.Resolution{Resolved: true},
		Decision:   rollout.Decision{Declared: applied, Apply: applied, Entrance: applied},
		Written: Written{Applied: &revision.Rendering{
			Pods: applied, Entrance: applied, Composed: operand.Composed{Children: applied.Children},
		}},
	}
}

// TestStatusWhileHeld verifies that the status has the fields of the applied declaration while the
// spec is blocked or paused.
func TestStatusWhileHeld(t *testing.T) {
	object := fixture.NewObject()
	state := with(live.Observed{Deployment: fixture.NewDeployment(1)}, object, newOutcome(t, object))
	object.Status = statusOf(object, state, newOutcome(t, object))
	before := object.Status.DeepCopy()
	object.Spec.Image, object.Generation = "nginx:other", 4
	fixture.OnPort(9090)(&object.Spec)
	paused := newOutcome(t, object)
	paused.Waiting = []string{`Deployment "web"`}
	for name, result := range map[string]Outcome{
		"blocked": {Decision: rollout.Decision{State: rollout.StateUnusable, Blockers: []failure.Failure{
			{Reason: v1alpha2.ReasonReferenceNotFound, Message: "missing"},
		}}},
		"paused": paused,
	} {
		t.Run(name, func(t *testing.T) {
			object.Spec.Paused = len(result.Waiting) > 0
			status := statusOf(object, state, result)
			if status.Image != before.Image || status.URL != before.URL || status.ObservedGeneration != 4 {
				t.Errorf("image %s, url %s, generation %d", status.Image, status.URL, status.ObservedGeneration)
			}
			if diff := cmp.Diff(before.RelatedObjects, status.RelatedObjects); diff != "" {
				t.Errorf("related objects (-before +after):\n%s", diff)
			}
			if meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionReady) {
				t.Error("Ready, and the current generation is not what serves")
			}
		})
	}
}

// TestManyBlockers verifies that the status is valid and small for any number of failures.
func TestManyBlockers(t *testing.T) {
	for length, want := range map[int]struct{ blockers, length int }{1: {64, 1}, 5000: {17, failure.MaxMessage}} {
		result := Outcome{Decision: rollout.Decision{State: rollout.StateUnusable}, Written: Written{Waiting: []string{"more"}}}
		for i := range 100 {
			result.Blockers = append(result.Blockers, failure.Failure{
				Reason: v1alpha2.ReasonInvalidConfiguration, Message: strings.Repeat(string(rune('A'+i)), length),
			})
		}
		blockers := statusOf(fixture.NewObject(), live.Observed{}, result).BlockedBy
		last := blockers[len(blockers)-1]
		if len(blockers) != want.blockers || len(blockers[0].Message) != want.length || last.Reason != v1alpha2.ReasonPaused {
			t.Errorf("%d blockers, the first of %d bytes, the last %s", len(blockers), len(blockers[0].Message), last.Reason)
		}
	}
}

// TestEveryBlockerIsTold verifies that each failure of a Pod is reported once, in addition to
// blockers. Pods that a rollback replaces do not count.
func TestEveryBlockerIsTold(t *testing.T) {
	pull, schedule := fixture.NewPod(fixture.Waiting("ErrImagePull", "not found")), fixture.NewPod(corev1.ContainerStatus{})
	schedule.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room",
	}}
	failing := live.Observed{
		Deployment: fixture.NewDeployment(3, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }),
		Pods:       []*corev1.Pod{pull, pull, schedule},
	}
	missing := failure.Failure{Reason: v1alpha2.ReasonReferenceNotFound, Message: "missing"}
	timeout := failure.Failure{Reason: v1alpha2.ReasonAPIError, Message: "timeout"}
	pods := []string{v1alpha2.ReasonImagePullFailed, v1alpha2.ReasonUnschedulable}
	for name, test := range map[string]struct {
		result    Outcome
		unexposed []failure.Failure
		want      []string
	}{
		"Pods alone": {Outcome{}, nil, pods},
		"and a blocker": {
			Outcome{Decision: rollout.Decision{State: rollout.StateUnusable, Blockers: []failure.Failure{missing}}},
			nil, append([]string{missing.Reason}, pods...),
		},
		"and a child": {Outcome{Written: Written{Failure: &missing}}, nil, append([]string{missing.Reason}, pods...)},
		"may pass":    {Outcome{Written: Written{Failure: &timeout}}, nil, pods},
		"rolled back": {
			Outcome{Decision: rollout.Decision{State: rollout.StateRolledBack, Blockers: []failure.Failure{
				{Reason: v1alpha2.ReasonRolledBack, Message: "tried"},
			}}}, nil, []string{v1alpha2.ReasonRolledBack},
		},
		"an HTTPRoute and a pause": {
			Outcome{Written: Written{Waiting: []string{"more"}}},
			[]failure.Failure{{Reason: v1alpha2.ReasonAPIMissing, Message: "no"}},
			append(slices.Clone(pods), v1alpha2.ReasonAPIMissing, v1alpha2.ReasonPaused),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, blocker := range blockedBy(failing, test.result, test.unexposed) {
				got = append(got, blocker.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatusKeepsTimes verifies that unchanged conditions retain their transition times.
func TestStatusKeepsTimes(t *testing.T) {
	object := fixture.NewObject()
	old := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	object.Status = statusOf(object, live.Observed{Deployment: fixture.NewDeployment(2)}, newOutcome(t, object))
	for i := range object.Status.Conditions {
		object.Status.Conditions[i].LastTransitionTime = old
	}
	same := statusOf(object, live.Observed{Deployment: fixture.NewDeployment(2)}, newOutcome(t, object))
	if diff := cmp.Diff(object.Status, same); diff != "" {
		t.Errorf("nothing happened, and the status changed:\n%s", diff)
	}
	lost := statusOf(object, live.Observed{}, newOutcome(t, object))
	if ready := meta.FindStatusCondition(lost.Conditions, v1alpha2.ConditionReady); !ready.LastTransitionTime.After(old.Time) {
		t.Error("Ready fell without a time")
	}
	if degraded := meta.FindStatusCondition(lost.Conditions, v1alpha2.ConditionDegraded); !degraded.LastTransitionTime.Equal(&old) {
		t.Error("Degraded did not change and has a new time")
	}
}

func TestApplyFailure(t *testing.T) {
	resource, kind := schema.GroupResource{Group: "apps", Resource: "deployments"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}
	terminating := apierrors.NewForbidden(resource, "web", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for want, err := range map[string]error{
		"":                                  nil,
		v1alpha2.ReasonNameConflict:         &apply.NotOurs{Kind: "Deployment", Name: "web"},
		v1alpha2.ReasonQuotaExceeded:        apierrors.NewForbidden(resource, "web", errors.New("exceeded quota: q")),
		v1alpha2.ReasonForbidden:            apierrors.NewForbidden(resource, "web", errors.New("not you")),
		v1alpha2.ReasonNamespaceTerminating: terminating,
		// The value quotes the message of a webhook.
		v1alpha2.ReasonInvalidChild: apierrors.NewInvalid(kind, "web", field.ErrorList{
			field.Invalid(field.NewPath("metadata", "labels"), `admission webhook "a" denied the request: no`, "is no label"),
		}),
		v1alpha2.ReasonAPIError: errors.New("connection refused"),
	} {
		got := ""
		if found := WriteFailure(err, nil); found != nil {
			got = found.Reason
			if !strings.Contains(found.Message, err.Error()) {
				t.Errorf("message %q does not tell %q", found.Message, err)
			}
		}
		if got != want {
			t.Errorf("%v: reason %q, want %q", err, got, want)
		}
	}
}

func TestWriteDelay(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	status := func(ready int32, progressing metav1.ConditionStatus, reason string) *v1alpha2.NginxOperatorStatus {
		return &v1alpha2.NginxOperatorStatus{ReadyReplicas: ready, Conditions: []metav1.Condition{
			{Type: v1alpha2.ConditionProgressing, Status: progressing, Reason: reason, LastTransitionTime: metav1.NewTime(began)},
		}}
	}
	one := status(1, metav1.ConditionTrue, v1alpha2.ReasonRolloutInProgress)
	two := status(2, metav1.ConditionTrue, v1alpha2.ReasonRolloutInProgress)
	none := status(0, metav1.ConditionTrue, v1alpha2.ReasonRolloutInProgress)
	noneYet := none.DeepCopy()
	noneYet.Replicas = 3
	waitingForLast := status(2, metav1.ConditionTrue, v1alpha2.ReasonReplicasUnavailable)
	degraded := two.DeepCopy()
	degraded.Conditions = append(degraded.Conditions,
		metav1.Condition{Type: v1alpha2.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha2.ReasonCrashLoop})
	generation := two.DeepCopy()
	generation.ObservedGeneration = 2
	done := status(2, metav1.ConditionFalse, v1alpha2.ReasonRolloutComplete)
	held := status(1, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	held.BlockedBy = []v1alpha2.Blocker{{Reason: v1alpha2.ReasonPaused}}
	heldWithout, heldAnew := held.DeepCopy(), held.DeepCopy()
	heldWithout.ReadyReplicas = 0
	heldAnew.BlockedBy[0].Message = "more"
	for name, test := range map[string]struct {
		old, updated *v1alpha2.NginxOperatorStatus
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
		"a count while no rollout is running": {status(1, metav1.ConditionFalse, v1alpha2.ReasonRolloutComplete), done, time.Second, 0},
		"a count while nothing is ready":      {none, noneYet, 12 * time.Second, -1},
		"a count while changes are blocked":   {held, heldWithout, 12 * time.Second, 3 * time.Second},
		"another reason to block changes":     {held, heldAnew, 12 * time.Second, 0},
		"the first status":                    {&v1alpha2.NginxOperatorStatus{}, one, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WriteDelay(test.old, test.updated, began.Add(test.after)); got != test.want {
				t.Errorf("delay %s, want %s", got, test.want)
			}
		})
	}
}

func TestTransitions(t *testing.T) {
	of := func(failing, progressing, ready metav1.Condition) []metav1.Condition {
		failing.Type, progressing.Type, ready.Type = v1alpha2.ConditionDegraded, v1alpha2.ConditionProgressing, v1alpha2.ConditionReady
		return []metav1.Condition{failing, progressing, ready}
	}
	yes := func(reason string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason}
	}
	no := func(reason string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason}
	}
	rolling := of(no(v1alpha2.ReasonAsExpected), yes(v1alpha2.ReasonRolloutInProgress), no(v1alpha2.ReasonRolloutInProgress))
	ready := of(no(v1alpha2.ReasonAsExpected), no(v1alpha2.ReasonRolloutComplete), yes(v1alpha2.ReasonAllReplicasReady))
	lost := of(no(v1alpha2.ReasonAsExpected), yes(v1alpha2.ReasonReplicasUnavailable), no(v1alpha2.ReasonReplicasUnavailable))
	crashing := of(yes(v1alpha2.ReasonCrashLoop), yes(v1alpha2.ReasonRolloutInProgress), no(v1alpha2.ReasonCrashLoop))
	pulling := of(yes(v1alpha2.ReasonImagePullFailed), yes(v1alpha2.ReasonRolloutInProgress), no(v1alpha2.ReasonImagePullFailed))
	first := func(conditions []metav1.Condition) v1alpha2.NginxOperatorStatus {
		return v1alpha2.NginxOperatorStatus{Conditions: conditions}
	}
	later := func(conditions []metav1.Condition) v1alpha2.NginxOperatorStatus {
		return v1alpha2.NginxOperatorStatus{Conditions: conditions, LastGoodRevision: &v1alpha2.GoodRevision{}}
	}
	for name, test := range map[string]struct {
		old     v1alpha2.NginxOperatorStatus
		updated []metav1.Condition
		want    []string
	}{
		"first status":       {first(nil), rolling, nil},
		"ready at once":      {first(nil), ready, nil},
		"new and ready":      {first(rolling), ready, nil},
		"new and degraded":   {first(rolling), crashing, []string{"Warning CrashLoop"}},
		"new and recovered":  {first(crashing), ready, []string{"Normal Recovered"}},
		"the same":           {later(rolling), rolling, nil},
		"ready":              {later(rolling), ready, []string{"Normal AllReplicasReady"}},
		"lost a replica":     {later(ready), lost, []string{"Warning ReplicasUnavailable"}},
		"came back":          {later(lost), ready, []string{"Normal AllReplicasReady"}},
		"degraded":           {later(rolling), crashing, []string{"Warning CrashLoop"}},
		"degraded otherwise": {later(crashing), pulling, []string{"Warning ImagePullFailed"}},
		"recovered":          {later(crashing), ready, []string{"Normal Recovered", "Normal AllReplicasReady"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, change := range Transitions(&test.old, test.updated) {
				got = append(got, change.EventType+" "+change.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// with returns a state in which the children of an outcome exist and the Service has the declared
// ports.
func with(o live.Observed, object *v1alpha2.NginxOperator, result Outcome) live.Observed {
	o.Related = live.References(result.Children())
	o.Service = operand.DesiredService(object, operand.Inputs{}).Spec.Ports
	return o
}

// TestTruncate verifies that a message is cut between two characters, and has at most as many bytes
// as the API server accepts in the note of an Event.
func TestTruncate(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"short":           {"short", "short"},
		"as long as fits": {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"longer":          {strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "…"},
		"wide characters": {strings.Repeat("🚀", 300), strings.Repeat("🚀", 255) + "…"},
		"no characters":   {"\xff", "\uFFFD"},
	} {
		if got := failure.Truncate(test.in); got != test.want || len(got) > 1024 {
			t.Errorf("%s: %d bytes: %.40q", name, len(got), got)
		}
	}
	for _, stopped := range Stopped(v1alpha2.ReasonInvalidConfiguration, strings.Repeat("🚀", 2000), "stopped") {
		if len(stopped.Message) > 1024 {
			t.Errorf("the message of %s has %d bytes", stopped.Type, len(stopped.Message))
		}
	}
}

// TestAPIErrorThatLasts verifies that one failed request does not set Degraded, but requests that
// fail for a while do.
func TestAPIErrorThatLasts(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	result.Failure = WriteFailure(errors.New("connection refused"), nil)
	began := time.Now()
	// The time of the error starts with the error, even if the object has not been Ready for long.
	object.Status.Conditions = []metav1.Condition{{
		Type: v1alpha2.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha2.ReasonRolloutInProgress,
		LastTransitionTime: metav1.NewTime(began.Add(-time.Hour)),
	}}
	for _, test := range []struct {
		after    time.Duration
		progress metav1.ConditionStatus
		degraded metav1.ConditionStatus
	}{
		{0, metav1.ConditionTrue, metav1.ConditionFalse},
		{20 * time.Second, metav1.ConditionTrue, metav1.ConditionFalse},
		{40 * time.Second, metav1.ConditionFalse, metav1.ConditionTrue},
		{41 * time.Second, metav1.ConditionFalse, metav1.ConditionTrue},
	} {
		object.Status, _ = Compute(object, live.Observed{}, result, began.Add(test.after))
		conditions := object.Status.Conditions
		if !meta.IsStatusConditionFalse(conditions, v1alpha2.ConditionReady) ||
			!meta.IsStatusConditionPresentAndEqual(conditions, v1alpha2.ConditionProgressing, test.progress) ||
			!meta.IsStatusConditionPresentAndEqual(conditions, v1alpha2.ConditionDegraded, test.degraded) {
			t.Errorf("after %s: %+v", test.after, conditions)
		}
	}
}

// TestStatusNamesWhatExists verifies that the status references only children that exist and belong
// to the object.
func TestStatusNamesWhatExists(t *testing.T) {
	object := fixture.NewObject()
	result := newOutcome(t, object)
	result.Failure = &failure.Failure{Reason: v1alpha2.ReasonQuotaExceeded, Message: "exceeded quota"}
	status := statusOf(object, live.Observed{Related: live.References(result.Children()[:1])}, result)
	if status.URL != "" || status.Image != "" || !cmp.Equal(status.RelatedObjects, live.References(result.Children()[:1])) {
		t.Errorf("without Service and Deployment: url %q, image %q, objects %v", status.URL, status.Image, status.RelatedObjects)
	}
	// The Service still has the previous port.
	moved := fixture.NewObject(fixture.OnPort(9090))
	moved.Status.URL = "http://web.shop.svc:8080"
	state := live.Observed{Service: operand.DesiredService(object, operand.Inputs{}).Spec.Ports}
	if got := statusOf(moved, state, newOutcome(t, moved)); got.URL != moved.Status.URL {
		t.Errorf("url %s", got.URL)
	}
}

// declaredInputs returns the inputs of an object without references.
func declaredInputs(t *testing.T, object *v1alpha2.NginxOperator) operand.Inputs {
	t.Helper()
	release := operand.Release{Image: fixture.Image, ExporterImage: fixture.ExporterImage, RequestMetricsImage: fixture.RequestMetricsImage}
	in := release.Inputs(object)
	var err error
	if in.Config, err = release.Configuration(object, nil); err != nil {
		t.Fatal(err)
	}
	return in
}
