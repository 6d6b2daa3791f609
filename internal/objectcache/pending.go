package objectcache

import "sigs.k8s.io/controller-runtime/pkg/manager"

// pendingManager adds its runnables to a manager only when start is called. A builder adds a
// controller before its watches, and a manager that has started would start it with empty caches.
type pendingManager struct {
	manager.Manager
	runnables []manager.Runnable
}

// Add implements manager.Manager.
func (p *pendingManager) Add(runnable manager.Runnable) error {
	p.runnables = append(p.runnables, runnable)
	return nil
}

func (p *pendingManager) start() error {
	for _, runnable := range p.runnables {
		if err := p.Manager.Add(runnable); err != nil {
			return err
		}
	}
	return nil
}
