// Package apiserver runs a real API server with etcd beside the tests, in which one user, the operator, has the RBAC permissions of its
// manifests and is watched by the audit log. KUBEBUILDER_ASSETS names the directory with kube-apiserver and etcd.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// auditPolicy records what the operator asked for, without the bodies.
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
	// Admin may do everything; Operator is the connection of the operator's service account, Kubeconfig the file with it.
	Admin, Operator *rest.Config
	Kubeconfig      string
	// AuditLog is the file in which the operator's requests are, one JSON document to a line.
	AuditLog string
	// Etcd is the address of etcd, for what no client of the API server can store.
	Etcd string

	environment *envtest.Environment
}

// NewEnvironment returns an API server that is not started yet. It gets more time to start and to stop than the 20 s of
// envtest: several of them begin at once, beside compilers.
func NewEnvironment() *envtest.Environment {
	const patience = 3 * time.Minute
	return &envtest.Environment{ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience}
}

// Start starts an API server, with its files in a directory. The user is the operator's, system:serviceaccount:NAMESPACE:NAME. It
// ends with Stop.
func Start(dir, user string) (*Server, error) {
	s := &Server{environment: NewEnvironment(), Kubeconfig: filepath.Join(dir, "operator.kubeconfig")}
	var err error
	if s.AuditLog, err = RecordRequests(s.environment, dir, user); err != nil {
		return nil, err
	}
	// OpenShift has this plugin on: it asks for the permission on finalizers that the operator's role grants.
	s.environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	// Each object has a Service, which nobody collects here, and the default range holds 254.
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
	if err == nil {
		err = os.WriteFile(s.Kubeconfig, kubeconfig, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("failed to write the operator's kubeconfig: %w", err), s.Stop())
	}
	return s, nil
}

// Stop ends the API server and etcd.
func (s *Server) Stop() error { return s.environment.Stop() }

// RecordRequests makes an API server that is not started yet keep an audit log of a user's requests, in a directory, and
// returns its path.
func RecordRequests(environment *envtest.Environment, dir, user string) (auditLog string, err error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, user), 0o600); err != nil {
		return "", fmt.Errorf("failed to write the audit policy: %w", err)
	}
	auditLog = filepath.Join(dir, "audit.log")
	environment.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", auditLog)
	return auditLog, nil
}

// Apply creates all that a kustomization makes, in the order of kubectl apply -k: namespaces first.
func Apply(ctx context.Context, c client.Client, kustomization string) error {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), kustomization)
	if err != nil {
		return fmt.Errorf("failed to render %s: %w", kustomization, err)
	}
	for _, resource := range rendered.Resources() {
		raw, err := resource.AsYAML()
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &object.Object); err != nil {
			return err
		}
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("failed to create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
