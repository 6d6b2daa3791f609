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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	activityv1 "github.com/example/nginx-operator/examples/activity/api/v1"
	foov1 "github.com/example/nginx-operator/examples/foo/api/v1"
	myappv1alpha1 "github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	sidecarsetv1alpha1 "github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/test/harness"
)

const (
	operatorName      = "nginx-operator-examples"
	operatorNamespace = operatorName + "-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":" + operatorName + "-controller-manager"
)

// auditPolicy records what the manager asked for, without the bodies.
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
	// config is the connection of admin.
	config *rest.Config
	// dir is a temporary folder; binary is the manager in it, kubeconfig the file with the manager's rights.
	dir, binary, kubeconfig, auditLog string
	operator                          *process
	// scraper is a token with which the metrics can be read, "" until it is made.
	scraper string
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
	env, err := startAPIServer()
	if env != nil {
		defer func() { _ = env.Stop() }()
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
	if log := suite.operator.stop(); code != 0 {
		fmt.Printf("--- log of the manager\n%s\n", log)
	}
	return code, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), foov1.AddToScheme(scheme), activityv1.AddToScheme(scheme),
		myappv1alpha1.AddToScheme(scheme), sidecarsetv1alpha1.AddToScheme(scheme))
}

// startAPIServer returns an environment that has to be stopped, with an error as well, unless it is nil.
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
	// OpenShift has this plugin on: it asks for the right on finalizers that the role grants.
	args.Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("failed to start the API server: %w", err)
	}
	suite.config = config
	scheme, err := newScheme()
	if err != nil {
		return env, err
	}
	if suite.admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return env, err
	}
	user, err := env.AddUser(envtest.User{Name: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}, nil)
	if err != nil {
		return env, err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return env, err
	}
	suite.kubeconfig = filepath.Join(suite.dir, "operator.kubeconfig")
	return env, os.WriteFile(suite.kubeconfig, kubeconfig, 0o600)
}

// installConfig applies all of examples/config, the manager's Deployment included, and waits for the four APIs.
func installConfig() error {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces first, as kubectl apply -k does
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), "../../config")
	if err != nil {
		return fmt.Errorf("failed to render examples/config: %w", err)
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
		return errors.Join(suite.admin.List(ctx, &foov1.FooList{}), suite.admin.List(ctx, &activityv1.ActivityList{}),
			suite.admin.List(ctx, &myappv1alpha1.MyAppList{}), suite.admin.List(ctx, &sidecarsetv1alpha1.SidecarSetList{}))
	})
}
