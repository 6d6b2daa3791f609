package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParts checks the order of the parts, that both versions of OLM include the base of catalogs,
// and that a cluster keeps the parts that it has.
func TestParts(t *testing.T) {
	parts, err := ParseParts([]string{"olm", "metrics"})
	if diff := cmp.Diff([]Part{Base, Metrics, Catalogs, OLM}, parts); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	withV1, err := ParseParts([]string{"olm-v1"})
	if diff := cmp.Diff([]Part{Base, Catalogs, OLMv1}, withV1); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := ParseParts([]string{"olm", "docker"}); err == nil || !strings.Contains(err.Error(), "olm-v1") {
		t.Errorf("want an error with the known parts, got %v", err)
	}
	l := New(t.TempDir())
	for _, p := range []Part{Base, Scorecard} {
		if err := os.MkdirAll(filepath.Dir(l.Started(p)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.Started(p), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]Part{Base, Metrics, Scorecard, Catalogs, OLM}, l.WithStarted(parts)); diff != "" {
		t.Error(diff)
	}
}

func TestLayoutsDiffer(t *testing.T) {
	a, b := New("/a"), New("/b")
	if a.ID == b.ID || a.ID != New("/a").ID {
		t.Errorf("got %s and %s", a.ID, b.ID)
	}
	// The path of a socket stays short for a clone at any depth.
	deep := New("/" + strings.Repeat("deep/", 60))
	if socket := deep.ContainerdSocket(); len(socket) > 107 {
		t.Errorf("%s has %d characters", socket, len(socket))
	}
}
