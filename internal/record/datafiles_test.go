package record

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
)

// TestRevisionOfFiles verifies that a record restores its files, and that the record of an object
// without files has no fields for them.
func TestRevisionOfFiles(t *testing.T) {
	object := fixture.NewObject(fixture.WithFiles("a.conf"))
	in := operand.Inputs{
		Image: fixture.Image, Config: operand.Configuration{Hash: "abc"}, Files: &operand.Content{Hash: "def"}, SecretsHash: "ghi",
	}
	want := operand.Files{FileText: map[string]string{"a.conf": "# one"}, FileBinary: map[string][]byte{"b": {0xff}}}
	kept := encodeAndDecode(t, DataOf(object, in), want)
	restored, found := kept.Restore(fixture.NewObject())
	if diff := cmp.Diff(operand.Desired(object, in), operand.Desired(restored, found)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if again := revisionFor(t, restored, found); again.Name != revisionFor(t, object, in).Name {
		t.Errorf("the restored declaration has another name: %s", again.Name)
	}
	got, err := kept.unpack()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	bare, err := DataOf(fixture.NewObject(), operand.Inputs{Image: fixture.Image}).encode(operand.Files{})
	if err != nil || strings.Contains(string(bare), "filesHash") || strings.Contains(string(bare), "secretsHash") {
		t.Errorf("%v: %s", err, bare)
	}
}
