// Package assets contains the parts that all operands share: manifests with the constant parts of
// the child objects, and the template of the nginx configuration.
package assets

import (
	"embed"
	"errors"
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

// The assets are part of the binary, so an error in one is a bug, and the program panics.
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

// escape makes a text safe inside of double quotes in nginx's configuration.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// word returns a text as one word of nginx's configuration. It adds quotes only if they are needed.
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

// Exporter returns a new copy of the container that exports the metrics of nginx to Prometheus.
func Exporter() *corev1.Container { return exporter.DeepCopy() }

// NetworkPolicy returns a new copy of the NetworkPolicy of an instance.
func NetworkPolicy() *networkingv1.NetworkPolicy { return networkPolicy.DeepCopy() }

// PodDisruptionBudget returns a new copy of the PodDisruptionBudget of an instance.
func PodDisruptionBudget() *policyv1.PodDisruptionBudget { return podDisruptionBudget.DeepCopy() }

// PrometheusRule returns a new copy of the alerts on the metrics of an instance. NAMESPACE, NAME,
// and LIMIT represent its namespace, its name, and the maximum number of connections of a Pod.
func PrometheusRule() *monitoringv1.PrometheusRule { return prometheusRule.DeepCopy() }

// NginxConfParams are the parameters of the template of nginx.conf.
type NginxConfParams struct {
	// Modules is the file that loads the modules, MainContext the one with the user's directives of
	// the main context, Events the one with those of the events context, and Resolver the one with the
	// resolver, or "" for none.
	Modules, MainContext, Events, Resolver string
	// Environment has the names of the environment variables that worker processes keep.
	Environment []string
	// Ports and TLS are the TCP ports on which the operator's own server listens for plain HTTP and
	// for TLS.
	Ports []int32
	TLS   []NginxTLS
	// HealthPort is the TCP port of the server for the kubelet's probes, and StatusPort the one for
	// nginx's metrics inside of the Pod, or 0 for none. They differ from all other ports.
	HealthPort, StatusPort int32
	// IPv6 adds IPv6 to IPv4. nginx does not start with it on a node without IPv6.
	IPv6 bool
	// Workers is the number of worker processes, or 0 for one per processor of the node.
	Workers int
	// WorkerConnections is the maximum number of connections of a worker process.
	WorkerConnections int32
	// ErrorLogLevel is the lowest severity that nginx logs. AccessLog enables the log of requests.
	ErrorLogLevel string
	AccessLog     bool
	// WorkerShutdownSeconds is how long a worker process may finish its requests after it was told
	// to exit.
	WorkerShutdownSeconds int64
	// Includes are the files with the user's servers, which replace the operator's own server.
	Includes []string
	// Given has the directives that the user's servers set in the http context. The operator leaves
	// out its own ones, because nginx accepts most of them only once.
	Given map[string]bool
}

// NginxTLS is a TLS port with the files of its certificate.
type NginxTLS struct {
	Port             int32
	Certificate, Key string
}

// NginxConf renders nginx.conf with the parameters.
func NginxConf(params NginxConfParams) string {
	var text strings.Builder
	if err := nginxConf.Execute(&text, params); err != nil {
		panic(fmt.Errorf("failed to render nginx.conf: %w", err))
	}
	return text.String()
}

// mustDecode reads an embedded manifest. A field that the type does not have is an error.
func mustDecode[T any](file string) *T {
	object := new(T)
	raw, err := manifests.ReadFile("manifests/" + file)
	if err := errors.Join(err, yaml.UnmarshalStrict(raw, object)); err != nil {
		panic(fmt.Errorf("failed to decode asset %s: %w", file, err))
	}
	return object
}
