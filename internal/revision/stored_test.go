package revision

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
)

// TestStored verifies that the stored children are those in effect, and that data of another client
// is refused.
func TestStored(t *testing.T) {
	object := fixture.NewObject(fixture.Monitored(), fixture.Ports("http", "80 to 8080"))
	children := operand.Desired(object, operand.Inputs{Image: fixture.Image, Exporter: fixture.ExporterImage})
	from := stored{
		Change: "a-b", Generation: 3, Spec: json.RawMessage(`{"image":"nginx:1"}`), PatchedKinds: []string{"Service"},
		Digests: map[string]string{"web-0123456789": "abc"},
	}
	raw, err := from.encode(children)
	if err != nil {
		t.Fatal(err)
	}
	again, err := from.encode(children)
	if err != nil || !bytes.Equal(raw, again) {
		t.Errorf("the same is stored in another way: %v", err)
	}
	got, _, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got.Change != from.Change || got.Generation != 3 || got.Image() != fixture.Image || got.Exporter() != fixture.ExporterImage {
		t.Errorf("change %s, generation %d, images %s and %s", got.Change, got.Generation, got.Image(), got.Exporter())
	}
	before, after := asJSON(t, children), asJSON(t, got.Children)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("children (-before +after):\n%s", diff)
	}

	spec, _, err := SpecOf(raw, hashOf(raw))
	if err != nil || string(spec) != string(from.Spec) {
		t.Errorf("spec %s, %v", spec, err)
	}
	if _, _, err := SpecOf(bytes.Replace(raw, []byte("nginx:1"), []byte("nginx:2"), 1), hashOf(raw)); err == nil {
		t.Error("the data of another client is believed")
	}
	for name, text := range map[string]string{
		"no JSON": "{", "another kind": `{"children":[{"kind":"Secret"}]}`, "no child": `{"children":[7]}`,
	} {
		if _, _, err := decode([]byte(text)); err == nil {
			t.Errorf("%s is decoded", name)
		}
	}
	large := &corev1.Service{}
	large.Annotations = map[string]string{"a": strings.Repeat("x", maxBytes)}
	if _, err := from.encode([]client.Object{large}); err == nil {
		t.Error("what etcd refuses is stored")
	}
}

func asJSON(t *testing.T, children []client.Object) (out []string) {
	t.Helper()
	for _, child := range children {
		raw, err := json.Marshal(child)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(raw))
	}
	return out
}
