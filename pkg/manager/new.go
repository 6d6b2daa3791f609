// Package manager creates the manager of an operator: the leader election, the ports, the webhooks
// with their guard, and the settings of its controllers.
package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/nginx-operator/pkg/guard"
	"github.com/example/nginx-operator/pkg/lists"
	"github.com/example/nginx-operator/pkg/serving"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	// retryPeriod bounds the handover after a clean stop to two seconds: a standby requests the
	// Lease after one to 2.2 times this period.
	retryPeriod = 850 * time.Millisecond
	// shutdownTimeout is the time until the Lease is released. webhookLinger is the time that the
	// webhooks keep answering, because nodes take a second or two to update the Service. Both are
	// less than the Pod's terminationGracePeriodSeconds.
	shutdownTimeout, webhookLinger = 8 * time.Second, 5 * time.Second
	// reachPatience bounds the request for the API server's version.
	reachPatience = 10 * time.Second
)

// ErrRestart is the error of a runnable that only another process can continue.
var ErrRestart = errors.New("the process must be restarted")

// Config has the settings in which operators differ.
type Config struct {
	// Name is the name of the operator, and the prefix of the name of the Lease.
	Name    string
	Options *Options
	Scheme  *runtime.Scheme
	Cache   cache.Options
	// Mapper returns the mapper of the manager. If it is nil, the manager discovers the kinds.
	Mapper func(*rest.Config, *http.Client) (meta.RESTMapper, error)
	// Warmup makes a standby fill its caches, for webhooks that read from them.
	Warmup bool
	// Guard has the settings of the guard that Options does not have.
	Guard guard.Options
}

// Manager is a manager with webhooks and their guard.
type Manager struct {
	ctrl.Manager
	Guard    *guard.Guard
	options  *Options
	webhooks *serving.Webhooks
	turns    *serving.Turns
	// live and ready are the checks of /healthz and /readyz.
	live, ready map[string]healthz.Checker
}

// Connect sets the logger of all packages, and returns the configuration of the cluster after its
// API server has answered, so a wrong address causes one clear error instead of retries.
func Connect(opts *Options, logger logr.Logger, userAgent string) (*rest.Config, error) {
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("failed to find a cluster: %w. Run the operator in a cluster, or set KUBECONFIG", err)
	}

	cfg.QPS, cfg.Burst, cfg.UserAgent = opts.KubeAPIQPS, opts.KubeAPIBurst, userAgent

	// Compression also applies to watches, and costs more than it saves in a cluster's network.
	cfg.DisableCompression = true
	cfg.Wrap(lists.Wrap)
	hurried := rest.CopyConfig(cfg)
	hurried.Timeout = reachPatience
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(hurried)
	if err != nil {
		return nil, fmt.Errorf("failed to configure the API client: %w", err)
	}
	if _, err := discoveryClient.ServerVersion(); err != nil {
		return nil, fmt.Errorf("failed to reach the API server %s: %w", cfg.Host, err)
	}

	return cfg, nil
}

// New returns a manager that is ready when its webhooks answer. The cache does not affect
// readiness: the manager fills it through the webhooks, and the API server only reaches ready Pods.
func New(cfg *rest.Config, c Config) (*Manager, error) {
	opts := c.Options
	c.Guard.Name, c.Guard.Namespace, c.Guard.Secret = c.Name, opts.OperatorNamespace, opts.WebhookSecretName
	c.Guard.OLM, c.Guard.CSV = opts.OLM, opts.ClusterServiceVersion
	c.Guard.Endpoint = guard.Endpoint{Namespace: opts.OperatorNamespace, Name: opts.WebhookServiceName, URL: opts.WebhookURL}
	lifecycleGuard, err := guard.New(cfg, c.Guard)
	if err != nil {
		return nil, err
	}

	certificate := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: lifecycleGuard.GetCertificate}
	turns := serving.NewTurns()
	webhooks := serving.NewWebhooks(opts.WebhookBindAddress, certificate, turns, c.Guard.ConversionPath, webhookLinger)
	mgr, err := newManager(cfg, c, webhooks)
	if err != nil {
		return nil, fmt.Errorf("failed to create the manager: %w", err)
	}

	started := webhooks.StartedChecker()
	ready := func(request *http.Request) error {
		if err := lifecycleGuard.Ready(); err != nil {
			return err
		}
		return started(request)
	}

	return &Manager{
		Manager: mgr, Guard: lifecycleGuard, options: opts, webhooks: webhooks, turns: turns,
		live: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{"webhooks": serving.Cached(ready)},
	}, nil
}

// AddHealthzCheck adds a check to /healthz. Call it before Start.
func (m *Manager) AddHealthzCheck(name string, check healthz.Checker) error {
	m.live[name] = serving.Cached(check)
	return nil
}

// AddReadyzCheck adds a check to /readyz. Call it before Start.
func (m *Manager) AddReadyzCheck(name string, check healthz.Checker) error {
	m.ready[name] = serving.Cached(check)
	return nil
}

func newManager(cfg *rest.Config, c Config, webhooks webhook.Server) (ctrl.Manager, error) {
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme:         c.Scheme,
		MapperProvider: c.Mapper,
		Cache:          c.Cache,
		Client:         client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		// See addPorts.
		Metrics:                       metricsserver.Options{BindAddress: disabled},
		HealthProbeBindAddress:        disabled,
		WebhookServer:                 webhooks,
		LeaderElection:                c.Options.LeaderElect,
		LeaderElectionID:              c.Name + ".operator.example.com",
		LeaderElectionNamespace:       c.Options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(retryPeriod),
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		Controller:                    config.Controller{EnableWarmup: ptr.To(c.Warmup), CacheSyncTimeout: cacheSyncTimeout},
	})
}

// Start runs the guard and the manager, and returns after both and the webhooks have ended. The
// guard is not a runnable of the manager, which fills its cache first, and that requires the guard.
// ErrRestart is a clean end.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.addPorts(ctx); err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.Guard.Start(log.IntoContext(ctx, ctrl.Log)) })
	group.Go(func() error { return m.Manager.Start(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, ErrRestart) {
		return fmt.Errorf("operator ended: %w", err)
	}
	return m.webhooks.Wait()
}

// Options are the settings of the process of an operator.
type Options struct {
	// LeaderElect enables leader election, by default in the operator's namespace.
	LeaderElect             bool
	LeaderElectionNamespace string
	// MetricsBindAddress is host:port of the HTTPS metrics endpoint, or "0" to disable it.
	// MetricsCertDir has its tls.crt and tls.key, or is "" for a self-signed certificate.
	MetricsBindAddress, MetricsCertDir string
	// HealthProbeBindAddress is host:port of /healthz and /readyz.
	HealthProbeBindAddress string
	// OperatorNamespace is the namespace of the operator, and of its webhooks' Service and Secret.
	OperatorNamespace string
	// WebhookBindAddress is host:port of the HTTPS endpoint for conversion and admission.
	WebhookBindAddress string
	// WebhookServiceName is the Service of it, and WebhookSecretName the Secret with its certificate.
	WebhookServiceName, WebhookSecretName string
	// WebhookURL replaces the Service if the operator runs outside the cluster: https://host:port.
	WebhookURL string
	// OLM is true if a bundle installed the operator. ClusterServiceVersion is "" without OLM v0.
	OLM                   bool
	ClusterServiceVersion string
	// KubeAPIQPS and KubeAPIBurst limit the rate and the burst of requests to the API server.
	KubeAPIQPS   float32
	KubeAPIBurst int
}

const disabled = "0"

// addPorts opens the ports of probes and metrics, because the manager's own have no limits.
func (m *Manager) addPorts(ctx context.Context) error {
	ports := []serving.Port{{Name: "probes", Address: m.options.HealthProbeBindAddress, Handler: serving.NewProbes(m.live, m.ready)}}
	if m.options.MetricsBindAddress != disabled {
		port, err := m.metricsPort(ctx)
		if err != nil {
			return err
		}
		ports = append(ports, port)
	}

	for _, port := range ports {
		port.Turns = m.turns
		server, err := port.Listen(ctx)
		if err != nil {
			return err
		}
		if err := m.Add(server); err != nil {
			return fmt.Errorf("failed to add the server of %s: %w", port.Name, err)
		}
	}

	return nil
}

func (m *Manager) metricsPort(ctx context.Context) (serving.Port, error) {
	config, err := serving.MetricsTLS(ctx, m.options.MetricsCertDir)
	if err != nil {
		return serving.Port{}, err
	}

	provided, err := filters.WithAuthenticationAndAuthorization(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return serving.Port{}, fmt.Errorf("failed to create the authentication of the metrics endpoint: %w", err)
	}

	filter := func(next http.Handler) (http.Handler, error) { return provided(ctrl.Log.WithName("metrics"), next) }
	handler, err := serving.NewMetrics(filter, promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	return serving.Port{Name: "metrics", Address: m.options.MetricsBindAddress, TLS: config, Handler: handler}, err
}
