package monitoring

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/internal/options"
	"github.com/example/nginx-operator/test/harness"
)

const repository = "../.."

// manifests renders config/monitoring together with other parts of config, and returns the
// documents by kind.
func manifests(t *testing.T, namespace string, parts ...string) map[string][][]byte {
	t.Helper()
	out := map[string][][]byte{}
	for _, object := range harness.Must1(Render(repository, namespace, parts...))(t) {
		out[object.GetKind()] = append(out[object.GetKind()], harness.Must1(object.AsYAML())(t))
	}
	return out
}

// decode decodes documents into objects of their API. Unknown fields are errors.
func decode[T any](t *testing.T, documents [][]byte) []T {
	t.Helper()
	out := make([]T, len(documents))
	for i, document := range documents {
		if err := yaml.UnmarshalStrict(document, &out[i]); err != nil {
			t.Fatalf("%T: %v\n%s", out[i], err, document)
		}
	}
	return out
}

// one returns the only object for which a condition holds.
func one[T any](t *testing.T, all []T, holds func(*T) bool) *T {
	t.Helper()
	var found []*T
	for i := range all {
		if holds(&all[i]) {
			found = append(found, &all[i])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d of %d %T are meant, want 1", len(found), len(all), all)
	}
	return found[0]
}

func anyOf[T any](*T) bool { return true }

// TestComponent checks that the ServiceMonitor matches config/default and the bundle: the Service
// and its port, HTTPS, and a token that may read the metrics.
func TestComponent(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		parts     []string
		bundle    bool
	}{
		"config/default":                      {namespace: "", parts: []string{"default"}},
		"config/default in another namespace": {namespace: "web-system", parts: []string{"default"}},
		"OLM":                                 {namespace: "operators", bundle: true},
	} {
		t.Run(name, func(t *testing.T) {
			all := manifests(t, test.namespace, test.parts...)
			if test.bundle {
				for kind, documents := range bundled(t, test.namespace) {
					all[kind] = append(all[kind], documents...)
				}
			}
			namespace := test.namespace
			if namespace == "" {
				namespace = harness.OperatorNamespace
			}
			rule := one(t, decode[monitoringv1.PrometheusRule](t, all["PrometheusRule"]), anyOf)
			monitor := one(t, decode[monitoringv1.ServiceMonitor](t, all["ServiceMonitor"]), anyOf)
			if monitor.Namespace != namespace || rule.Namespace != namespace {
				t.Errorf("ServiceMonitor and PrometheusRule are in %s and %s, want %s", monitor.Namespace, rule.Namespace, namespace)
			}
			if len(monitor.Spec.Endpoints) != 1 {
				t.Fatalf("endpoints %+v", monitor.Spec.Endpoints)
			}
			if ptr.Deref(monitor.Spec.Endpoints[0].FollowRedirects, true) {
				t.Error("a scrape can leave the operator")
			}
			selected := requireService(t, monitor, decode[corev1.Service](t, all["Service"]))
			if !test.bundle {
				requireServed(t, selected, decode[appsv1.Deployment](t, all["Deployment"]))
			}
			requireAccess(t, monitor, all)
		})
	}
}

// bundled returns the manifests of the bundle by kind, in the namespace into which OLM installs
// them.
func bundled(t *testing.T, namespace string) map[string][][]byte {
	t.Helper()
	out := map[string][][]byte{}
	files := os.DirFS(path.Join(repository, "bundle/manifests"))
	for _, name := range harness.Must1(fs.Glob(files, "*.yaml"))(t) {
		var object map[string]any
		if err := yaml.Unmarshal(harness.Must1(fs.ReadFile(files, name))(t), &object); err != nil {
			t.Fatal(err)
		}
		object["metadata"].(map[string]any)["namespace"] = namespace
		kind := object["kind"].(string)
		out[kind] = append(out[kind], harness.Must1(yaml.Marshal(object))(t))
	}
	return out
}

// requireService requires the ServiceMonitor to select exactly one Service, with the job name that
// alerts and panels use. It returns the selected port.
func requireService(t *testing.T, monitor *monitoringv1.ServiceMonitor, services []corev1.Service) corev1.ServicePort {
	t.Helper()
	endpoint := monitor.Spec.Endpoints[0]
	var port corev1.ServicePort
	// Prometheus scrapes every port with this name on every selected Service.
	service := one(t, services, func(service *corev1.Service) bool {
		selector := labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels)
		if service.Namespace != monitor.Namespace || !selector.Matches(labels.Set(service.Labels)) {
			return false
		}
		for _, found := range service.Spec.Ports {
			if found.Name == endpoint.Port {
				port = found
				return true
			}
		}
		return false
	})
	if got := service.Labels[monitor.Spec.JobLabel]; got != Job {
		t.Errorf("the job is %q, alerts and panels select %q", got, Job)
	}
	return port
}

// requireServed checks the port of the endpoint against the operator's defaults and its container.
func requireServed(t *testing.T, port corev1.ServicePort, deployments []appsv1.Deployment) {
	t.Helper()
	noVariables := func(string) (string, bool) { return "", false }
	defaults := harness.Must1(options.Parse([]string{"--nginx-image=nginx:1"}, noVariables, io.Discard))(t)
	container := one(t, deployments, anyOf).Spec.Template.Spec.Containers[0]
	served := one(t, container.Ports, func(p *corev1.ContainerPort) bool { return p.Name == port.TargetPort.StrVal })
	if want := defaults.MetricsBindAddress; want != fmt.Sprintf(":%d", served.ContainerPort) {
		t.Errorf("the container's port is %d, the operator serves at %s", served.ContainerPort, want)
	}
	for _, arg := range container.Args {
		if strings.HasPrefix(arg, "--metrics-") {
			t.Errorf("the operator is started with %s, of which the ServiceMonitor does not know", arg)
		}
	}
}

// requireAccess requires HTTPS and a bearer token. It follows the token to its ClusterRole, which
// must grant the permission to read the metrics and no other permission.
func requireAccess(t *testing.T, monitor *monitoringv1.ServiceMonitor, all map[string][][]byte) {
	t.Helper()
	endpoint := monitor.Spec.Endpoints[0]
	if endpoint.Scheme == nil || *endpoint.Scheme != "https" || endpoint.Path != "/metrics" || endpoint.TLSConfig == nil ||
		!ptr.Deref(endpoint.TLSConfig.InsecureSkipVerify, false) {
		t.Errorf("the operator serves HTTPS at /metrics with a certificate that nobody signed; the endpoint is %+v", endpoint)
	}
	if endpoint.Authorization == nil || endpoint.Authorization.Credentials == nil || endpoint.Authorization.Type != "" {
		t.Fatalf("no bearer token: %+v", endpoint.Authorization)
	}
	token := endpoint.Authorization.Credentials
	secret := one(t, decode[corev1.Secret](t, all["Secret"]), func(s *corev1.Secret) bool {
		return s.Name == token.Name && s.Namespace == monitor.Namespace
	})
	if secret.Type != corev1.SecretTypeServiceAccountToken || token.Key != corev1.ServiceAccountTokenKey {
		t.Errorf("%s of a Secret of type %s is no token", token.Key, secret.Type)
	}
	account := one(t, decode[corev1.ServiceAccount](t, all["ServiceAccount"]), func(a *corev1.ServiceAccount) bool {
		return a.Name == secret.Annotations[corev1.ServiceAccountNameKey] && a.Namespace == monitor.Namespace
	})
	want := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}
	binding := one(t, decode[rbacv1.ClusterRoleBinding](t, all["ClusterRoleBinding"]), func(b *rbacv1.ClusterRoleBinding) bool {
		return len(b.Subjects) == 1 && b.Subjects[0] == want
	})
	role := one(t, decode[rbacv1.ClusterRole](t, all["ClusterRole"]), func(r *rbacv1.ClusterRole) bool {
		return r.Name == binding.RoleRef.Name
	})
	rules := []rbacv1.PolicyRule{{NonResourceURLs: []string{endpoint.Path}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(rules, role.Rules); diff != "" {
		t.Errorf("the role (-want +got):\n%s", diff)
	}
}

// TestNothingElseNeedsThePrometheusOperator checks that config/default and the bundle have no
// objects of the Prometheus operator. Otherwise the installation fails on clusters without it.
func TestNothingElseNeedsThePrometheusOperator(t *testing.T) {
	// Only objects need the API. RBAC rules may reference a group that is not installed.
	const group = "monitoring.coreos.com"
	for _, directory := range []string{"bundle", "config/default", "config/metrics", "config/manifests"} {
		err := fs.WalkDir(os.DirFS(path.Join(repository, directory)), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path.Join(repository, directory, name))
			if err == nil && (strings.Contains("\n"+string(text), "\napiVersion: "+group) || strings.Contains(string(text), "../monitoring")) {
				t.Errorf("%s/%s needs %s", directory, name, group)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
