// Package apiserver runs a real API server with etcd next to the tests. The operator is a user with
// the RBAC permissions of its manifests, and the audit log records its requests. KUBEBUILDER_ASSETS
// is the directory of kube-apiserver and etcd.
package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/example/nginx-operator/test/harness"
)

// auditPolicy records the operator's requests without their bodies.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%q]
- level: None
`

// Server is a running API server.
type Server struct {
	// Admin has all permissions. Operator connects as the operator's service account.
	// AdminKubeconfig and Kubeconfig are files for the same users.
	Admin, Operator             *rest.Config
	AdminKubeconfig, Kubeconfig string
	// AuditLog is the file with the operator's requests, one JSON document per line.
	AuditLog string
	// Etcd is the URL of etcd, for objects that the API server would reject.
	Etcd string

	environment *envtest.Environment
}

// NewEnvironment returns an API server that is not started yet. Its start and stop timeouts are
// longer than the 20 s of envtest, because several API servers start at the same time, next to
// compilers.
func NewEnvironment() *envtest.Environment {
	const patience = 3 * time.Minute
	return &envtest.Environment{ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience}
}

// Version returns the version of kube-apiserver, which is TEST_ASSET_KUBE_APISERVER if it is set.
func Version(ctx context.Context) (*version.Version, error) {
	binary := cmp.Or(os.Getenv("TEST_ASSET_KUBE_APISERVER"), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-apiserver"))
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("failed to find the version of %s: %w", binary, err)
	}
	_, number, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	return version.ParseSemantic(number)
}

// Needs skips a test if kube-apiserver is older than the first version with a feature.
func Needs(t testing.TB, first, feature string) {
	t.Helper()
	if found := harness.Must1(Version(t.Context()))(t); found.LessThan(version.MustParseSemantic(first)) {
		t.Skipf("Kubernetes %s does not have %s, which came with %s", found, feature, first)
	}
}

// Start starts an API server with its files in dir. The user is the operator's:
// system:serviceaccount:NAMESPACE:NAME. args are additional arguments, each a name and a value.
// Stop ends it.
func Start(dir, user string, args ...[2]string) (*Server, error) {
	s := &Server{environment: NewEnvironment()}
	s.AdminKubeconfig, s.Kubeconfig = filepath.Join(dir, "admin.kubeconfig"), filepath.Join(dir, "operator.kubeconfig")
	s.AuditLog = filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "audit-policy.yaml")
	err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, user), 0o600)
	if err != nil {
		return nil, fmt.Errorf("failed to write the audit policy: %w", err)
	}
	s.environment.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", s.AuditLog)
	// OpenShift enables this plugin. It requires the permission on finalizers that the operator's
	// role grants.
	s.environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	for _, arg := range args {
		s.environment.ControlPlane.GetAPIServer().Configure().Append(arg[0], arg[1])
	}
	// Each NginxOperator has a Service. Nothing deletes these Services here, and the default range
	// has only 254 addresses.
	s.environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16,fd00::/112")
	if s.Admin, err = s.environment.Start(); err != nil {
		return nil, fmt.Errorf("failed to start the API server: %w", err)
	}
	s.Etcd = s.environment.ControlPlane.Etcd.URL.String()
	account, err := s.environment.AddUser(envtest.User{Name: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("failed to add the operator's user: %w", err), s.Stop())
	}
	s.Operator = account.Config()
	kubeconfig, err := account.KubeConfig()
	err = errors.Join(err, os.WriteFile(s.Kubeconfig, kubeconfig, 0o600), os.WriteFile(s.AdminKubeconfig, s.environment.KubeConfig, 0o600))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("failed to write a kubeconfig: %w", err), s.Stop())
	}
	return s, nil
}

// Stop ends the API server and etcd.
func (s *Server) Stop() error { return s.environment.Stop() }

// Apply creates the objects of a kustomization in the order of kubectl apply -k: namespaces first.
// It raises the webhooks' timeouts of five seconds to the longest one that the API allows, because
// integration tests share two processors with four other API servers, where a call can take longer.
// Webhooks that may fail within two seconds keep their timeout.
func Apply(ctx context.Context, c client.Client, kustomization string) error {
	return apply(ctx, c, kustomization, raiseTimeouts)
}

// ApplyUnchanged is Apply with the webhooks' own timeouts.
func ApplyUnchanged(ctx context.Context, c client.Client, kustomization string) error {
	return apply(ctx, c, kustomization, func(*unstructured.Unstructured) {})
}

func apply(ctx context.Context, c client.Client, kustomization string, change func(*unstructured.Unstructured)) error {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), kustomization)
	if err != nil {
		return fmt.Errorf("failed to render %s: %w", kustomization, err)
	}
	for _, resource := range rendered.Resources() {
		raw, err := resource.MarshalJSON()
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			return err
		}
		change(object)
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("failed to create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func raiseTimeouts(object *unstructured.Unstructured) {
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, webhook := range webhooks {
		if webhook, ok := webhook.(map[string]any); ok && webhook["timeoutSeconds"] == int64(5) {
			webhook["timeoutSeconds"] = int64(30)
		}
	}
}
