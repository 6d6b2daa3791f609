package simulation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

func portNames(service *corev1.Service) (out []string) {
	for _, port := range service.Spec.Ports {
		out = append(out, port.Name)
	}
	return out
}

// samePorts fails the test for each write of the Service after a resource version that changes the
// names of its ports.
func samePorts(t *testing.T, w *world.World, since int64) {
	t.Helper()
	want, _ := world.Get[corev1.Service](w, storage.Services, "web")
	for _, version := range w.Store.Since(since) {
		if version.Resource != storage.Services {
			continue
		}
		service := &corev1.Service{}
		version.As(service)
		if !slices.Equal(portNames(service), portNames(want)) {
			t.Errorf("at %s, the Service got the port names %v, and %v in the end",
				version.At.Format("15:04:05.000"), portNames(service), portNames(want))
		}
	}
}

// TestOlderServiceKeepsPortNames verifies that a process that starts on an older view of the
// Service repeats no step of an earlier change of its port names.
func TestOlderServiceKeepsPortNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		instance := newInstance("web")
		instance.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}}
		serve(t, w, instance)
		w.Run(time.Minute)
		// The record cannot be written, so the Pods stay and the Service keeps both ports.
		w.Faults.Refuse = map[*storage.Resource]error{storage.ControllerRevisions: world.Denied(storage.ControllerRevisions, "web")}
		before := w.Store.Revision()
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.Ports[0].Port = 8081 }))
		w.Run(time.Minute)
		restarted := w.Store.Revision()
		w.Restart(before)
		w.Run(time.Minute)
		samePorts(t, w, restarted)
	})
}
