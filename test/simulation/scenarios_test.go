package simulation

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// inWorld runs a scenario on a virtual clock, with a running operator.
func inWorld(t *testing.T, scenario func(*testing.T, *world.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := world.New(release, 1)
		if testing.Verbose() {
			began := time.Now()
			w.Trace = func(line string) { t.Logf("%8.3f %s", time.Since(began).Seconds(), line) }
		}
		w.Start(0)
		defer w.Stop()
		scenario(t, w)
	})
}

// serve creates an instance with two replicas, and waits until it is ready.
func serve(t *testing.T, w *world.World, name string, change func(*v1alpha2.NginxOperatorSpec)) {
	t.Helper()
	instance := &v1alpha2.NginxOperator{ObjectMeta: world.Meta(name)}
	instance.Spec.Replicas = ptr.To[int32](2)
	change(&instance.Spec)
	w.Must(w.Write(instance))
	if !w.Until(5*time.Minute, func() bool { return len(check.Settled(w.State())) == 0 }) {
		t.Fatal(strings.Join(check.Settled(w.State()), "\n"))
	}
}

func onPort(number int32) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) { s.Ports = []v1alpha2.Port{{Name: "http", Port: number}} }
}

func portNames(service *corev1.Service) (out []string) {
	for _, port := range service.Spec.Ports {
		out = append(out, port.Name)
	}
	return out
}

// restart restarts the operator on an older view. It fails the test for each write of the Service
// that changes the names of its ports.
func restart(t *testing.T, w *world.World, view int64) {
	t.Helper()
	before := w.Store.Revision()
	w.Restart(view)
	w.Run(time.Minute)
	want, _ := world.Get[corev1.Service](w, storage.Services, "web")
	for _, version := range w.Store.Since(before) {
		if version.Resource != storage.Services {
			continue
		}
		if service := storage.As[corev1.Service](version); !slices.Equal(portNames(service), portNames(want)) {
			t.Errorf("at %s, the Service got the port names %v, and %v in the end",
				version.At.Format("15:04:05.000"), portNames(service), portNames(want))
		}
	}
}

// TestOlderServiceKeepsPortNames verifies that a process that starts on an older view of the
// Service repeats no step of an earlier change of its port names.
func TestOlderServiceKeepsPortNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, "web", onPort(8080))
		w.Run(time.Minute)
		// The record cannot be written, so the Pods stay and the Service keeps both ports.
		w.Faults.Refuse = map[*storage.Resource]error{storage.ControllerRevisions: world.Denied(storage.ControllerRevisions, "web")}
		before := w.Store.Revision()
		w.Edit("web", onPort(8081))
		w.Run(time.Minute)
		restart(t, w, before)
	})
}

// TestOlderPodsBringNoPortBack verifies that a process that starts on an older view of the Pods
// does not give the Service a port of ended Pods.
func TestOlderPodsBringNoPortBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, "web", onPort(8080))
		w.Run(time.Minute)
		start := w.Store.Revision()
		w.Edit("web", onPort(8081))
		w.Run(5 * time.Minute)
		end := w.Store.Revision()
		for view := start; view < end; view += 4 {
			restart(t, w, view)
		}
	})
}

// TestRefusedRenewalIsNotReported verifies that the status reports the certificate that Pods mount,
// and not the renewed one, while the Deployment cannot be written.
func TestRefusedRenewalIsNotReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.RenewCertificate()
		first := w.Certificates["cert"].NotAfter
		serve(t, w, "web", world.UseCertificate)
		reports := func(want time.Time) {
			t.Helper()
			if got := w.Instance("web").Status.Certificates; len(got) != 1 || !got[0].NotAfter.Time.Equal(want) {
				t.Errorf("the status reports %+v, and not the certificate until %s", got, want)
			}
		}
		reports(first)

		w.Faults.Refuse = map[*storage.Resource]error{storage.Deployments: world.Denied(storage.Deployments, "web")}
		w.Run(time.Hour)
		w.RenewCertificate()
		w.Run(10 * time.Minute)
		reports(first)

		w.Faults.Refuse = nil
		w.Run(30 * time.Minute)
		reports(w.Certificates["cert"].NotAfter)
	})
}

// TestUnbounded verifies that Unbounded finds a fleet that rolls at once, and accepts a fleet that
// rolls one by one.
func TestUnbounded(t *testing.T) {
	for slots, wantFound := range map[int32]bool{1: false, 3: true} {
		inWorld(t, func(t *testing.T, w *world.World) {
			for _, name := range world.Names {
				serve(t, w, name, func(*v1alpha2.NginxOperatorSpec) {})
			}
			w.Run(time.Minute)
			w.Release.Image = "registry.example/nginx:2"
			w.Released = append(w.Released, time.Now())
			w.Release.Fleet.MaxUnavailable = intstr.FromInt32(slots)
			w.Restart(0)
			w.Run(time.Minute)
			w.Release.Fleet = policy
			if found := w.Unbounded(); len(found) > 0 != wantFound {
				t.Errorf("with %d slots, found %v", slots, found)
			}
		})
	}
}
