// Package options reads the command line of the operator. Each flag has an environment variable
// that sets it if the flag is not given.
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
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	netutils "k8s.io/utils/net"

	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/olm"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/manager"
)

// Options are the settings of the operator.
type Options struct {
	manager.Options
	// StorageMigrationManifest is the file with the release's StorageVersionMigration. If it is "",
	// the operator rewrites stored objects.
	StorageMigrationManifest string
	// NginxImage is the image of instances without spec.image, and ExporterImage that of the exporter.
	NginxImage, ExporterImage string
	// PodIPs are the addresses of the operator's Pod, which show the IP families of the cluster.
	PodIPs []string
	// ClusterNameservers are the name servers of the flag. For those in effect, see Nameservers.
	ClusterNameservers []string
	// WatchNamespaces are the namespaces whose objects the operator manages, sorted and without
	// duplicates, or empty for all namespaces.
	WatchNamespaces         []string
	MaxConcurrentReconciles int
	// FleetRollout controls the rollout of instances that an operator upgrade changes.
	FleetRollout fleet.Policy
	// LogLevel is debug, info, warn or error; LogFormat is json or text.
	LogLevel, LogFormat string
	// Version prints the version and exits.
	Version bool
}

// ErrHelp is the error of Parse after it printed the help.
var ErrHelp = pflag.ErrHelp

const envPrefix = "NGINX_OPERATOR_"

// Parse reads the arguments without the program's name. lookupEnv is os.LookupEnv. Help goes to the
// writer. An error names the wrong flag or variable.
func Parse(args []string, lookupEnv func(string) (string, bool), help io.Writer) (*Options, error) {
	o := &Options{}
	flags := pflag.NewFlagSet("nginx-operator", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "elect the replica that reconciles; required for two or more replicas")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the leader election Lease (default: the operator's namespace)")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", ":8443",
		`address of the HTTPS metrics endpoint, "0" to disable it; clients need the permission to get /metrics`)
	flags.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "",
		"directory with tls.crt and tls.key for the metrics endpoint (default: a self-signed certificate)")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.OperatorNamespace, "operator-namespace", "nginx-operator-system",
		"namespace of the operator, and of the Service and certificate of its webhooks")
	flags.StringVar(&o.WebhookBindAddress, "webhook-bind-address", ":9443", "address of the HTTPS endpoint for conversion and admission")
	flags.BoolVar(&o.OLM, "olm", false,
		"OLM installed the operator and manages the certificate and configuration of the webhooks (default: true with OLM v0)")
	flags.StringVar(&o.WebhookServiceName, "webhook-service-name", "",
		"Service of the webhooks (default: "+webhookService+", or the name that OLM uses)")
	flags.StringVar(&o.WebhookSecretName, "webhook-secret-name", "",
		"Secret with the certificate of the webhooks (default: "+webhookSecret+", or the name that OLM uses)")
	flags.StringVar(&o.WebhookURL, "webhook-url", "",
		"URL of the webhooks, https://host:port, for an operator outside the cluster")
	flags.StringVar(&o.StorageMigrationManifest, "storage-migration-manifest", "",
		"file with the StorageVersionMigration to create (default: the operator rewrites stored objects)")
	flags.StringVar(&o.NginxImage, "nginx-image", "", "default container image of NGINX; required")
	flags.StringVar(&o.ExporterImage, "exporter-image", wellknown.DefaultExporterImage,
		"container image of nginx-prometheus-exporter, for instances with spec.monitoring")
	flags.StringSliceVar(&o.PodIPs, "pod-ips", nil, "IP addresses of the operator's Pod; if one is IPv6, instances also listen on IPv6")
	flags.StringSliceVar(&o.ClusterNameservers, "cluster-nameservers", nil,
		"IP addresses of the name servers that the cluster gives its Pods, for instances with spec.nginx.resolver "+
			"(default: those of the operator's Pod)")
	flags.StringSliceVar(&o.WatchNamespaces, "watch-namespaces", nil,
		"namespaces whose NginxOperators the operator manages, at most "+strconv.Itoa(maxWatchNamespaces)+" (default: all namespaces)")
	flags.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", 10, "number of concurrent reconciles")
	bound := flags.String("fleet-rollout-max-unavailable", "10%",
		"maximum number of instances that roll concurrently after an operator upgrade: a number of at least 1, or 1% to 100% of all "+
			"instances, at least one instance; at least two while instances of several namespaces roll")

	canaries := flags.StringSlice("fleet-rollout-canary-namespaces", nil,
		"namespaces whose canaries roll before all other instances; canaries of other namespaces roll before the instances of their own "+
			"namespace")

	flags.IntVar(&o.FleetRollout.FailureThreshold, "fleet-rollout-failure-threshold", fleet.DefaultFailureThreshold,
		"number of namespaces with a failed instance that stops such a rollout in all namespaces: 1 stops it at the first failure, 0 never "+
			"stops it; a failed instance always stops the rollout in its own namespace")

	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 500, "requests to the API server per second")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", 1000, "maximum burst of requests to the API server")
	flags.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn, or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
	flags.BoolVar(&o.Version, "version", false, "print the version and exit")
	flags.VisitAll(func(flag *pflag.Flag) { flag.Usage += " [" + envName(flag.Name) + "]" })
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(help, "nginx-operator manages NGINX instances for NginxOperator objects.\n\nFlags, each with the environment "+
			"variable that sets it if the flag is not given:\n%s", flags.FlagUsagesWrapped(120))
	}

	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the operator accepts only flags, see --help", flags.Arg(0))
	}

	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		value, isSet := lookupEnv(envName(flag.Name))
		if !isSet || flag.Changed {
			return
		}
		if invalid := flags.Set(flag.Name, value); invalid != nil {
			err = errors.Join(err, fmt.Errorf("environment variable %s: %w", envName(flag.Name), invalid))
		}
	})

	if err != nil {
		return nil, err
	}

	o.complete(lookupEnv)
	if o.FleetRollout.MaxUnavailable, err = fleet.ParseBound(*bound); err != nil {
		return nil, fmt.Errorf("--fleet-rollout-max-unavailable: %w", err)
	}

	o.FleetRollout.CanaryNamespaces = sets.New(*canaries...)
	return o, o.validate()
}

// Names of the Service and Secret that OLM creates for the bundle, or that config/ installs.
const (
	webhookService    = "nginx-operator-webhook-service"
	webhookSecret     = "nginx-operator-webhook-server-cert" // #nosec G101 -- the name of a Secret
	olmWebhookService = "nginx-operator-controller-manager-service"
	olmWebhookSecret  = olmWebhookService + "-cert"
)

// complete sets the defaults that depend on whether OLM installed the operator.
func (o *Options) complete(lookupEnv func(string) (string, bool)) {
	service, secret := webhookService, webhookSecret
	// OLM v1 does not set the variable. Its bundles set the flag.
	o.ClusterServiceVersion, _ = lookupEnv(olm.ConditionNameEnv)
	if o.OLM = o.OLM || o.ClusterServiceVersion != ""; o.OLM {
		service, secret = olmWebhookService, olmWebhookSecret
	}

	slices.Sort(o.WatchNamespaces)
	o.WatchNamespaces = slices.Compact(o.WatchNamespaces)
	o.WebhookURL = strings.TrimSuffix(o.WebhookURL, "/")
	o.WebhookServiceName = cmp.Or(o.WebhookServiceName, service)
	o.WebhookSecretName = cmp.Or(o.WebhookSecretName, secret)
}

func (o *Options) validate() error {
	if o.Version {
		return nil
	}
	if o.NginxImage == "" {
		return errors.New("no default image of NGINX: set --nginx-image or RELATED_IMAGE_NGINX, " +
			"for example docker.io/nginxinc/nginx-unprivileged:1.30.7")
	}
	if o.MaxConcurrentReconciles < 1 {
		return fmt.Errorf("--max-concurrent-reconciles is %d, must be at least 1", o.MaxConcurrentReconciles)
	}
	if o.FleetRollout.FailureThreshold < 0 {
		return fmt.Errorf("--fleet-rollout-failure-threshold is %d, must be at least 0", o.FleetRollout.FailureThreshold)
	}
	if err := o.validateNamespaces(); err != nil {
		return err
	}
	if at := slices.IndexFunc(o.ClusterNameservers, func(server string) bool { return !isNameserver(server) }); at >= 0 {
		return fmt.Errorf("--cluster-nameservers has %q, must be an IP address with an optional port", o.ClusterNameservers[at])
	}
	if o.KubeAPIQPS <= 0 || o.KubeAPIBurst < 1 {
		return fmt.Errorf("--kube-api-qps is %v and --kube-api-burst is %d, both must be above 0", o.KubeAPIQPS, o.KubeAPIBurst)
	}
	if _, _, err := net.SplitHostPort(o.WebhookBindAddress); err != nil {
		return fmt.Errorf("--webhook-bind-address is %q, must be host:port or :port", o.WebhookBindAddress)
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
		return fmt.Errorf("--log-level is %q, must be debug, info, warn, or error", o.LogLevel)
	}

	return nil
}

// IPv6 reports whether the Pods of the cluster have IPv6 addresses.
func (o *Options) IPv6() bool {
	return slices.ContainsFunc(o.PodIPs, netutils.IsIPv6String)
}

// Logger returns the logger of the options. It writes to standard error.
func (o *Options) Logger() logr.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.LogLevel)) // validated
	options := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, options))
}

// envName returns the environment variable of a flag. OLM requires the prefix RELATED_IMAGE_ for
// images. The Pod's addresses and namespace have the usual names.
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

// maxWatchNamespaces is the maximum number of watched namespaces. Each costs a watch of every kind.
const maxWatchNamespaces = 100

// Watches reports whether the operator manages the objects of a namespace.
func (o *Options) Watches(namespace string) bool {
	return len(o.WatchNamespaces) == 0 || slices.Contains(o.WatchNamespaces, namespace)
}

func (o *Options) validateNamespaces() error {
	if count := len(o.WatchNamespaces); count > maxWatchNamespaces {
		return fmt.Errorf("--watch-namespaces has %d namespaces, must have at most %d: leave it empty to watch all namespaces",
			count, maxWatchNamespaces)
	}

	for _, namespace := range o.WatchNamespaces {
		if !isNamespaceName(namespace) {
			return fmt.Errorf("--watch-namespaces has %q, which is not a valid namespace name", namespace)
		}
	}

	for _, namespace := range sets.List(o.FleetRollout.CanaryNamespaces) {
		if !isNamespaceName(namespace) {
			return fmt.Errorf("--fleet-rollout-canary-namespaces has %q, which is not a valid namespace name", namespace)
		}
		if !o.Watches(namespace) {
			return fmt.Errorf("--fleet-rollout-canary-namespaces has %q, which --watch-namespaces does not have", namespace)
		}
	}

	return nil
}

func isNamespaceName(name string) bool {
	return len(apivalidation.ValidateNamespaceName(name, false)) == 0
}
