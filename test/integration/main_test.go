// Package integration runs the operator's own binary, with exactly the RBAC permissions that config/rbac gives it, against a real
// API server and etcd, and looks at what it writes. There is no kubelet and no kube-controller-manager here: where a
// test needs what they would report, it says so by writing the status that they would write.
//
// KUBEBUILDER_ASSETS names the directory with kube-apiserver and etcd.
package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

const (
	operatorNamespace = harness.OperatorNamespace
	operatorUser      = harness.OperatorUser
	metricsRole       = harness.MetricsRole
	operandImage      = harness.OperandImage
)

// suite is what all tests share.
var suite struct {
	// admin may do everything and reads from the API server itself.
	admin client.Client
	// config is the connection of admin, operatorConfig that of the operator's service account.
	config, operatorConfig *rest.Config
	// dir is a temporary directory; binary is the operator in it, kubeconfig the file with the operator's RBAC permissions.
	dir, binary, kubeconfig, auditLog string
	// etcd is the address of etcd.
	etcd     string
	operator *harness.Manager
	// service is what the API server calls for conversion and admission.
	service *harness.Service
	// optional are the CustomResourceDefinitions of kinds that not every cluster has, by their names.
	optional map[string]*apiextensionsv1.CustomResourceDefinition
	// scraper is nil until the metrics are read.
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
	suite.dir, err = os.MkdirTemp("", "nginx-operator-integration-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()

	suite.binary = filepath.Join(suite.dir, "manager")
	build := exec.Command("go", "build", "-race", "-ldflags", "-s -w -X main.version=integration", "-o", suite.binary, "../..")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("failed to build the operator: %w\n%s", err, out)
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
	// Those that run at the same time, each in a namespace of its own, wait most of the time, so the number of processors says nothing.
	// What stops the operator, or counts all that it does, is not among them.
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
	suite.admin, err = client.New(server.Admin, client.Options{Scheme: operatormanager.NewScheme()})
	return server, err
}

// installConfig applies all of config/default, the operator's Deployment included: a real API server has to take it.
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

// installOptionalKinds has HTTPRoutes, PodMonitors and PrometheusRules served when the operator starts. That it starts without them others
// see, which install nothing.
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

// newNamespace makes a namespace for one test. Its objects go with the test: one that is in conflict is retried for ever.
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
