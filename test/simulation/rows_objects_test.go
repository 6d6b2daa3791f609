package simulation

import (
	"testing"
	"time"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// TestRow6BlockedInstanceGetsRenewedCertificates reproduces row 6: a blocked instance gets a
// renewed certificate, or does not report it.
func TestRow6BlockedInstanceGetsRenewedCertificates(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.Must(w.Write(world.ConfigMap("conf", "nginx.conf", "server { listen 8080; return 200; }")))
		w.RenewCertificate()
		instance := newInstance("web")
		configuredBy("conf")(instance)
		world.UseCertificate(&instance.Spec)
		serve(t, w, instance)
		w.Remove(storage.ConfigMaps, "conf")
		w.Run(time.Minute)
		w.RenewCertificate()
		w.Run(5 * time.Minute)
		report(t, w)
	})
}

// TestRow7NodePortTakenForAMoment reproduces row 7: a node port that is allocated for a short time
// blocks an instance for that time, and not for ten minutes.
func TestRow7NodePortTakenForAMoment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("a"))
		w.TakeNodePort("a", 20*time.Second)
		w.Run(4 * time.Minute)
		if !world.IsReady(w.Instance("a")) {
			t.Errorf("not ready: %+v", w.Instance("a").Status.BlockedBy)
		}
	})
}

// TestRow12ContentStaysUnderManyVolumes reproduces row 12: no ConfigMap that running Pods mount is
// deleted, for any number of volumes.
func TestRow12ContentStaysUnderManyVolumes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.Must(w.Write(world.ConfigMap("pages", "index.html", "first")))
		instance := newInstance("web")
		instance.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
		world.MountMany(&instance.Spec)
		serve(t, w, instance)
		w.Must(w.Write(world.ConfigMap("pages", "index.html", "second")))
		w.Run(5 * time.Minute)
		for _, problem := range w.Unmounted() {
			t.Error(problem)
		}
	})
}

// TestRow14RenamedPortWithOtherClocks reproduces row 14: a renamed port does not delay a change,
// even if the API server's clock is ahead.
func TestRow14RenamedPortWithOtherClocks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		w.Store.Skew = 10 * time.Minute
		instance := newInstance("web")
		instance.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}}
		serve(t, w, instance)
		w.Must(w.Change("web", func(object *v1alpha2.NginxOperator) { object.Spec.Ports[0].Name = "main" }))
		w.Run(time.Minute)
		report(t, w)
	})
}

// TestRow15aWipedStatusIsWrittenAgain reproduces row 15a: a status that a client wiped is written
// again.
func TestRow15aWipedStatusIsWrittenAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world.World) {
		serve(t, w, newInstance("web"))
		w.Run(time.Minute)
		w.WipeStatus("web")
		w.Run(time.Minute)
		report(t, w)
	})
}
