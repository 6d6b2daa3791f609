package simulation

import (
	"testing"
	"time"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/world"
)

// TestOlderPodsBringNoPortBack verifies that a process that starts on an older view of the Pods
// does not give the Service a port of ended Pods.
func TestOlderPodsBringNoPortBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		instance := newInstance("web")
		instance.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}}
		serve(t, w, instance)
		w.Run(time.Minute)
		start := w.Store.Revision()
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.Ports[0].Port = 8081 }))
		w.Run(5 * time.Minute)
		end := w.Store.Revision()
		for view := start; view < end; view += 4 {
			restarted := w.Store.Revision()
			w.Restart(view)
			w.Run(time.Minute)
			samePorts(t, w, restarted)
		}
	})
}
