// Package integration runs the manager of the examples, with exactly the rights that examples/config gives it, against a
// real API server and etcd. There is no kubelet, no scheduler and no kube-controller-manager here: where a test needs what
// they would do, it says so by doing it.
//
// KUBEBUILDER_ASSETS names the folder with kube-apiserver and etcd.
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
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
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

// suite is what all tests share.
var suite struct {
	// admin may do everything and reads from the API server itself.
	admin client.WithWatch
	// config is the connection of admin.
	config *rest.Config
	// dir is a temporary folder; binary is the manager in it, kubeconfig the file with the manager's rights.
	dir, binary, kubeconfig, auditLog string
	operator                          *harness.Manager
	// scraper is nil until the metrics are read.
	scraper *apiserver.Scraper
	// service is what the API server calls for admission.
	service *harness.Service
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	suite.dir, err = os.MkdirTemp("", operatorName+"-integration-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()

	suite.binary = filepath.Join(suite.dir, "manager")
	build := exec.Command("go", "build", race, "-o", suite.binary, "../..")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("failed to build the manager: %w\n%s", err, out)
	}
	server, err := startAPIServer()
	if server != nil {
		defer func() { _ = server.Stop() }()
	}
	if err != nil {
		return 0, err
	}
	if err := installConfig(); err != nil {
		return 0, err
	}
	if suite.service, err = harness.NewService(); err != nil {
		return 0, err
	}
	defer suite.service.Close()
	if suite.operator, err = startOperator(); err != nil {
		return 0, err
	}
	code = m.Run()
	if suite.operator.Stop(); code != 0 {
		fmt.Println("the manager:", suite.operator.Account())
	}
	return code, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), foov1.AddToScheme(scheme), activityv1.AddToScheme(scheme),
		myappv1alpha1.AddToScheme(scheme), sidecarsetv1alpha1.AddToScheme(scheme))
}

// startAPIServer returns a server that has to be stopped, with an error as well, unless it is nil.
func startAPIServer() (*apiserver.Server, error) {
	server, err := apiserver.Start(suite.dir, operatorUser)
	if err != nil {
		return nil, err
	}
	suite.config, suite.kubeconfig, suite.auditLog = server.Admin, server.Kubeconfig, server.AuditLog
	scheme, err := newScheme()
	if err != nil {
		return server, err
	}
	suite.admin, err = client.NewWithWatch(server.Admin, client.Options{Scheme: scheme})
	return server, err
}

// installConfig applies all of examples/config, the manager's Deployment included, and waits for the four APIs.
func installConfig() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := apiserver.Apply(ctx, suite.admin, "../../config"); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		return errors.Join(suite.admin.List(ctx, &foov1.FooList{}), suite.admin.List(ctx, &activityv1.ActivityList{}),
			suite.admin.List(ctx, &myappv1alpha1.MyAppList{}), suite.admin.List(ctx, &sidecarsetv1alpha1.SidecarSetList{}))
	})
}
