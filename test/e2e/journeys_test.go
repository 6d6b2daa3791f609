package e2e

// The pages of docs/journeys, and the pages on backups and on a first instance. Their commands run
// as they are written, with the published names of images, releases, and the repository, so these
// tests require the local cluster. The journeys share one installation of the operator.
//
//   - The way between three releases and back loses no request to an instance.
//   - The journeys of an instance run in parallel, each in the namespaces of its page.
//   - The last journey uninstalls the operator.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
)

func TestJourneys(t *testing.T) {
	if !suite.local {
		t.Skip("the pages use the published names of images, which only the local cluster serves from its own registry")
	}
	serveRelease(t)
	serveRepository(t)
	startInDefault(t)
	t.Run("upgrade", testUpgradeJourney)
	t.Run("from git", testGitOpsJourney)
	if t.Failed() {
		deploy(t, suite.delivery)
	}
	t.Run("instances", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"change not live":      testChangeNotLive,
			"move a Deployment":    testMoveADeployment,
			"static site by HTTPS": testStaticSite,
			"alerts":               testAlertsJourney,
			"backup":               testBackup,
			"first instance":       testFirstInstance,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
		}
	})
	t.Run("uninstall", testUninstallJourney)
}

// journey is a page in the form of docs/journeys, with the directory in which its commands run.
type journey struct {
	*docs.Journey
	name, namespace string
	// dir has the files of the page. work is the directory in which the next step starts.
	dir, work string
	// before runs before the commands of each step.
	before string
	// next is the index of the next step.
	next int
}

// journeyPatience bounds the commands of a step.
const journeyPatience = 8 * time.Minute

// newJourney reads a page of docs/journeys.
func newJourney(t *testing.T, name, namespace string) *journey {
	t.Helper()
	return newPage(t, "journeys", name, namespace)
}

// newPage reads a page in a directory below docs. After the test, every step of the page must have
// run, and the namespace that the page creates is deleted.
func newPage(t *testing.T, directory, name, namespace string) *journey {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(suite.repository, "docs", directory, name+".md"))
	must(t, err)
	parsed, err := docs.ParseJourney(string(page))
	must(t, err)
	dir := t.TempDir()
	j := &journey{Journey: parsed, name: name, dir: dir, work: dir, namespace: namespace}
	t.Cleanup(func() {
		if !t.Failed() && j.next < len(j.Steps) {
			t.Errorf("%s: the test ended before the step in %q", name, j.Steps[j.next].Section)
		}
		if namespace == "" {
			return
		}
		if err := deleteNamespace(context.WithoutCancel(t.Context()), namespace); err != nil {
			t.Error(err)
		}
	})
	return j
}

// through runs the steps up to the end of a section, or all remaining steps if the section is
// empty.
func (j *journey) through(t *testing.T, section string) {
	t.Helper()
	last := len(j.Steps) - 1
	for section != "" && last >= j.next && j.Steps[last].Section != section {
		last--
	}
	if last < j.next {
		t.Fatalf("%s has no further step in a section %q", j.name, section)
	}
	for ; j.next <= last; j.next++ {
		j.step(t, &j.Steps[j.next])
	}
}

// first runs the steps up to the first one of a section that tests run.
func (j *journey) first(t *testing.T, section string) {
	t.Helper()
	for ; j.next < len(j.Steps); j.next++ {
		step := &j.Steps[j.next]
		j.step(t, step)
		if step.Section == section && step.NotRun == "" {
			j.next++
			return
		}
	}
	t.Fatalf("%s has no step in a section %q", j.name, section)
}

// step runs the commands of a step in one shell, and requires its answer.
func (j *journey) step(t *testing.T, step *docs.Step) {
	t.Helper()
	for name, text := range step.Files {
		must(t, os.WriteFile(filepath.Join(j.dir, name), []byte(text), 0o600))
	}
	if step.NotRun != "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), journeyPatience)
	defer cancel()
	began := time.Now()
	// The trap stops the background processes of the commands. The next step starts in the
	// directory in which this one ends.
	at := filepath.Join(j.dir, ".at")
	script := fmt.Sprintf("cd '%s'\ntrap 'pwd > %s; kill $(jobs -p) 2>/dev/null || true' EXIT\n%s\n%s", j.work, at, j.before, step.Script)
	out, err := command(ctx, "bash", "-euo", "pipefail", "-c", script)
	if err == nil {
		err = step.Check(out)
	}
	if work, readErr := os.ReadFile(at); readErr == nil {
		j.work = strings.TrimSpace(string(work))
	} else {
		err = errors.Join(err, readErr)
	}
	if err != nil {
		fatal(t, j.namespace, "%s, section %q:\n%s\n%v", j.name, step.Section, step.Script, err)
	}
	t.Logf("%s, %q: %d commands in %s\n%s", j.name, step.Section, len(step.Commands), seconds(time.Since(began)), out)
	j.label(t)
}

// label marks the namespace of the page once it exists, so that the next run removes it after an
// aborted one.
func (j *journey) label(t *testing.T) {
	t.Helper()
	if j.namespace == "" {
		return
	}
	found, err := command(t.Context(), "kubectl", "get", "namespace", j.namespace, "--ignore-not-found", "-o", "name")
	must(t, err)
	if found != "" {
		kubectl(t, "label", "--overwrite", "namespace", j.namespace, testLabel+"="+madeByTests)
	}
}

// done logs the duration of a journey.
func (j *journey) done(t *testing.T, began time.Time) {
	t.Helper()
	t.Logf("FIGURE journey %s: %d of %d commands in %s", j.name, j.Tested, j.Commands, seconds(time.Since(began)))
}

func testChangeNotLive(t *testing.T) {
	began := time.Now()
	j := newJourney(t, "change-not-live", "news")
	j.through(t, "")
	j.done(t, began)
}

// testMoveADeployment requires that no request fails between the first answer of the Deployment and
// its deletion, and that the Service keeps its address.
func testMoveADeployment(t *testing.T) {
	began := time.Now()
	j := newJourney(t, "move-a-deployment", "shop")
	j.through(t, "Look at the example")
	if user := kubectl(t, "exec", "deployment/shop", "-n", "shop", "--", "id", "-u"); strings.TrimSpace(user) != "0" {
		t.Errorf("the Deployment runs as user %s, the page says root", user)
	}
	address := func() string {
		return kubectl(t, "get", "service", "shop", "-n", "shop", "-o", "jsonpath={.spec.clusterIP}")
	}
	before := address()
	load := startLoadOf(t, "shop", suite.reach.service("shop", "shop", 80), "Hello from the shop")
	j.through(t, "")
	load.finish(t, "shop", "load while a Deployment is moved")
	if now := address(); now != before {
		t.Errorf("the address of the Service was %s and is %s", before, now)
	}
	if left := kubectl(t, "get", "deployments", "-n", "shop", "-o", "name"); strings.TrimSpace(left) != "deployment.apps/shop-web" {
		t.Errorf("these Deployments are left: %s", left)
	}
	j.done(t, began)
}

// testStaticSite has the certificate as files, as from a certificate authority.
func testStaticSite(t *testing.T) {
	began := time.Now()
	j := newJourney(t, "static-site-https", "site")
	for name, data := range newCertificate(t, "www.example.com") {
		must(t, os.WriteFile(filepath.Join(j.dir, name), data, 0o600))
	}
	j.through(t, "")
	j.done(t, began)
}

// testBackup requires that the new NginxOperator controls the children of the deleted one, that no
// Pod is replaced, and that no request fails. After the loss of the namespace, the instance serves
// again.
func testBackup(t *testing.T) {
	const namespace, content = "store", "Hello from the store"
	began := time.Now()
	j := newPage(t, "guide", "backup", namespace)
	j.through(t, "Save the objects")
	object := newObject(namespace, "web", 2)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	first, pods := object.UID, uidsOf(t, object)
	load := startLoadOf(t, namespace, suite.reach.service(namespace, "web", 8080), content)

	j.through(t, "Replace an NginxOperator and keep its Pods")
	load.finish(t, namespace, "load while an NginxOperator is replaced")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	children, err := childrenOf(t.Context(), object)
	must(t, err)
	if object.UID == first || len(children) != 5 {
		t.Errorf("the object is not another one, or children are missing: %v", children)
	}
	for kind, child := range children {
		if !metav1.IsControlledBy(child, object) {
			t.Errorf("the owners of the %s are %v", kind, child.GetOwnerReferences())
		}
	}
	if now := uidsOf(t, object); !slices.Equal(now, pods) {
		t.Errorf("the Pods were %v and are %v", pods, now)
	}

	j.through(t, "")
	answers(t, namespace, suite.reach.service(namespace, "web", 8080), content)
	j.done(t, began)
}

// testUpgradeJourney starts from the published release, and goes back to the release that this one
// replaces. Conversion and admission work after each step. The Pods of an instance do not change,
// and its answers do not either. The same applies to an instance that only this release has seen
// before the way back.
func testUpgradeJourney(t *testing.T) {
	deploy(t, suite.published.delivery)
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	kept := map[*v1alpha2.NginxOperator][]types.UID{object: uidsOf(t, object)}
	load := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))
	began := time.Now()
	j := newJourney(t, "upgrade", "")
	for _, step := range []struct{ section, version string }{
		{"Check that it succeeded", suite.version}, {"Go back", suite.previous.version}, {"", "0.7.1"},
	} {
		if step.section == "Go back" {
			j.first(t, step.section)
		} else {
			j.through(t, step.section)
		}
		runsRelease(t, step.version)
		update(t, object, annotateService(step.version))
		takenOver(t, object, step.version)
		if step.version == suite.version {
			late := newInstance(t, namespace, "late", 2)
			kept[late] = uidsOf(t, late)
		}
	}
	j.done(t, began)
	load.finish(t, namespace, "load on the way to this release and two releases back")
	for object, pods := range kept {
		update(t, object, annotateService("back"))
		takenOver(t, object, "back")
		if now := uidsOf(t, object); !slices.Equal(now, pods) {
			t.Errorf("the Pods of %s were %v and are %v", object.Name, pods, now)
		}
	}
}

// runsRelease requires that a release rolled out: every Pod of the operator that does not end runs
// it. The files of this release name its image by digest.
func runsRelease(t *testing.T, version string) {
	t.Helper()
	pods, err := operatorPods(t.Context(), defaultNamespace)
	must(t, err)
	running := 0
	for i := range pods {
		image := pods[i].Spec.Containers[0].Image
		if pods[i].DeletionTimestamp != nil {
			continue
		}
		running++
		if !strings.Contains(image, ":v"+version) && (version != suite.version || !strings.Contains(image, "@sha256:")) {
			t.Errorf("the operator runs %s, want release %s", image, version)
		}
	}
	if running == 0 {
		t.Error("no Pod of the operator runs")
	}
}

// testGitOpsJourney installs this release over the one of the last journey, as a GitOps tool does.
func testGitOpsJourney(t *testing.T) {
	began := time.Now()
	j := newJourney(t, "gitops", "gitops")
	j.through(t, "")
	j.done(t, began)
}

// TestContributeJourney runs the page for contributors. It needs no operator and no cluster, but
// the repository under its URL. The tools of this repository serve the clone, because the network
// of the tests reaches no module proxy.
func TestContributeJourney(t *testing.T) {
	if !suite.local {
		t.Skip("the page names the published repository, which only the environment of the local cluster replaces")
	}
	t.Parallel() // together with TestExamples and TestUpgrade
	serveRepository(t)
	began := time.Now()
	j := newJourney(t, "contribute-a-field", "")
	// Its compilers leave the processors to the other tests, and its make is not a part of another.
	j.before = "renice -n 19 $$ > /dev/null; unset MAKEFLAGS MFLAGS MAKELEVEL"
	j.through(t, "Clone the repository")
	must(t, os.MkdirAll(filepath.Join(j.work, "bin"), 0o755))
	for _, tool := range []string{"controller-gen", "crd-ref-docs", ".stamps"} {
		_, err := command(t.Context(), "cp", "-a", filepath.Join(suite.repository, "bin", tool), filepath.Join(j.work, "bin"))
		must(t, err)
	}
	j.through(t, "")
	j.done(t, began)
}

// testAlertsJourney runs on a cluster with the API of the Prometheus Operator, but without the
// Prometheus Operator.
func testAlertsJourney(t *testing.T) {
	installPrometheusOperatorAPI(t)
	began := time.Now()
	j := newJourney(t, "alerts-and-dashboards", "observed")
	j.through(t, "")
	j.done(t, began)
}

// testUninstallJourney keeps an instance without an operator. After another installation, it
// deletes everything.
func testUninstallJourney(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	pods := uidsOf(t, object)
	load := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))
	began := time.Now()
	j := newJourney(t, "uninstall", defaultNamespace)
	j.through(t, "Remove the operator and keep the instances")
	nothingLeft(t)
	update(t, object, annotateService("uninstall"))
	j.through(t, "Install the operator again")
	takenOver(t, object, "uninstall")
	load.finish(t, namespace, "load through an uninstallation that keeps the instances")
	if now := uidsOf(t, object); !slices.Equal(now, pods) {
		t.Errorf("the Pods were %v and are %v", pods, now)
	}
	j.through(t, "")
	waitFor(t, namespace, "the instance to be gone", patience, func(ctx context.Context) error {
		children, err := childrenOf(ctx, object)
		if err == nil && len(children) > 0 {
			err = fmt.Errorf("%d children are left", len(children))
		}
		return err
	})
	j.done(t, began)
}
