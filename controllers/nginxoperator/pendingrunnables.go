package nginxoperator

import "sigs.k8s.io/controller-runtime/pkg/manager"

// pendingRunnables is a manager that keeps what is added. After the election, a manager starts a
// controller as soon as it is added, which is before the builder has added its watches. The controller
// would reconcile without its caches.
type pendingRunnables struct {
	manager.Manager
	added []manager.Runnable
}

// Add implements manager.Manager.
func (p *pendingRunnables) Add(runnable manager.Runnable) error {
	p.added = append(p.added, runnable)
	return nil
}

// start adds the runnables to the manager.
func (p *pendingRunnables) start() error {
	for _, runnable := range p.added {
		if err := p.Manager.Add(runnable); err != nil {
			return err
		}
	}
	return nil
}
