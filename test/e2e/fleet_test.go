package e2e

// This file has the instances that live through upgrades, and the clients that go on meanwhile.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// fleet is a number of objects made at v1alpha1: one with Pods and a load on it, and many without. Each has a port of its
// own, so that no answer can be right by chance.
type fleet struct {
	namespace string
	web       *v1alpha2.NginxOperator
	pods      []types.UID
	ports     map[string]int32
	steps     int32
}

func newFleet(t *testing.T, size int32) *fleet {
	t.Helper()
	f := &fleet{namespace: newNamespace(t, restricted), ports: map[string]int32{}}
	f.web = newObject(f.namespace, "web", 2)
	must(t, suite.admin.Create(t.Context(), newV1alpha1(f.namespace, "web", 8080, 2)))
	f.ports["web"] = 8080
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(10)
	for i := range size {
		object := newV1alpha1(f.namespace, fmt.Sprintf("object-%d", i), 10000+i, 0)
		f.ports[object.Name] = 10000 + i
		group.Go(func() error { return suite.admin.Create(ctx, object) })
	}
	must(t, group.Wait())
	kubectl(t, "wait", "-n", f.namespace, "--for=condition=Ready", "--timeout=2m", "nginxoperators.v1alpha1.operator.example.com/web")
	f.pods = uidsOf(t, f.web)
	return f
}

// step makes a step of an upgrade from a release while clients go on. Both versions are there already, but where the step
// introduces v1alpha2: there the upgrade says when that is so.
func (f *fleet) step(t *testing.T, name string, from release, upgrade func(introduced func())) {
	t.Helper()
	f.steps++
	load := startLoad(t, f.namespace, suite.reach.service(f.namespace, "web", 8080))
	atOlder, atNewer := startReader(t, f.namespace, older, f.ports), startReader(t, f.namespace, newer, f.ports)
	writers := []*background{startWriter(t, f.namespace, older)}
	atOlder.strictly()
	var created *creator
	introduced := sync.OnceFunc(func() {
		atNewer.strictly()
		writers = append(writers, startWriter(t, f.namespace, newer))
		created = startCreator(t, f.namespace, fmt.Sprintf("step-%d", f.steps), 20000+1000*f.steps)
	})
	if from.converts() {
		introduced()
	}
	seen := watchCRD(t)

	upgrade(introduced)
	// What happens after all is said to be done belongs to the upgrade: OLM deletes the release before.
	waitFor(t, suite.operatorNamespace, "the release before to be gone", installPatience, func(ctx context.Context) error {
		return errors.Join(onlyOneRelease(ctx, suite.operatorNamespace), operatorRolledOut(ctx, suite.operatorNamespace))
	})

	seen()
	for _, writer := range writers {
		writer.finish(t, name, 3)
	}
	created.finish(t, f.namespace, name, f.ports)
	deleteWritten(t, f.namespace, older, newer)
	atOlder.finish(t, name)
	atNewer.finish(t, name)
	load.finish(t, f.namespace, "load "+name)
	f.samePods(t, name)
	if t.Failed() {
		keepReport(t, f.namespace)
	}
}

// samePods requires that no Pod was replaced.
func (f *fleet) samePods(t *testing.T, during string) {
	t.Helper()
	if now := uidsOf(t, f.web); !slices.Equal(now, f.pods) {
		t.Errorf("%s: the Pods were %v and are %v", during, f.pods, now)
	}
}

// useNewFields gives an object that was made at v1alpha1 a configuration of its own, and looks at it at v1alpha1.
func (f *fleet) useNewFields(t *testing.T) {
	t.Helper()
	waitForReady(t, f.web)
	f.samePods(t, "once the release looked at the object")
	update(t, f.web, func(o *v1alpha2.NginxOperator) {
		o.Spec.Ports = append(o.Spec.Ports, v1alpha2.Port{Name: "second", Port: 8081})
		o.Spec.Config = &v1alpha2.Config{Inline: "server {\n    listen 8080;\n    location / { root /usr/share/nginx/html; }\n}\n" +
			"server {\n    listen 8081;\n    return 200 \"the second port\";\n}\n"}
	})
	waitForReady(t, f.web)
	answers(t, f.namespace, suite.reach.service(f.namespace, "web", 8081), "the second port")
	port := kubectl(t, "get", "-n", f.namespace, "nginxoperators.v1alpha1.operator.example.com", "web", "-o", "jsonpath={.spec.port}")
	if port != "8080" {
		t.Errorf("v1alpha1 shows port %q", port)
	}
	waitForOnly(t, f.web, 2)
	f.pods = uidsOf(t, f.web)
}

// asCreated requires every object to be there with its port, read at a version.
func (f *fleet) asCreated(ctx context.Context, version string) error {
	api, err := rawClient()
	if err != nil {
		return err
	}
	r := &reader{version: version, namespace: f.namespace, ports: f.ports, names: slices.Sorted(maps.Keys(f.ports)), api: api}
	wrong, err := r.read(ctx, 0)
	if wrong != "" {
		err = fmt.Errorf("at %s %s", version, wrong)
	}
	return err
}
