// Package assets holds what is the same for all operands: manifests with the constant part of the child objects, and the template
// of the nginx configuration. They are embedded into the operator, decoded once at start, and handed out as copies.
package assets

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

//go:embed manifests/*.yaml
var manifests embed.FS

//go:embed nginx/nginx.conf.tmpl
var nginxConfSource string

// The assets are part of the binary, so a mistake in one is a mistake of the build: it ends the program at start,
// and a test decodes them all.
var (
	configMap           = mustDecode[corev1.ConfigMap]("configmap.yaml")
	deployment          = mustDecode[appsv1.Deployment]("deployment.yaml")
	exporter            = mustDecode[corev1.Container]("exporter.yaml")
	networkPolicy       = mustDecode[networkingv1.NetworkPolicy]("networkpolicy.yaml")
	podDisruptionBudget = mustDecode[policyv1.PodDisruptionBudget]("poddisruptionbudget.yaml")
	prometheusRule      = mustDecode[monitoringv1.PrometheusRule]("prometheusrule.yaml")
	nginxConf           = template.Must(template.New("nginx.conf").Option("missingkey=error").
				Funcs(template.FuncMap{"word": word}).Parse(nginxConfSource))
)

// plainWord matches texts that nginx reads as one word.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// escape makes a text safe between double quotes of nginx.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// word returns a text as one word of nginx's configuration, in quotes unless it needs none.
func word(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return `"` + escape.Replace(text) + `"`
}

// ConfigMap returns a new copy of the ConfigMap that holds the nginx configuration.
func ConfigMap() *corev1.ConfigMap { return configMap.DeepCopy() }

// Deployment returns a new copy of the Deployment that runs nginx.
func Deployment() *appsv1.Deployment { return deployment.DeepCopy() }

// Exporter returns a new copy of the container that makes Prometheus metrics of the figures of nginx.
func Exporter() *corev1.Container { return exporter.DeepCopy() }

// NetworkPolicy returns a new copy of the NetworkPolicy of the operands.
func NetworkPolicy() *networkingv1.NetworkPolicy { return networkPolicy.DeepCopy() }

// PodDisruptionBudget returns a new copy of the PodDisruptionBudget of the operands.
func PodDisruptionBudget() *policyv1.PodDisruptionBudget { return podDisruptionBudget.DeepCopy() }

// PrometheusRule returns a new copy of the alerts on the figures of an instance, in which NAMESPACE, NAME and LIMIT stand for its
// namespace, its name, and how many connections a Pod of it may have.
func PrometheusRule() *monitoringv1.PrometheusRule { return prometheusRule.DeepCopy() }

// NginxConfParams are the values that the template of nginx.conf takes.
type NginxConfParams struct {
	// Environment are the names of the variables that worker processes keep of their environment.
	Environment []string
	// Ports are the TCP ports on which the operator's own server listens for plain HTTP.
	Ports []int32
	// TLS are the ports on which it listens for TLS.
	TLS []NginxTLS
	// HealthPort is the TCP port of the operator's own server for the kubelet's probes. It differs from all others.
	HealthPort int32
	// StatusPort is the TCP port on which nginx shows its figures inside of the Pod, 0 for none. It differs from all others.
	StatusPort int32
	// IPv6 adds IPv6 to IPv4. nginx does not start with it on a node without IPv6.
	IPv6 bool
	// Workers is how many worker processes nginx starts; 0 is one for each processor of the node.
	Workers int
	// WorkerConnections is how many connections each of them may have.
	WorkerConnections int32
	// ErrorLogLevel is the least severity that is logged; AccessLog logs requests.
	ErrorLogLevel string
	AccessLog     bool
	// WorkerShutdownSeconds is how long a worker that was told to end goes on with what it has begun.
	WorkerShutdownSeconds int64
	// Include is the file with the user's servers; where it is given, the operator's own server is left out.
	Include string
	// Given holds the directives that the user's servers set in the http context; the operator's own are left out,
	// because nginx takes most of them only once.
	Given map[string]bool
}

// NginxTLS is a port with the files of its certificate.
type NginxTLS struct {
	Port             int32
	Certificate, Key string
}

// NginxConf returns the text of nginx.conf for the parameters.
func NginxConf(params NginxConfParams) (string, error) {
	var text strings.Builder
	if err := nginxConf.Execute(&text, params); err != nil {
		return "", fmt.Errorf("failed to render nginx.conf: %w", err)
	}
	return text.String(), nil
}

func mustDecode[T any](file string) *T {
	object, err := decode[T](file)
	if err != nil {
		panic(err)
	}
	return object
}

// decode reads an embedded manifest strictly: a field that the type does not have is an error.
func decode[T any](file string) (*T, error) {
	raw, err := manifests.ReadFile("manifests/" + file)
	if err != nil {
		return nil, fmt.Errorf("failed to read asset %s: %w", file, err)
	}
	object := new(T)
	if err := yaml.UnmarshalStrict(raw, object); err != nil {
		return nil, fmt.Errorf("failed to decode asset %s: %w", file, err)
	}
	return object, nil
}
