// Package e2e tests the release artifacts on a real cluster with OLM, in the ways users use them:
// the bundle through operator-sdk, the catalog through a Subscription, and the API through kubectl
// and HTTP.
//
// `make e2e` runs the tests and sets the environment variables that newSuite reads. E2E_PART
// selects the tests (parts_test.go). A cluster can have only one installation of the operator, so
// tests that install it run one after another. Each run first removes what an aborted run or `make
// demo` left.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/scheme"
)

// suite is the state that all tests share.
var suite struct {
	// admin has all permissions and reads from the API server without a cache.
	admin client.Client
	// reach sends requests to Services and Pods.
	reach reach
	// local is true for the cluster of test/cluster, and false for a user's own cluster.
	local bool
	// repository is the directory of this repository.
	repository string
	// version is the tested release. delivery is the directory with its config and bundle.
	version, delivery string
	// bundleImage and catalogImage are the images that the tests install from.
	bundleImage, catalogImage string
	// releases are the releases in the catalog, oldest first. The last one is the current release.
	releases []release
	// first is the oldest release. published is the newest release before the current one. previous
	// is the release from which the graph leads to the current one. It is older than published if
	// the current release skips published. next is a release after the current one with the same
	// code. The upgrades end there.
	first, previous, published, current, next release
	// full is true in the part subscription, whose tests have more objects.
	full bool
	// auditLog is the path of the API server's audit log. Only the local cluster has a readable
	// one.
	auditLog string
	// etcd is the URL of the API server's etcd, on the local cluster only.
	etcd string
	// dir is a temporary working directory for commands.
	dir string
	// operatorNamespace is where the operator is currently installed, or "" if it is not installed.
	operatorNamespace string
}

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	selected, err := selectParts()
	if err != nil {
		return 1, err
	}
	if listing := flag.Lookup("test.list").Value.String() != ""; listing || slices.Equal(selected, []string{"unit"}) {
		return m.Run(), nil
	}
	suite.full = slices.Contains(selected, "subscription")
	if err := newSuite(); err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()
	// Parallel tests mostly wait, so their number does not depend on the number of CPUs.
	if err := flag.Set("test.parallel", "12"); err != nil {
		return 1, err
	}
	if err := timed("cleaning up what an earlier run left", clean); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, timed("cleaning up", clean)
}

// newSuite reads the environment variables that the Makefile sets, and connects to the cluster.
func newSuite() error {
	var errs []error
	env := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is not set: run these tests with `make e2e`", name))
		}
		return value
	}
	suite.local = env("CLUSTER") == "local"
	suite.version, suite.delivery = env("VERSION"), env("DELIVERY")
	suite.bundleImage, suite.catalogImage = env("BUNDLE_IMAGE"), env("CATALOG_IMAGE")
	errs = append(errs, readReleases(env))
	if suite.local {
		suite.auditLog = env("CLUSTER_AUDIT_LOG")
		suite.etcd = env("CLUSTER_ETCD_URL")
	}
	// The tools of this repository take precedence.
	suite.repository = env("REPO_ROOT")
	tools := filepath.Join(suite.repository, "bin")
	errs = append(errs, os.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH")))
	if err := errors.Join(errs...); err != nil {
		return err
	}

	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("failed to find the cluster: %w", err)
	}
	// Many tests share this client.
	config.QPS, config.Burst = 200, 400
	if suite.admin, err = client.New(config, client.Options{Scheme: scheme.New()}); err != nil {
		return fmt.Errorf("failed to make a client: %w", err)
	}
	if suite.reach, err = newReach(config, suite.local); err != nil {
		return err
	}
	suite.dir, err = os.MkdirTemp("", "nginx-operator-e2e-")
	return err
}

// timed runs a step outside of the tests, with a time limit, and prints how long it took.
func timed(what string, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	if err := step(ctx); err != nil {
		return fmt.Errorf("failed at %s: %w", what, err)
	}
	fmt.Printf("e2e: %s took %s\n", what, seconds(time.Since(began)))
	return nil
}
