// Package e2e tests the released parts on a real cluster with OLM, in the ways in which users meet them: the bundle
// through operator-sdk, the catalog through a Subscription, the API through kubectl and HTTP.
//
// `make e2e` runs it and sets the environment that newSuite reads. The operator can be on a cluster only once, so the
// tests that install it run one after the other, the upgrades last; and what an aborted run (or `make demo`) left is removed first.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/operatormanager"
)

// suite is what all tests share.
var suite struct {
	// admin may do everything and reads from the API server itself.
	admin client.Client
	// reach sends requests to Services and Pods.
	reach reach
	// local: it is the cluster of test/cluster, and not a user's own.
	local bool
	// repository is the directory of this repository.
	repository string
	// version is the release that is tested; delivery is the directory with its config and bundle.
	version, delivery string
	// bundleImage and catalogImage are what is installed from.
	bundleImage, catalogImage string
	// releases are those that the catalog has, oldest first; the last of them is this one.
	releases []release
	// first is the oldest release, published the newest one before the current release, previous the one from which the graph
	// leads to the current release (older than published if the current release skips that), unmigrated the last one that
	// stores the older version of the API, next a release after this one with the same code, where upgrades end.
	first, previous, published, current, unmigrated, next release
	// full runs also what is only long. olmV1: the cluster has OLM v1, and not OLM v0.
	full, olmV1 bool
	// auditLog is the API server's audit log; only the local cluster has one that can be read.
	auditLog string
	// etcd is the address of the API server's etcd, of the local cluster only.
	etcd string
	// dir is a temporary directory in which commands run.
	dir string
	// operatorNamespace is where the operator is installed at the moment, for the diagnostics of a failure.
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
	if err := newSuite(); err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()
	// Tests that run at the same time wait most of the time, so the number of processors says nothing.
	if err := flag.Set("test.parallel", "12"); err != nil {
		return 1, err
	}
	if err := timed("cleaning up what an earlier run left", clean); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, timed("cleaning up", clean)
}

// newSuite reads the environment that the Makefile sets, and connects to the cluster.
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
	suite.full, suite.olmV1 = os.Getenv("E2E_FULL") == "true", os.Getenv("E2E_OLM") == "v1"
	errs = append(errs, readReleases(env))
	if suite.local {
		suite.auditLog = env("CLUSTER_AUDIT_LOG")
		suite.etcd = env("CLUSTER_ETCD_URL")
	}
	// The tools of this repository come first.
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
	if suite.admin, err = client.New(config, client.Options{Scheme: operatormanager.NewScheme()}); err != nil {
		return fmt.Errorf("failed to make a client: %w", err)
	}
	if suite.reach, err = newReach(config, suite.local); err != nil {
		return err
	}
	suite.dir, err = os.MkdirTemp("", "nginx-operator-e2e-")
	return err
}

// timed runs a step that is no test, bounded, and prints how long it took.
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
