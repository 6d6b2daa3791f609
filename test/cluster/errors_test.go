package main

import (
	"errors"
	"strings"
	"testing"
)

func TestUnavailableIsOneLine(t *testing.T) {
	reason := errors.New("reason")
	err := unavailable("no %s: %w", "room", reason)
	if !errors.Is(err, reason) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "CLUSTER=external") {
		t.Errorf("got %v", err)
	}
}
