// Package integration runs the manager of the examples, with exactly the RBAC permissions of examples/config, against a real API server
// and etcd. There is no kubelet and no kube-controller-manager: a test does what they would do. KUBEBUILDER_ASSETS names the
// directory with kube-apiserver and etcd.
package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	activityv1 "github.com/example/nginx-operator/examples/activity/api/v1"
	foov1 "github.com/example/nginx-operator/examples/foo/api/v1"
	myappv1alpha1 "github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	sidecarsetv1alpha1 "github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

const (
	operatorName      = "nginx-operator-examples"
	operatorNamespace = operatorName + "-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":" + operatorName + "-controller-manager"
)

// race is the flag with which the manager is built.
var race = "-race"

// suite is what all tests share.
var suite struct {
	server *apiserver.Server
	// admin may do everything and reads from the API server.
	admin client.WithWatch
	// dir is a temporary directory with binary, the manager.
	dir, binary string
	operator    *harness.Manager
	// service is what the API server calls for admission.
	service *harness.Service
	scraper *apiserver.Scraper
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if suite.dir, err = os.MkdirTemp("", operatorName+"-integration-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()
	suite.binary = filepath.Join(suite.dir, "manager")
	if out, err := exec.Command("go", "build", race, "-o", suite.binary, "../..").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("failed to build the manager: %w\n%s", err, out)
	}
	if suite.server, err = apiserver.Start(suite.dir, operatorUser); err != nil {
		return 0, err
	}
	defer func() { _ = suite.server.Stop() }()
	if err := install(); err != nil {
		return 0, err
	}
	if suite.service, err = harness.NewService(); err != nil {
		return 0, err
	}
	defer suite.service.Close()
	if err := startOperator(); err != nil {
		return 0, err
	}
	code = m.Run()
	if suite.operator.Stop(); code != 0 {
		fmt.Println("the manager:", suite.operator.Summary())
	}
	return code, nil
}

// install applies all of examples/config and waits for the four APIs.
func install() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	scheme := clientgoscheme.Scheme
	err := errors.Join(foov1.AddToScheme(scheme), activityv1.AddToScheme(scheme), myappv1alpha1.AddToScheme(scheme),
		sidecarsetv1alpha1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	if suite.admin, err = client.NewWithWatch(suite.server.Admin, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := apiserver.Apply(ctx, suite.admin, "../../config"); err != nil {
		return err
	}
	if suite.scraper, err = apiserver.NewScraper(ctx, suite.admin, operatorNamespace, operatorName+"-metrics-reader"); err != nil {
		return err
	}
	return harness.Eventually(ctx, interval, func(ctx context.Context) error {
		return errors.Join(suite.admin.List(ctx, &foov1.FooList{}), suite.admin.List(ctx, &activityv1.ActivityList{}),
			suite.admin.List(ctx, &myappv1alpha1.MyAppList{}), suite.admin.List(ctx, &sidecarsetv1alpha1.SidecarSetList{}))
	})
}

// startOperator starts the manager and waits until it is ready. It elects nobody: after a kill the next one begins at once.
func startOperator() (err error) {
	suite.operator, err = harness.StartManager(harness.ManagerOptions{
		Binary: suite.binary, Kubeconfig: suite.server.Kubeconfig, Namespace: operatorNamespace, Dir: suite.dir, Service: suite.service,
	})
	return err
}
