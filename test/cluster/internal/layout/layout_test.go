package layout

import (
	"strings"
	"testing"
)

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
