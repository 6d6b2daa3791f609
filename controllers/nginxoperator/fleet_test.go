package nginxoperator

import (
	"context"
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

// asDeclared returns a declaration of an object, with files as its configuration.
func asDeclared(t *testing.T, object *v1alpha2.NginxOperator, in inputs, config nginxconf.Files) *declaration {
	t.Helper()
	out, err := newDeclaration(object, in, func(context.Context) (files, error) { return files{Config: config}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What the user declares is told from what the release makes of it.
func TestReleaseIsToldFromUser(t *testing.T) {
	fromConfigMap := func(s *v1alpha2.NginxOperatorSpec) {
		s.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers"}}
	}
	text := func(main, servers string) nginxconf.Files {
		return nginxconf.Files{nginxconf.MainFile: main, nginxconf.ServersFile: servers}
	}
	for name, test := range map[string]struct {
		spec          func(*v1alpha2.NginxOperatorSpec)
		object        func(*v1alpha2.NginxOperator)
		in            func(*inputs)
		before, after nginxconf.Files
		user, release bool
	}{
		"nothing":               {},
		"the image":             {in: func(in *inputs) { in.image = "other" }, release: true},
		"the Pod template":      {in: func(in *inputs) { in.edition = 1 }, release: true},
		"nginx.conf":            {in: func(in *inputs) { in.config.hash = "other" }, release: true},
		"renewed certificates":  {in: func(in *inputs) { in.certificates = "other" }},
		"the content":           {in: func(in *inputs) { in.content = &content{hash: "other"} }, user: true},
		"content that is new":   {in: func(in *inputs) { in.content = &content{hash: "new"}; in.image = "other" }, user: true, release: true},
		"replicas":              {object: func(o *v1alpha2.NginxOperator) { o.Generation++; o.Spec.Replicas = ptr.To[int32](7) }},
		"the spec":              {object: func(o *v1alpha2.NginxOperator) { o.Generation++; o.Spec.ForceRedeploy = "now" }, user: true},
		"a default of a schema": {object: func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "default" }},
		"nginx.conf around a ConfigMap": {
			spec: fromConfigMap, in: func(in *inputs) { in.config.hash = "other" }, release: true,
			before: text("old", "server {}"), after: text("new", "server {}"),
		},
		"the ConfigMap": {
			spec: fromConfigMap, in: func(in *inputs) { in.config.hash = "other" }, user: true, release: true,
			before: text("old", "server {}"), after: text("old", "server { gzip on; }"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject()
			if test.spec != nil {
				test.spec(&object.Spec)
			}
			in := inputs{image: testImage, config: configuration{hash: "abc"}}
			last := asDeclared(t, object.DeepCopy(), in, test.before)
			if test.object != nil {
				test.object(object)
			}
			if test.in != nil {
				test.in(&in)
			}
			declared := asDeclared(t, object, in, test.after)
			same, err := sameServers(t.Context(), declared, last)
			if err != nil {
				t.Fatal(err)
			}
			if user := !same || !sameDeclaration(declared, last); user != test.user {
				t.Errorf("the user's change: %t, want %t", user, test.user)
			}
			if release := differences(declared, last); (release != "") != test.release {
				t.Errorf("the release's change: %q", release)
			}
		})
	}
	tooLarge := asDeclared(t, newObject(fromConfigMap), inputs{config: configuration{hash: "abc"}}, nil)
	tooLarge.files = func(context.Context) (files, error) { return files{}, badRevision{errors.New("too large")} }
	other := asDeclared(t, newObject(fromConfigMap), inputs{config: configuration{hash: "other"}}, nil)
	if same, err := sameServers(t.Context(), other, tooLarge); same || err != nil {
		t.Errorf("files that were not kept are the same: %t, %v", same, err)
	}
}

// reader returns a ControllerRevision with its data, or an error.
type reader struct {
	client.Reader
	raw string
	err error
}

func (r reader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*appsv1.ControllerRevision).Data.Raw = []byte(r.raw)
	return r.err
}

// A record that cannot be used keeps no object from being changed; one that cannot be read now is read again.
func TestReleaseWithoutReadableRecord(t *testing.T) {
	declared := asDeclared(t, newObject(), inputs{image: "next"}, nil)
	record := func() *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "before"}, Revision: declared.object.Generation}
	}
	for name, test := range map[string]struct {
		reader  reader
		release bool
		fails   bool
	}{
		"readable":               {reader{raw: `{"spec":{},"image":"before"}`}, true, false},
		"not JSON":               {reader{raw: `{`}, false, false},
		"a spec that is refused": {reader{raw: `{"spec":{"resources":{"limits":{"cpu":"1e1000000000"}}}}`}, false, false},
		"no answer":              {reader{err: errors.New("timeout")}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Applier: &apply.Applier{Reader: test.reader}}
			last, err := r.ofOtherRelease(t.Context(), declared, record())
			if (last != nil) != test.release || (err != nil) != test.fails {
				t.Errorf("a change of the release: %t, %v", last != nil, err)
			}
		})
	}
}

// What ran before a revision is, once that has begun, what served last; else what was applied last and has not failed.
func TestPredecessor(t *testing.T) {
	revisions := []appsv1.ControllerRevision{
		{ObjectMeta: metav1.ObjectMeta{Name: "newest"}}, {ObjectMeta: metav1.ObjectMeta{Name: "good"}},
	}
	for name, test := range map[string]struct {
		good, failed, declared string
		want                   string
		begun                  bool
	}{
		"not begun":                        {good: "good", declared: "next", want: "newest"},
		"not begun, and the newest failed": {good: "good", failed: "newest", declared: "next", want: "good"},
		"nothing has served":               {declared: "next", want: "newest"},
		"begun":                            {good: "good", declared: "newest", want: "good", begun: true},
		"begun, and nothing served":        {declared: "newest", begun: true},
		"begun, and the record is gone":    {good: "gone", declared: "newest", begun: true},
		"taken back":                       {good: "good", failed: "next", declared: "next", want: "good", begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject()
			if test.good != "" {
				object.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: test.good}
			}
			if test.failed != "" {
				object.Status.FailedRevisions = []v1alpha2.FailedRevision{{Revision: test.failed}}
			}
			before, begun := predecessor(object, revisions, test.declared)
			got := ""
			if before != nil {
				got = before.Name
			}
			if got != test.want || begun != test.begun {
				t.Errorf("%q, begun: %t", got, begun)
			}
		})
	}
}

func TestGroupOf(t *testing.T) {
	canary := newObject()
	canary.Labels = map[string]string{wellknown.LabelCanary: "true"}
	for name, test := range map[string]struct {
		object   *v1alpha2.NginxOperator
		complete bool
		want     fleet.Place
	}{
		"serves":                {newObject(), true, fleet.Waiting},
		"canary":                {canary, true, fleet.WaitingCanary},
		"does not serve":        {newObject(), false, fleet.WaitingUnready},
		"canary does not serve": {canary, false, fleet.WaitingUnready},
	} {
		if got := groupOf(test.object, rollout{complete: test.complete}); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// What waits is Ready and not degraded, and says what it waits for, once; while it scales it says so.
func TestStatusWhileWaiting(t *testing.T) {
	object := newObject()
	result := newOutcome(t, object)
	result.waitsFor = `image "next"`
	state := observed{deployment: newDeployment(1)}.with(object, result)
	status := statusOf(object, state, result)
	progressing := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionProgressing)
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionReady) || progressing.Status != metav1.ConditionTrue ||
		progressing.Reason != v1alpha2.ReasonWaitingForFleet || progressing.Message != waitingMessage(result.waitsFor) ||
		meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionDegraded) || len(status.BlockedBy) > 0 {
		t.Errorf("%+v", status)
	}
	if status.LastGoodRevision == nil {
		t.Error("what serves is not written down")
	}
	events := transitions(statusOf(object, state, newOutcome(t, object)).Conditions, status.Conditions)
	if len(events) != 1 || events[0].reason != v1alpha2.ReasonWaitingForFleet || events[0].eventType != corev1.EventTypeNormal {
		t.Errorf("Events %+v", events)
	}
	if again := transitions(status.Conditions, status.Conditions); len(again) > 0 {
		t.Errorf("told again: %+v", again)
	}
	scaling := observed{deployment: newDeployment(2, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 })}.with(object, result)
	status = statusOf(object, scaling, result)
	if reason := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionProgressing).Reason; reason == v1alpha2.ReasonWaitingForFleet {
		t.Error("it waits while its Pods are not ready")
	}
}

// A record restores the Pod template of its edition to the byte; one of an edition that is not known has the newest.
func TestEditions(t *testing.T) {
	object := newObject()
	in := newInputs(t, object, "", false)
	in.edition = 0
	old := desiredDeployment(object, in)
	before := backward
	t.Cleanup(func() { backward = before })
	backward = []func(*corev1.PodTemplateSpec){
		func(p *corev1.PodTemplateSpec) { p.Annotations = nil },
		func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"edition": "1"} },
	}
	if diff := gocmp.Diff(old, desiredDeployment(object, in)); diff != "" {
		t.Errorf("edition 0 (-want +got):\n%s", diff)
	}
	names := map[string]bool{}
	for edition, want := range map[int]string{0: "", 1: "1", 2: ""} {
		in.edition = edition
		if got := desiredDeployment(object, in).Spec.Template.Annotations["edition"]; got != want {
			t.Errorf("edition %d has %q", edition, got)
		}
		names[revisionFor(t, object, in).Name] = true
		if _, restored := encodeAndDecode(t, revisionOf(object, in), files{}).restore(object); restored.edition != edition {
			t.Errorf("edition %d is restored as %d", edition, restored.edition)
		}
	}
	if len(names) != 3 {
		t.Error("editions share a record")
	}
	for recorded, want := range map[int]int{-1: 0, 0: 0, 2: 2, 3: 2, 1 << 40: 2} {
		if got := knownEdition(recorded); got != want {
			t.Errorf("edition %d is %d", recorded, got)
		}
	}
}

// Only what says something of the release stops it.
func TestPlaceOfFailure(t *testing.T) {
	for reason, want := range map[string]fleet.Place{
		v1alpha2.ReasonImagePullFailed: fleet.Failed, v1alpha2.ReasonCrashLoop: fleet.Failed, v1alpha2.ReasonInvalidConfiguration: fleet.Failed,
		v1alpha2.ReasonProgressDeadlineExceeded: fleet.Failed, v1alpha2.ReasonInvalidChild: fleet.Failed,
		v1alpha2.ReasonQuotaExceeded: fleet.Outside, v1alpha2.ReasonForbidden: fleet.Outside,
		v1alpha2.ReasonUnschedulable: fleet.Rolling, v1alpha2.ReasonAPIError: fleet.Rolling,
	} {
		if got := placeOfFailure(reason); got != want {
			t.Errorf("%s: %d, want %d", reason, got, want)
		}
	}
}
