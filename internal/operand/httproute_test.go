package operand

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestDesiredHTTPRoute verifies that the HTTPRoute has the port number. If its kind is not
// installed, only the HTTPRoute is omitted.
func TestDesiredHTTPRoute(t *testing.T) {
	object := fixture.NewObject(fixture.Routed(v1alpha2.GatewayReference{Name: "public"}, "a.example.com"), fixture.Ports("web", 9090))
	in := newInputs(t, object, "", false)
	before := DesiredService(fixture.NewObject(fixture.OnPort(8080)), in).Spec.Ports
	in.Running = Running{exposed: 8080, ready: sets.New[int32](8080), Service: before}
	if got := *partsFor(object, in).route.Spec.Rules[0].BackendRefs[0].Port; got != 8080 {
		t.Errorf("asks for port %d, where no Pod is ready", got)
	}
	in.Running.ready.Insert(9090)
	if got := *partsFor(object, in).route.Spec.Rules[0].BackendRefs[0].Port; got != 9090 {
		t.Errorf("asks for port %d", got)
	}
	with := Desired(object, in)
	in.Missing = map[string]string{"HTTPRoute": "there is none"}
	without := Desired(object, in)
	if diff := gocmp.Diff(with[:len(with)-1], without); diff != "" {
		t.Errorf("without the API (-want +got):\n%s", diff)
	}
	if kind := with[len(with)-1].GetObjectKind().GroupVersionKind().Kind; kind != "HTTPRoute" {
		t.Errorf("the last child is a %s", kind)
	}
}
