package rollout

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/wellknown"
)

// asDeclared returns the declaration of an object, with config as the files of its configuration.
func asDeclared(t *testing.T, object *v1alpha2.NginxOperator, in operand.Inputs, config nginxconf.Files) *record.Declaration {
	t.Helper()
	out, err := record.NewDeclaration(object, in, func(context.Context) (operand.Files, error) { return operand.Files{Config: config}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReleaseIsToldFromUser verifies that changes by the user are distinguished from changes by the
// release.
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
		in            func(*operand.Inputs)
		before, after nginxconf.Files
		user, release bool
	}{
		"nothing":              {},
		"the image":            {in: func(in *operand.Inputs) { in.Image = "other" }, release: true},
		"the Pod template":     {in: func(in *operand.Inputs) { in.Edition = 1 }, release: true},
		"nginx.conf":           {in: func(in *operand.Inputs) { in.Config.Hash = "other" }, release: true},
		"renewed certificates": {in: func(in *operand.Inputs) { in.CertificatesHash = "other" }},
		"the content":          {in: func(in *operand.Inputs) { in.Content = &operand.Content{Hash: "other"} }, user: true},
		"content that is new": {
			in:   func(in *operand.Inputs) { in.Content = &operand.Content{Hash: "new"}; in.Image = "other" },
			user: true, release: true,
		},
		"replicas": {object: func(o *v1alpha2.NginxOperator) { o.Generation++; o.Spec.Replicas = ptr.To[int32](7) }},
		"the spec": {object: func(o *v1alpha2.NginxOperator) { o.Generation++; o.Spec.ForceRedeploy = "now" }, user: true},
		"the Service": {object: func(o *v1alpha2.NginxOperator) {
			o.Generation++
			o.Spec.Service = &v1alpha2.Service{Annotations: map[string]string{"of": "the user"}}
		}},
		"the Service, and the image": {
			object: func(o *v1alpha2.NginxOperator) { o.Generation++; o.Spec.NetworkPolicy = &v1alpha2.NetworkPolicy{} },
			in:     func(in *operand.Inputs) { in.Image = "other" }, release: true,
		},
		"the name of a port": {object: func(o *v1alpha2.NginxOperator) {
			o.Generation++
			o.Spec.Ports = []v1alpha2.Port{{Name: "web", Port: 8080}}
		}},
		"the number of a port": {user: true, object: func(o *v1alpha2.NginxOperator) {
			o.Generation++
			o.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 8081}}
		}},
		"a default of a schema": {object: func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "default" }},
		"nginx.conf around a ConfigMap": {
			spec: fromConfigMap, in: func(in *operand.Inputs) { in.Config.Hash = "other" }, release: true,
			before: text("old", "server {}"), after: text("new", "server {}"),
		},
		"the ConfigMap": {
			spec: fromConfigMap, in: func(in *operand.Inputs) { in.Config.Hash = "other" }, user: true, release: true,
			before: text("old", "server {}"), after: text("old", "server { gzip on; }"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			if test.spec != nil {
				test.spec(&object.Spec)
			}
			in := operand.Inputs{Image: fixture.Image, Config: operand.Configuration{Hash: "abc"}}
			last := asDeclared(t, object.DeepCopy(), in, test.before)
			if test.object != nil {
				test.object(object)
			}
			if test.in != nil {
				test.in(&in)
			}
			declared := asDeclared(t, object, in, test.after)
			release := inputs.Resolver{Release: operand.Release{Image: in.Image}}
			same, err := Decider{Inputs: release}.isSameUserPart(t.Context(), declared, last)
			if err != nil {
				t.Fatal(err)
			}
			if same == test.user {
				t.Errorf("the user's change: %t, want %t", !same, test.user)
			}
			if release := differences(declared, last); (release != "") != test.release {
				t.Errorf("the release's change: %q", release)
			}
		})
	}
	tooLarge := asDeclared(t, fixture.NewObject(fromConfigMap), operand.Inputs{Config: operand.Configuration{Hash: "abc"}}, nil)
	tooLarge.Files = func(context.Context) (operand.Files, error) {
		return operand.Files{}, record.Unusable{Err: errors.New("too large")}
	}
	other := asDeclared(t, fixture.NewObject(fromConfigMap), operand.Inputs{Config: operand.Configuration{Hash: "other"}}, nil)
	if same, err := sameServers(t.Context(), other, tooLarge); same || err != nil {
		t.Errorf("files that were not kept are the same: %t, %v", same, err)
	}
}

// reader returns a ControllerRevision with raw as its data, or an error.
type reader struct {
	client.Reader
	raw string
	err error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetName(key.Name)
	object.(*appsv1.ControllerRevision).Data.Raw = []byte(r.raw)
	return r.err
}

// TestReleaseWithoutReadableRecord verifies that an unusable record does not block changes, and
// that a failed read of a record returns an error.
func TestReleaseWithoutReadableRecord(t *testing.T) {
	declared := asDeclared(t, fixture.NewObject(), operand.Inputs{Image: "next"}, nil)
	recordOf := func(raw string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + operand.ShortHash(raw)}, Revision: declared.Object.Generation,
		}
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
			r := Decider{Records: record.Store{API: test.reader, Memory: &record.Memory{}}}
			last, err := r.ofOtherRelease(t.Context(), declared, recordOf(test.reader.raw))
			if (last != nil) != test.release || (err != nil) != test.fails {
				t.Errorf("a change of the release: %t, %v", last != nil, err)
			}
		})
	}
}

// TestFailedBefore verifies that a change that failed under an earlier release is recognized, unless the
// user has changed it since.
func TestFailedBefore(t *testing.T) {
	const raw = `{"spec":{},"image":"before"}`
	revisions := []appsv1.ControllerRevision{
		{ObjectMeta: metav1.ObjectMeta{Name: "web-good"}}, {ObjectMeta: metav1.ObjectMeta{Name: "web-" + operand.ShortHash(raw)}},
	}
	for name, test := range map[string]struct {
		image, failed string
		edited, want  bool
	}{
		"another image of the release":   {image: "next", failed: revisions[1].Name, want: true},
		"the same release":               {image: "before", failed: revisions[1].Name},
		"a change of the user":           {image: "next", failed: revisions[1].Name, edited: true},
		"nothing has failed":             {image: "next"},
		"the record of the failure lost": {image: "next", failed: "web-lost"},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			if test.failed != "" {
				object.Status.FailedRevisions = []v1alpha2.FailedRevision{{Revision: test.failed}}
			}
			revisions[1].Revision = object.Generation
			if test.edited {
				object.Generation++
				object.Spec.ForceRedeploy = "now"
			}
			r := Decider{Records: record.Store{API: reader{raw: raw}, Memory: &record.Memory{}}}
			failed, err := r.failedBefore(t.Context(), asDeclared(t, object, operand.Inputs{Image: test.image}, nil), revisions)
			if err != nil || (failed != nil) != test.want {
				t.Errorf("failed before: %+v, %v", failed, err)
			}
		})
	}
}

// TestPredecessor verifies that the predecessor of a started revision is the last good revision,
// and that the predecessor of any other revision is the last applied one that has not failed.
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
		"rolled back":                      {good: "good", failed: "next", declared: "next", want: "good", begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject()
			if test.good != "" {
				object.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: test.good}
			}
			if test.failed != "" {
				object.Status.FailedRevisions = []v1alpha2.FailedRevision{{Revision: test.failed}}
			}
			before, begun := predecessor(object, revisions, nil, test.declared)
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
	canary := fixture.NewObject()
	canary.Labels = map[string]string{wellknown.LabelCanary: "true"}
	for name, test := range map[string]struct {
		object   *v1alpha2.NginxOperator
		complete bool
		want     fleet.Place
	}{
		"serves":                {fixture.NewObject(), true, fleet.Waiting},
		"canary":                {canary, true, fleet.WaitingCanary},
		"does not serve":        {fixture.NewObject(), false, fleet.WaitingUnready},
		"canary does not serve": {canary, false, fleet.WaitingUnready},
	} {
		if got := groupOf(test.object, health.Progress{Complete: test.complete}); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestPlaceOfFailure verifies that only failures caused by the release stop its rollout.
func TestPlaceOfFailure(t *testing.T) {
	for reason, want := range map[string]fleet.Place{
		v1alpha2.ReasonImagePullFailed: fleet.Failed, v1alpha2.ReasonCrashLoop: fleet.Failed, v1alpha2.ReasonInvalidConfiguration: fleet.Failed,
		v1alpha2.ReasonProgressDeadlineExceeded: fleet.Failed, v1alpha2.ReasonInvalidChild: fleet.Failed,
		v1alpha2.ReasonQuotaExceeded: fleet.Outside, v1alpha2.ReasonForbidden: fleet.Outside,
		v1alpha2.ReasonUnschedulable: fleet.Rolling, v1alpha2.ReasonAPIError: fleet.Rolling,
	} {
		if got := PlaceOfFailure(&failure.Failure{Reason: reason}); got != want {
			t.Errorf("%s: %d, want %d", reason, got, want)
		}
		if got := placeOfRolledBack(reason); got == fleet.Rolling {
			t.Errorf("%s: a rollout that was rolled back keeps its slot", reason)
		}
	}
	// The release does not cause the failure of an admission webhook for Pods.
	if got := placeOfRolledBack(v1alpha2.ReasonAPIError); got != fleet.Outside {
		t.Errorf("a rollout that requests failed for until its deadline: %d, want %d", got, fleet.Outside)
	}
}

// TestExporterImageOfARelease verifies that the record has the exporter's image. If a release
// changes this image, instances wait for a rollout slot.
func TestExporterImageOfARelease(t *testing.T) {
	object := fixture.NewObject(fixture.Monitored())
	before := operand.Inputs{Image: fixture.Image, Exporter: fixture.ExporterImage}
	now := operand.Inputs{Image: fixture.Image, Exporter: "example.com/exporter:2"}
	if got := differences(&record.Declaration{Object: object, Inputs: now}, &record.Declaration{Object: object, Inputs: before}); got !=
		`exporter image "example.com/exporter:2"` {
		t.Errorf("differences %q", got)
	}
	_, restored := record.DataOf(object, before).Restore(object)
	if restored.Exporter != fixture.ExporterImage {
		t.Errorf("restored %q", restored.Exporter)
	}
}
