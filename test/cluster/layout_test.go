package main

import (
	"strings"
	"testing"
)

func TestLayoutsDiffer(t *testing.T) {
	a, b := newLayout("/a"), newLayout("/b")
	if a.id == b.id || a.id != newLayout("/a").id {
		t.Errorf("got %s and %s", a.id, b.id)
	}
	// However deep the clone is, the path of a socket stays short enough.
	deep := newLayout("/" + strings.Repeat("deep/", 60))
	if socket := deep.containerdSocket(); len(socket) > 107 {
		t.Errorf("%s has %d characters", socket, len(socket))
	}
}
