package e2e

// The Helm chart, by the commands of docs/guide/helm.md. The charts come from the cluster's
// registry.
//
//   - After an uninstallation, the CRD and the instances are there, and the instances serve.
//   - TestHelmVersions has both versions of Helm: an upgrade to the next release has the invariants
//     of an upgrade through OLM, with another port for the webhooks. The CA that the operator writes stays in the CRD and in the webhook
//     configurations, under the three-way merge of Helm 3 and the server-side apply of Helm 4.
//   - A new installation adopts the instances. A release continues as an installation by kubectl, and
//     the other way around. No Pod of an instance is replaced.
//   - Another release is refused as long as the objects belong to the first one.
//
// TestHelm in test/integration has the same on an API server, and the permissions with watched
// namespaces.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHelm(t *testing.T) {
	charts := installWithHelm(t, "helm4", suite.current)
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 1)
	load := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))
	charts.documented(t, "Uninstall", suite.version)
	nothingLeft(t)
	load.finish(t, namespace, "load while Helm uninstalls the operator")
	must(t, ready(t.Context(), object))
}

func TestHelmVersions(t *testing.T) {
	for name, program := range map[string]string{"Helm 3": "helm", "Helm 4": "helm4"} {
		t.Run(name, func(t *testing.T) { testHelm(t, name, program) })
	}
}

// installWithHelm pushes the charts of releases with a version of Helm, and installs this release
// on a clean cluster.
func installWithHelm(t *testing.T, program string, pushed ...release) chartCommands {
	t.Helper()
	startInDefault(t)
	charts := useHelm(t, program)
	pushCharts(t, pushed)
	began := time.Now()
	charts.documented(t, "Install", suite.version)
	t.Logf("FIGURE release %s with Helm: %s", suite.version, seconds(time.Since(began)))
	return charts
}

func testHelm(t *testing.T, name, program string) {
	charts := installWithHelm(t, program, suite.current, suite.next)
	// The upgrade keeps the port, so the reads and writes during it use it.
	charts.documented(t, "Another port", suite.version)
	fleet := newFleet(t, helmObjects)
	during := "from " + suite.version + " to " + suite.next.version + " with Helm"
	fleet.step(t, during, suite.current, func(func()) { charts.documented(t, "Upgrade", suite.next.version) })
	upgradedWithHelm(t)
	storageMigratedAlready(t, fleet.namespace)

	load := startLoad(t, fleet.namespace, suite.reach.service(fleet.namespace, "web", 8080))
	charts.documented(t, "Uninstall", suite.next.version)
	nothingLeft(t)
	must(t, fleet.asCreated(t.Context(), newer))
	fleet.samePods(t, "without the operator")
	update(t, fleet.web, annotateService("uninstalled"))
	charts.documented(t, "Install", suite.next.version)
	takenOver(t, fleet.web, "uninstalled")

	charts.documented(t, "From Helm to kubectl", suite.next.version)
	update(t, fleet.web, annotateService("kubectl"))
	takenOver(t, fleet.web, "kubectl")
	other := named("other", fleet.namespace)
	// kubectl remains an owner of fields, and only Helm 4 minds.
	other.force = program == "helm4"
	if out, err := other.try(t, "Install", suite.next.version); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("another release is installed: %v\n%s", err, out)
	}
	other.documented(t, "With "+name, suite.next.version)
	update(t, fleet.web, annotateService("helm"))
	takenOver(t, fleet.web, "helm")

	began := time.Now()
	other.documented(t, "Watch selected namespaces", suite.next.version)
	update(t, fleet.web, annotateService("watched"))
	takenOver(t, fleet.web, "watched")
	t.Logf("FIGURE the operator limited to one namespace with Helm: %s", seconds(time.Since(began)))

	load.finish(t, fleet.namespace, "load without the operator and from Helm to kubectl and back")
	fleet.samePods(t, "from Helm to kubectl and back")
}

// helmObjects is the number of objects without Pods during the upgrade.
const helmObjects = 10

// chartCommands runs the documented commands.
type chartCommands struct {
	// release replaces the name of the release, and watched the watched namespace.
	release, watched string
	// force adds --force-conflicts to upgrades.
	force bool
}

// useHelm makes a version of Helm the command helm of the test. Helm writes only into the test's
// directory.
func useHelm(t *testing.T, program string) chartCommands {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Symlink(filepath.Join(suite.repository, "bin", program), filepath.Join(dir, "helm")))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(name, filepath.Join(dir, strings.ToLower(name)))
	}
	version, err := command(t.Context(), "helm", "version", "--short")
	must(t, err)
	t.Log("Helm " + version)
	return chartCommands{release: packageName}
}

// named returns the commands with another name of the release and a watched namespace.
func named(release, watched string) chartCommands {
	return chartCommands{release: release, watched: watched}
}

// documented runs the commands of a section for a version of the chart.
func (c chartCommands) documented(t *testing.T, heading, version string) {
	t.Helper()
	if _, err := c.try(t, heading, version); err != nil {
		fatal(t, "", "%s: %v", heading, err)
	}
}

// try does the same as documented, but returns the output and the error.
func (c chartCommands) try(t *testing.T, heading, version string) (string, error) {
	t.Helper()
	delivery := suite.delivery
	if version == suite.next.version {
		delivery = suite.next.delivery
	}
	reuse := "--reset-then-reuse-values "
	if c.force {
		reuse += "--force-conflicts "
	}
	return documentedIn(t, "guide/helm.md", heading, delivery, strings.NewReplacer("--reset-then-reuse-values ", reuse,
		"oci://ghcr.io/example/", "oci://"+publishedAt()+"/", "--version "+suite.version, "--version "+version,
		"helm install "+packageName+" ", "helm install "+c.release+" ", "helm upgrade "+packageName+" ", "helm upgrade "+c.release+" ",
		"{team-a}", "{"+c.watched+"}"))
}

// publishedAt returns the registry from which a cluster pulls images.
func publishedAt() string { return strings.TrimSuffix(os.Getenv("IMAGES"), "/"+packageName) }

// pushCharts publishes the charts of releases.
func pushCharts(t *testing.T, releases []release) {
	t.Helper()
	registry := publishedAt()
	if suite.local {
		// The registry of the cluster has the images of ghcr.io below its own name.
		registry = os.Getenv("IMAGE_REGISTRY") + "/" + registry
	}
	dir := t.TempDir()
	for _, r := range releases {
		for _, args := range [][]string{
			{"package", filepath.Join(r.delivery, "charts", packageName), "--destination", dir},
			{"push", filepath.Join(dir, packageName+"-"+r.version+".tgz"), "oci://" + registry + "/charts"},
		} {
			_, err := command(t.Context(), "helm", args...)
			must(t, err)
		}
	}
}

// upgradedWithHelm requires that the objects are those of the next release, and that they still
// have the CA of the operator.
func upgradedWithHelm(t *testing.T) {
	t.Helper()
	crd, err := readCRD(t.Context())
	must(t, err)
	if got, want := crd.Labels["helm.sh/chart"], packageName+"-"+suite.next.version; got != want {
		t.Errorf("the CRD is that of %s, want %s", got, want)
	}
	bundles, err := caBundles(t.Context(), defaultNamespace)
	must(t, err)
	for name, bundle := range bundles {
		if bundle == "" {
			t.Errorf("%s has no CA", name)
		}
	}
	pods, err := operatorPods(t.Context(), defaultNamespace)
	must(t, err)
	for i := range pods {
		if image := pods[i].Spec.Containers[0].Image; !strings.HasSuffix(image, ":v"+suite.next.version) {
			t.Errorf("the operator is %s", image)
		}
	}
}
