package olm

import (
	"path/filepath"
	"testing"

	"github.com/example/nginx-operator/test/cluster/internal/helmtest"
	"github.com/example/nginx-operator/test/cluster/internal/images"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

// TestManifests renders the chart of OLM, without its catalog of community operators, which is
// outside the cluster.
func TestManifests(t *testing.T) {
	l := helmtest.Repo(t)
	source, olmVersion := helmtest.Source(t, l, tools.OLM)
	_, opmVersion := helmtest.Source(t, l, tools.Registry)
	olmImage, opmImage := images.OLM+":"+olmVersion, images.OPM+":"+opmVersion
	helmtest.Compare(t, l, "olm.yaml", namespace, filepath.Join(source, "deploy", "chart"),
		"namespace="+namespace,
		"catalog_namespace="+namespace,
		"operator_namespace=operators",
		"installType=",
		"olm.image.ref="+olmImage,
		"olm.image.pullPolicy=IfNotPresent",
		"catalog.image.ref="+olmImage,
		"catalog.image.pullPolicy=IfNotPresent",
		"catalog.opmImageArgs=--opmImage="+opmImage,
		"catalog.commandArgs=--configmapServerImage="+opmImage,
		"package.image.ref="+olmImage,
		"package.image.pullPolicy=IfNotPresent",
		"package.replicaCount=1")
}
