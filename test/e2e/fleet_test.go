package e2e

// This file has the instances that exist during upgrades, and the clients that use them.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// fleet has objects created at v1alpha1: one with Pods under load, and many without Pods. Each
// object has a different port, so a mixed-up answer cannot be right by chance.
type fleet struct {
	namespace string
	web       *v1alpha2.NginxOperator
	// pods are the UIDs of the Pods of web. image is their nginx image.
	pods  []types.UID
	image string
	ports map[string]int32
	steps int32
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
	f.pods, f.image = uidsOf(t, f.web), onePodOf(t, f.web).Spec.Containers[0].Image
	return f
}

// leastWrites is the number of writes, at each version, without which a step shows nothing.
const leastWrites = 3

// step runs one step of an upgrade from a release while clients keep reading and writing. If that
// release does not have v1alpha2, upgrade calls introduced as soon as v1alpha2 is served.
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

	upgrade(introduced)
	// A fast upgrade ends shortly after it has introduced a version.
	waitFor(t, f.namespace, "the first writes", patience, func(context.Context) error {
		for _, started := range slices.Concat(writers, []*background{created.background}) {
			if total := started.Counts().Total; total < leastWrites {
				return fmt.Errorf("%s: only %d", started.what, total)
			}
		}
		return nil
	})
	// The upgrade ends only after OLM has deleted the previous release, which can be later than the
	// success of the installation.
	waitFor(t, suite.operatorNamespace, "the release before to be gone", installPatience, func(ctx context.Context) error {
		return errors.Join(onlyOneRelease(ctx, suite.operatorNamespace), operatorRolledOut(ctx, suite.operatorNamespace))
	})

	for _, writer := range writers {
		writer.finish(t, name, leastWrites)
	}
	created.finish(t, f.namespace, name, f.ports)
	deleteWritten(t, f.namespace, older, newer)
	atOlder.finish(t, name)
	atNewer.finish(t, name)
	f.settles(t, name)
	load.finish(t, f.namespace, "load "+name)
	if t.Failed() {
		keepReport(t, f.namespace)
	}
}

// settles waits until the Pods match the installed release. If its default image is another one,
// all Pods run that image after exactly one rollout. Otherwise no Pod was replaced.
func (f *fleet) settles(t *testing.T, during string) {
	t.Helper()
	image := releasedOperandImage(t)
	if image == f.image {
		f.samePods(t, during)
		return
	}
	began := time.Now()
	waitFor(t, f.namespace, "the Pods to run "+image, rolloutLimit, func(ctx context.Context) error {
		pods, err := podsOf(ctx, f.web)
		for i := range pods {
			if runs := pods[i].Spec.Containers[0].Image; runs != image {
				err = errors.Join(err, fmt.Errorf("%s runs %s", pods[i].Name, runs))
			}
		}
		return err
	})
	waitForOnly(t, f.web, 2)
	waitForReady(t, f.web)
	t.Logf("FIGURE %s: the instance runs %s after another %s", during, image, seconds(time.Since(began)))
	sets := &appsv1.ReplicaSetList{}
	must(t, suite.admin.List(t.Context(), sets, client.InNamespace(f.namespace), client.MatchingLabels(wellknown.Selector(f.web.Name))))
	rolled := slices.DeleteFunc(sets.Items, func(set appsv1.ReplicaSet) bool { return set.Spec.Template.Spec.Containers[0].Image != image })
	if len(rolled) != 1 {
		t.Errorf("%s: the instance has %d revisions with %s", during, len(rolled), image)
	}
	f.image, f.pods = image, uidsOf(t, f.web)
}

// releasedOperandImage returns the default nginx image of the installed operator.
func releasedOperandImage(t *testing.T) string {
	t.Helper()
	deployment := &appsv1.Deployment{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: suite.operatorNamespace, Name: operatorName}, deployment))
	for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "RELATED_IMAGE_NGINX" {
			return variable.Value
		}
	}
	t.Fatalf("the operator in %s names no image", suite.operatorNamespace)
	return ""
}

// samePods requires that no Pod was replaced.
func (f *fleet) samePods(t *testing.T, during string) {
	t.Helper()
	if now := uidsOf(t, f.web); !slices.Equal(now, f.pods) {
		t.Errorf("%s: the Pods were %v and are %v", during, f.pods, now)
	}
}

// useNewFields gives an object that was created at v1alpha1 a second port and its own
// configuration, and reads its port at v1alpha1.
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

// asCreated returns an error unless every object exists with its port, read at a version.
func (f *fleet) asCreated(ctx context.Context, version string) error {
	api, err := rawClient()
	if err != nil {
		return err
	}
	wrong, err := readPorts(ctx, api, f.namespace, version, "", f.ports)
	if wrong != "" {
		err = fmt.Errorf("at %s %s", version, wrong)
	}
	return err
}
