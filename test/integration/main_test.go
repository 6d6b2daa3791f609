// Package integration runs the operator's own binary with exactly the RBAC permissions of
// config/rbac against a real API server and etcd, and checks its requests. There is no kubelet and
// no kube-controller-manager: a test that depends on their status writes this status itself.
//
// KUBEBUILDER_ASSETS is the directory that contains kube-apiserver and etcd.
package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

const (
	operatorNamespace = harness.OperatorNamespace
	operatorUser      = harness.OperatorUser
	metricsRole       = harness.MetricsRole
	operandImage      = harness.OperandImage
)

// suite is the state that all tests share.
var suite struct {
	// admin has all RBAC permissions and reads directly from the API server.
	admin client.Client
	// config connects as admin, operatorConfig as the operator's service account.
	config, operatorConfig *rest.Config
	// dir is a temporary directory, binary the operator, and kubeconfig the file that connects as
	// the operator.
	dir, binary, kubeconfig, auditLog string
	// etcd is the address of etcd.
	etcd     string
	operator *harness.Manager
	// service is the address that the API server calls for conversion and admission.
	service *harness.Service
	// optional are the CustomResourceDefinitions of kinds that not every cluster has, by name.
	optional map[string]*apiextensionsv1.CustomResourceDefinition
	// scraper is nil until a test reads the metrics.
	scraper *apiserver.Scraper
}

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if flag.Lookup("test.list").Value.String() != "" {
		return m.Run(), nil
	}
	program, err := selectSet(os.Getenv(setVariable))
	if err != nil {
		return 0, err
	}
	suite.dir, err = os.MkdirTemp("", "nginx-operator-integration-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()

	if suite.binary, err = harness.Program(program); err != nil {
		return 0, err
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
	if err := installOptionalKinds(); err != nil {
		return 0, err
	}
	if suite.service, err = harness.NewService(); err != nil {
		return 0, err
	}
	defer suite.service.Close()
	if suite.operator, err = startOperator(); err != nil {
		return 0, err
	}
	// Parallel tests, each in its own namespace, mostly wait, so the number of processors is a poor
	// limit. Tests that stop the operator or count all its requests do not run in parallel.
	if err := flag.Set("test.parallel", "6"); err != nil {
		return 0, err
	}
	code = m.Run()
	if suite.operator.Kill(); code != 0 {
		fmt.Println("the operator:", suite.operator.Summary())
		return code, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return code, checkPermissions(ctx)
}

func startAPIServer() (*apiserver.Server, error) {
	server, err := apiserver.Start(suite.dir, operatorUser)
	if err != nil {
		return nil, err
	}
	suite.config, suite.operatorConfig, suite.kubeconfig, suite.auditLog = server.Admin, server.Operator, server.Kubeconfig, server.AuditLog
	suite.etcd = server.Etcd
	if suite.admin, err = client.New(server.Admin, client.Options{Scheme: scheme.New()}); err != nil {
		return server, err
	}
	return server, logVersion()
}

// logVersion prints the version of the API server for the record of `make nightly`.
func logVersion() error {
	api, err := discovery.NewDiscoveryClientForConfig(suite.config)
	if err != nil {
		return err
	}
	version, err := api.ServerVersion()
	if err != nil {
		return err
	}
	fmt.Println("MATRIX Kubernetes", version.GitVersion)
	return nil
}

// installConfig applies all of config/default. This includes the operator's Deployment, because a
// real API server must accept it.
func installConfig() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := apiserver.Apply(ctx, suite.admin, "../../config/default"); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		return suite.admin.List(ctx, &unstructured.UnstructuredList{Object: map[string]any{
			"apiVersion": "operator.example.com/v1alpha1", "kind": "NginxOperatorList",
		}})
	})
}

// installOptionalKinds installs the CustomResourceDefinitions of HTTPRoute, PodMonitor, and
// PrometheusRule before the operator starts. Other test suites do not install them and verify that
// the operator starts without them.
func installOptionalKinds() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if suite.optional, err = harness.OptionalCRDs(ctx, os.Getenv("KUBEBUILDER_ASSETS")); err != nil {
		return err
	}
	for _, crd := range suite.optional {
		if err := harness.InstallCRD(ctx, suite.admin, crd); err != nil {
			return err
		}
	}
	return nil
}

// newNamespace creates a namespace for one test. It deletes the namespace's NginxOperators when the
// test ends, because the operator would keep retrying objects in conflict.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.GenerateName = "test-"
	must(t, suite.admin.Create(t.Context(), namespace))
	t.Cleanup(func() {
		if err := suite.admin.DeleteAllOf(context.Background(), &v1alpha1.NginxOperator{}, client.InNamespace(namespace.Name)); err != nil {
			t.Error(err)
		}
	})
	return namespace.Name
}
