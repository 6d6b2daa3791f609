// Package options reads the command line of the operator. Each flag has an environment variable that is used where the
// flag is not given.
package options

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"

	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/olm"
)

// Options are the settings of the operator.
type Options struct {
	// LeaderElect makes replicas elect the one that reconciles.
	LeaderElect bool
	// LeaderElectionNamespace holds the Lease; "" is the operator's own namespace.
	LeaderElectionNamespace string
	// MetricsBindAddress is host:port of the HTTPS metrics endpoint, "0" for none.
	MetricsBindAddress string
	// MetricsCertDir holds tls.crt and tls.key for it; "" makes a self-signed certificate.
	MetricsCertDir string
	// HealthProbeBindAddress is host:port of /healthz and /readyz.
	HealthProbeBindAddress string
	// OperatorNamespace is the namespace that the operator runs in: that of its webhooks' Service and Secret.
	OperatorNamespace string
	// WebhookBindAddress is host:port of the HTTPS endpoint for conversion and admission.
	WebhookBindAddress string
	// WebhookServiceName is the Service by which the API server finds it, WebhookSecretName the Secret with its certificate.
	WebhookServiceName, WebhookSecretName string
	// WebhookURL takes the place of the Service, for an operator that runs outside of the cluster: https://host:port.
	WebhookURL string
	// OLM: it was installed from a bundle. ClusterServiceVersion is the name of the own one, empty without OLM v0.
	OLM                   bool
	ClusterServiceVersion string
	// StorageMigrationManifest is the file with the StorageVersionMigration that the release carries; "" makes the operator rewrite
	// stored objects itself when they have to be.
	StorageMigrationManifest string
	// NginxImage is the container image of the operands.
	NginxImage string
	// ExporterImage is the container image of nginx-prometheus-exporter, for instances with spec.monitoring.
	ExporterImage string
	// PodIPs are the addresses of the operator's own Pod, by which it knows the IP families of the cluster.
	PodIPs []string
	// MaxConcurrentReconciles is how many objects are reconciled at a time.
	MaxConcurrentReconciles int
	// FleetRolloutMaxUnavailable is how many instances roll at a time because a release makes something else of them.
	FleetRolloutMaxUnavailable intstr.IntOrString
	// KubeAPIQPS and KubeAPIBurst limit the requests to the API server, per second and at once.
	KubeAPIQPS   float32
	KubeAPIBurst int
	// LogLevel is debug, info, warn or error; LogFormat is json or text.
	LogLevel, LogFormat string
	// Version asks for the version instead of a run.
	Version bool
}

// DefaultExporterImage is the exporter that this release is tested with.
const DefaultExporterImage = "docker.io/nginx/nginx-prometheus-exporter:1.5.1"

// ErrHelp is what Parse returns when it printed the help.
var ErrHelp = pflag.ErrHelp

const envPrefix = "NGINX_OPERATOR_"

// Parse reads the arguments (without the program's name); lookupEnv is os.LookupEnv. Help goes to the writer. An error
// names the flag or the variable that is wrong.
func Parse(args []string, lookupEnv func(string) (string, bool), help io.Writer) (*Options, error) {
	o := &Options{}
	flags := pflag.NewFlagSet("nginx-operator", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "elect one of several replicas to reconcile; needed with more than one")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the election's Lease (default: the namespace the operator runs in)")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", ":8443",
		`address of the HTTPS metrics endpoint, "0" for none; callers need the right to get /metrics`)
	flags.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "",
		"directory with tls.crt and tls.key of the metrics endpoint (default: a self-signed certificate)")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.OperatorNamespace, "operator-namespace", "nginx-operator-system",
		"namespace that the operator runs in, and its webhooks' Service and certificate are in")
	flags.StringVar(&o.WebhookBindAddress, "webhook-bind-address", ":9443", "address of the HTTPS endpoint for conversion and admission")
	flags.BoolVar(&o.OLM, "olm", false,
		"installed from a bundle: certificate and configuration of the webhooks come from OLM (default: true under OLM v0)")
	flags.StringVar(&o.WebhookServiceName, "webhook-service-name", "",
		"Service by which the API server finds the webhooks (default: "+webhookService+"; under OLM the one that OLM makes)")
	flags.StringVar(&o.WebhookSecretName, "webhook-secret-name", "",
		"Secret with the certificate of the webhooks (default: "+webhookSecret+"; under OLM the one that OLM makes)")
	flags.StringVar(&o.WebhookURL, "webhook-url", "",
		"https://host:port under which the API server reaches the webhooks, for an operator outside of the cluster")
	flags.StringVar(&o.StorageMigrationManifest, "storage-migration-manifest", "",
		"file with the StorageVersionMigration for the control plane "+
			"(default: the operator rewrites stored objects itself where they have to be)")
	flags.StringVar(&o.NginxImage, "nginx-image", "", "container image of the operands, required")
	flags.StringVar(&o.ExporterImage, "exporter-image", DefaultExporterImage,
		"container image of nginx-prometheus-exporter, for instances with spec.monitoring")
	flags.StringSliceVar(&o.PodIPs, "pod-ips", nil, "addresses of the operator's Pod; where one is IPv6, the operands listen on IPv6 as well")
	flags.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", 10, "objects that are reconciled at a time")
	bound := flags.String("fleet-rollout-max-unavailable", "10%",
		"instances that roll at a time where a release of the operator makes something else of them: a number of at least 1, "+
			"or a percentage of all from 1% to 100%, which is one at least")
	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 500, "requests to the API server per second")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", 1000, "requests to the API server at once")
	flags.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
	flags.BoolVar(&o.Version, "version", false, "print the version and exit")
	flags.VisitAll(func(flag *pflag.Flag) { flag.Usage += " [" + envName(flag.Name) + "]" })
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(help, "nginx-operator manages NGINX instances declared as NginxOperator objects.\n\n"+
			"Flags, each with the environment variable that is used where it is not given:\n%s", flags.FlagUsagesWrapped(120))
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the operator takes flags only, see --help", flags.Arg(0))
	}
	var errs []error
	flags.VisitAll(func(flag *pflag.Flag) {
		value, found := lookupEnv(envName(flag.Name))
		if !found || flag.Changed {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", envName(flag.Name), err))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	o.complete(lookupEnv)
	var err error
	if o.FleetRolloutMaxUnavailable, err = fleet.ParseBound(*bound); err != nil {
		return nil, fmt.Errorf("--fleet-rollout-max-unavailable: %w", err)
	}
	return o, o.validate()
}

// Names of what OLM makes for the Deployment of the bundle, and of what config/ installs without OLM.
const (
	webhookService    = "nginx-operator-webhook-service"
	webhookSecret     = "nginx-operator-webhook-server-cert" // #nosec G101 -- the name of a Secret
	olmWebhookService = "nginx-operator-controller-manager-service"
	olmWebhookSecret  = olmWebhookService + "-cert"
)

// complete fills in what depends on who installed the operator.
func (o *Options) complete(lookupEnv func(string) (string, bool)) {
	service, secret := webhookService, webhookSecret
	// OLM v1 sets no such variable: its bundles say so by the flag.
	o.ClusterServiceVersion, _ = lookupEnv(olm.ConditionNameEnv)
	if o.OLM = o.OLM || o.ClusterServiceVersion != ""; o.OLM {
		service, secret = olmWebhookService, olmWebhookSecret
	}
	o.WebhookURL = strings.TrimSuffix(o.WebhookURL, "/")
	o.WebhookServiceName = cmp.Or(o.WebhookServiceName, service)
	o.WebhookSecretName = cmp.Or(o.WebhookSecretName, secret)
}

func (o *Options) validate() error {
	if o.Version {
		return nil
	}
	if o.NginxImage == "" {
		return errors.New("no operand image: set --nginx-image or RELATED_IMAGE_NGINX, for example docker.io/nginxinc/nginx-unprivileged:1.28.0")
	}
	if o.MaxConcurrentReconciles < 1 {
		return fmt.Errorf("--max-concurrent-reconciles is %d, must be at least 1", o.MaxConcurrentReconciles)
	}
	if o.KubeAPIQPS <= 0 || o.KubeAPIBurst < 1 {
		return fmt.Errorf("--kube-api-qps is %v and --kube-api-burst is %d, both must be above 0", o.KubeAPIQPS, o.KubeAPIBurst)
	}
	if _, _, err := o.WebhookAddress(); err != nil {
		return err
	}
	if parsed, err := url.Parse(o.WebhookURL); err != nil ||
		o.WebhookURL != "" && (parsed.Scheme != "https" || parsed.Host == "" || parsed.Path+parsed.RawQuery+parsed.Fragment != "") {
		return fmt.Errorf("--webhook-url is %q, must be https://host:port", o.WebhookURL)
	}
	if o.LogFormat != "json" && o.LogFormat != "text" {
		return fmt.Errorf("--log-format is %q, must be json or text", o.LogFormat)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return fmt.Errorf("--log-level is %q, must be debug, info, warn or error", o.LogLevel)
	}
	return nil
}

// WebhookAddress returns host and port of the webhook server.
func (o *Options) WebhookAddress() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.WebhookBindAddress)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-bind-address is %q, must be host:port or :port", o.WebhookBindAddress)
	}
	return host, port, nil
}

// IPv6 reports whether the Pods of the cluster have IPv6 addresses.
func (o *Options) IPv6() bool {
	return slices.ContainsFunc(o.PodIPs, netutils.IsIPv6String)
}

// Logger returns the logger that the options ask for. It writes to standard error.
func (o *Options) Logger() logr.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.LogLevel)) // validated
	options := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, options))
}

// envName returns the environment variable of a flag. Those of images are the ones by which OLM finds related
// images, those of the addresses and of the namespace have the names that manifests commonly use.
func envName(flag string) string {
	switch flag {
	case "nginx-image":
		return "RELATED_IMAGE_NGINX"
	case "exporter-image":
		return "RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER"
	case "pod-ips":
		return "POD_IPS"
	case "operator-namespace":
		return "POD_NAMESPACE"
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
