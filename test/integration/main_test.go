// Package integration runs the operator's own binary, with exactly the rights that config/rbac gives it, against a real
// API server and etcd, and looks at what it writes. There is no kubelet and no kube-controller-manager here: where a
// test needs what they would report, it says so by writing the status that they would write.
//
// KUBEBUILDER_ASSETS names the folder with kube-apiserver and etcd.
package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	operatormanager "github.com/example/nginx-operator/internal/manager"
	"github.com/example/nginx-operator/test/harness"
)

const (
	operatorNamespace = "nginx-operator-system"
	operatorUser      = "system:serviceaccount:nginx-operator-system:nginx-operator-controller-manager"
	operandImage      = "docker.io/nginxinc/nginx-unprivileged:1.28.0"
)

// auditPolicy records who asked for what, without the bodies.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + operatorUser + `"]
- level: None
`

// suite is what all tests share.
var suite struct {
	// admin may do everything and reads from the API server itself.
	admin client.Client
	// config is the connection of admin, operatorConfig that of the operator's service account.
	config, operatorConfig *rest.Config
	// dir is a temporary folder; binary is the operator in it, kubeconfig the file with the operator's rights.
	dir, binary, kubeconfig, auditLog string
	operator                          *process
	// service is what the API server calls for conversion and admission.
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
	suite.dir, err = os.MkdirTemp("", "nginx-operator-integration-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(suite.dir) }()

	suite.binary = filepath.Join(suite.dir, "manager")
	build := exec.Command("go", "build", "-race", "-ldflags", "-X main.version=integration", "-o", suite.binary, "../..")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("failed to build the operator: %w\n%s", err, out)
	}

	env, err := startAPIServer()
	if err != nil {
		return 0, err
	}
	defer func() { _ = env.Stop() }()
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
	if log := suite.operator.stop(); code != 0 {
		fmt.Printf("--- log of the operator\n%s\n", log)
	}
	return code, nil
}

func startAPIServer() (*envtest.Environment, error) {
	policy := filepath.Join(suite.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	suite.auditLog = filepath.Join(suite.dir, "audit.log")
	env := &envtest.Environment{}
	args := env.ControlPlane.GetAPIServer().Configure()
	args.Set("audit-policy-file", policy)
	args.Set("audit-log-path", suite.auditLog)
	// OpenShift has this plugin on: it asks for the right on finalizers that the operator's role grants.
	args.Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("failed to start the API server: %w", err)
	}
	suite.config = config
	suite.admin, err = client.New(config, client.Options{Scheme: operatormanager.NewScheme()})
	if err != nil {
		return env, err
	}
	user, err := env.AddUser(envtest.User{Name: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}, nil)
	if err != nil {
		return env, err
	}
	suite.operatorConfig = user.Config()
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return env, err
	}
	suite.kubeconfig = filepath.Join(suite.dir, "operator.kubeconfig")
	return env, os.WriteFile(suite.kubeconfig, kubeconfig, 0o600)
}

// installConfig applies all of config/default, the operator's Deployment included: a real API server has to take it.
func installConfig() error {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces first, as kubectl apply -k does
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), "../../config/default")
	if err != nil {
		return fmt.Errorf("failed to render config/default: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, resource := range rendered.Resources() {
		raw, err := resource.AsYAML()
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &object.Object); err != nil {
			return err
		}
		if err := suite.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("failed to create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return eventually(ctx, func() error {
		return suite.admin.List(ctx, &unstructured.UnstructuredList{Object: map[string]any{
			"apiVersion": "operator.example.com/v1alpha1", "kind": "NginxOperatorList",
		}})
	})
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
