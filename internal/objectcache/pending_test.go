package objectcache

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// startedManager counts the runnables that it starts.
type startedManager struct {
	manager.Manager
	running int
}

func (s *startedManager) Add(manager.Runnable) error { s.running++; return nil }

// TestControllersStartWithAllWatches verifies that a manager that has started does not start a
// controller before its watches are complete.
func TestControllersStartWithAllWatches(t *testing.T) {
	t.Parallel()
	mgr := &startedManager{}
	pending := &pendingManager{Manager: mgr}
	if err := pending.Add(manager.RunnableFunc(func(context.Context) error { return nil })); err != nil {
		t.Fatal(err)
	}
	if mgr.running != 0 {
		t.Error("a controller has started before its watches were added")
	}
	if err := pending.start(); err != nil || mgr.running != 1 {
		t.Errorf("%d run, %v", mgr.running, err)
	}
}
