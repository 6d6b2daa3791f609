package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readsOfSources counts the operator's reads of ConfigMaps and Secrets in a namespace after the
// first audited entries of the audit log.
func readsOfSources(t *testing.T, audited int, namespace string) int {
	t.Helper()
	n := 0
	for _, entry := range audit(t)[audited:] {
		if entry.ObjectRef.Namespace == namespace && entry.Verb == "get" &&
			slices.Contains([]string{"configmaps", "secrets"}, entry.ObjectRef.Resource) {
			n++
		}
	}
	return n
}

// TestRequestsForReferences verifies that a referenced object costs one read when it is new, and
// one read for each change. A change that does not affect its content costs no write. A change of
// an unreferenced object does not even cost a reconcile.
func TestRequestsForReferences(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	audited := len(audit(t))
	reads := func() int { return readsOfSources(t, audited, namespace) }
	pages := newConfigMap(namespace, "pages", map[string]string{"index.html": "<p>one"})
	certificate := newSecret(namespace, "named", newCertificate(t))
	for _, source := range []client.Object{newConfigMap(namespace, "named", map[string]string{"web.conf": servers}), pages, certificate} {
		create(t, source)
	}
	object := newInstance(namespace, "web")
	for _, reference := range []named{references["config"], references["content"], references["tls"]} {
		reference.spec(&object.Spec)
	}
	object.Spec.Content.ConfigMapRef.Name = "pages"
	create(t, object)
	waitForChildren(t, namespace, "web")
	want := map[string]int{
		"configmaps/": 2, "services/": 1, "networkpolicies/": 1, "deployments/": 1, "nginxoperators/status": 1,
	}
	waitForWrites(t, audited, namespace, want)
	if n := reads(); n != 3 {
		t.Errorf("%d reads of 3 objects", n)
	}
	makeReady(t, namespace, "web")
	want["nginxoperators/status"] = 2
	waitForWrites(t, audited, namespace, want)
	if n := reads(); n != 3 {
		t.Errorf("until Ready: %d reads of 3 objects", n)
	}

	label := func(object client.Object) {
		update(t, object, func(o client.Object) { o.SetLabels(map[string]string{"touched": time.Now().Format("150405.000")}) })
	}
	// A new label on a referenced object costs one reconcile and one read. After these, the
	// operator has seen all earlier changes to objects of the same kind, and any additional
	// reconcile or read is due to do.
	unseen := func(what string, do func()) {
		t.Helper()
		waitForIdle(t)
		reconcilesBefore, readsBefore := reconciles(t), reads()
		do()
		named := []client.Object{certificate, pages}
		for i, object := range named {
			label(object)
			waitFor(t, func() error {
				if n, m := reconciles(t)-reconcilesBefore, reads()-readsBefore; n <= i || m <= i {
					return fmt.Errorf("%s: %d reconciles and %d reads, want %d", what, n, m, i+1)
				}
				return nil
			})
		}
		waitForNoWork(t)
		if n, m := reconciles(t)-reconcilesBefore, reads()-readsBefore; n != len(named) || m != len(named) {
			t.Errorf("%s: %d reconciles and %d reads, want %d", what, n, m, len(named))
		}
	}
	unseen("objects of the same names in another namespace", func() {
		create(t, newConfigMap(other, "named", nil))
		foreign := newSecret(other, "named", newCertificate(t))
		create(t, foreign)
		label(foreign)
		must(t, suite.admin.Delete(t.Context(), foreign))
	})
	unseen("objects that nobody names", func() {
		unnamed := newSecret(namespace, "unnamed", newCertificate(t))
		create(t, unnamed)
		label(unnamed)
		must(t, suite.admin.Delete(t.Context(), unnamed))
		create(t, newConfigMap(namespace, "unnamed", nil))
		create(t, newSecret(namespace, "pages", newCertificate(t)))
	})
	waitForWrites(t, audited, namespace, want)
}

// TestManyNameOneConfigMap verifies that the operator reads a changed ConfigMap once for all
// objects that reference it.
func TestManyNameOneConfigMap(t *testing.T) {
	const referrers = 12
	namespace := newNamespace(t)
	source := references["content"].object(t, namespace)
	create(t, source)
	for i := range referrers {
		object := newInstance(namespace, fmt.Sprintf("web-%02d", i))
		references["content"].spec(&object.Spec)
		create(t, object)
	}
	waitForContent := func(want string) {
		t.Helper()
		for i := range referrers {
			name := fmt.Sprintf("web-%02d", i)
			waitForChildren(t, namespace, name)
			waitFor(t, func() error {
				if got := references["content"].seen(must1(childrenOf(t.Context(), namespace, name))(t)); !strings.HasPrefix(got, want) {
					return fmt.Errorf("%s has the content %q", name, got)
				}
				return nil
			})
		}
	}
	waitForContent("<p>one")
	for _, want := range []string{"<p>two", "<p>three"} {
		audited := len(audit(t))
		update(t, source, func(o client.Object) { o.(*corev1.ConfigMap).Data["index.html"] = want })
		waitForContent(want)
		if reads := readsOfSources(t, audited, namespace); reads != 1 {
			t.Errorf("%d reads for %d referrers", reads, referrers)
		}
	}
}

// TestNoWritesAtSteadyState verifies that nothing is written at steady state. This includes a
// restart of the operator, after which it reconciles every object.
func TestNoWritesAtSteadyState(t *testing.T) {
	const objects = 9
	namespace := newNamespace(t)
	for _, source := range []client.Object{
		newConfigMap(namespace, "named", map[string]string{"web.conf": servers}),
		newSecret(namespace, "named", newCertificate(t)),
	} {
		create(t, source)
	}
	for i := range objects {
		object := newInstance(namespace, fmt.Sprintf("web-%d", i))
		object.Spec.Replicas = ptr.To(int32(i % 3))
		if i == 0 {
			for _, reference := range []named{references["config"], references["content"], references["tls"]} {
				reference.spec(&object.Spec)
			}
		}
		if i == 2 {
			object.Spec.Patches = allPatches()[1:3]
		}
		create(t, object)
	}
	for i := range objects {
		waitForChildren(t, namespace, fmt.Sprintf("web-%d", i))
		rollOut(t, namespace, fmt.Sprintf("web-%d", i))
		waitFor(t, func() error {
			object := must1(waitForStatusOnce(t.Context(), namespace, fmt.Sprintf("web-%d", i)))(t)
			if object.Status.Replicas != *object.Spec.Replicas || !isReady(object) {
				return fmt.Errorf("not ready: %+v", object.Status)
			}
			return nil
		})
	}
	// The declared children of the examples match the stored objects with the API server's
	// defaults, so they cause no writes.
	for _, e := range fieldExamples(t) {
		namespace := e.newNamespace(t)
		object := newInstance(namespace, "web")
		object.Spec = e.spec
		create(t, object)
		waitForChildren(t, namespace, "web")
	}
	waitForIdle(t)
	before := writes(t)
	time.Sleep(3 * time.Second) // the test measures writes over time
	if n := writes(t) - before; n != 0 {
		t.Errorf("%d write requests in 3 s in which nothing happened", n)
	}
	suite.operator.Stop()
	audited := len(audit(t))
	before = writes(t)
	startNextOperator(t)
	// A new process does not know whether the children match the spec, so it reads each child once.
	const children = 3 * objects // Services, NetworkPolicies, and Deployments
	waitFor(t, func() error {
		if n := readsOfChildren(t, audited, namespace); n < children {
			return fmt.Errorf("%d reads of %d children after a restart", n, children)
		}
		return nil
	})
	waitForNoWork(t)
	const becameLeader = 1 // the Event of the leader election
	if n := writes(t) - before; n > becameLeader {
		t.Errorf("%d write requests after a restart with %d objects", n, objects)
	}
	if n := readsOfChildren(t, audited, namespace); n != children {
		t.Errorf("%d reads of %d children after a restart", n, children)
	}
}
