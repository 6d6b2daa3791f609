package e2e

// The pages of docs/guide/recipes, and the page on uploads. Their commands run as they are written,
// next to real peers with the published names of their images: php-fpm, HAProxy, and a registry.
//
//   - A node pulls an image through the cache of a registry.
//   - While the Pods of a headless Service are replaced, no request to nginx in front of them fails.
//     This needs a later nginx than the local cluster's default image.

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRecipes(t *testing.T) {
	if !suite.local {
		t.Skip("the pages use the published names of images, which only the local cluster serves from its own registry")
	}
	startInDefault(t)
	deploy(t, suite.delivery)
	t.Run("default image", func(t *testing.T) {
		for name, namespace := range map[string]string{
			"php-fpm": "php", "client-certificates": "partners", "proxy-protocol": "edge", "njs": "hooks",
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); runRecipe(t, newPage(t, recipes, name, namespace)) })
		}
		t.Run("registry-cache", func(t *testing.T) { t.Parallel(); testRegistryCache(t) })
		t.Run("uploads", func(t *testing.T) { t.Parallel(); runRecipe(t, newPage(t, "guide", "uploads", "uploads")) })
	})
	t.Run("follow-pods", testFollowPods)
}

const recipes = "guide/recipes"

// runRecipe runs the remaining steps of a page.
func runRecipe(t *testing.T, j *journey) {
	t.Helper()
	began := time.Now()
	j.through(t, "")
	j.done(t, began)
}

// testRegistryCache copies the file of the page to the node, as its reader does.
func testRegistryCache(t *testing.T) {
	j := newPage(t, recipes, "registry-cache", "registry-cache")
	j.through(t, "Point the nodes to the cache")
	hosts, err := os.ReadFile(filepath.Join(j.work, "hosts.toml"))
	must(t, err)
	onNode := filepath.Join(filepath.Dir(os.Getenv("CLUSTER_PKI")), "config", "certs.d", "registry.example.com")
	must(t, os.MkdirAll(onNode, 0o755))
	t.Cleanup(func() { must(t, os.RemoveAll(onNode)) })
	must(t, os.WriteFile(filepath.Join(onNode, "hosts.toml"), hosts, 0o644))
	runRecipe(t, j)
}

// testFollowPods replaces the default image of the operator by nginx of Debian's sid, which is as new
// as the published default image.
func testFollowPods(t *testing.T) {
	kubectl(t, "set", "env", "-n", defaultNamespace, "deployment/"+operatorName,
		"RELATED_IMAGE_NGINX=docker.io/nginxinc/nginx-unprivileged:debian-sid")
	waitForOperator(t)
	j := newPage(t, recipes, "follow-pods", "carts")
	j.through(t, "Deploy")
	cart := newObject("carts", "cart", 3)
	before := uidsOf(t, cart)
	load := startLoadOf(t, "carts", suite.reach.service("carts", "balancer", 8080), "Cart on ")
	runRecipe(t, j)
	waitForNewPods(t, cart, before)
	load.finish(t, "carts", "load while all Pods behind a headless Service are replaced")
}
