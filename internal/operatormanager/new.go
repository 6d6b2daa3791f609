package operatormanager

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/nginx-operator/internal/guard"
	"github.com/example/nginx-operator/internal/options"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	// A standby asks for the Lease after one to 2.2 times this, so it bounds what a handover after a clean stop takes.
	retryPeriod = 500 * time.Millisecond
	// How often the leader renews it. It has to stop before a standby may begin, so renewEvery, renewDeadline and retryPeriod are less
	// than leaseDuration together.
	renewEvery = 3 * time.Second
	// Less than the Pod's terminationGracePeriodSeconds: the Lease is released after it.
	shutdownTimeout = 8 * time.Second
	// How long the webhooks answer after that has begun: nodes take a second or two to follow the Service. Less than the
	// Pod's terminationGracePeriodSeconds as well.
	webhookLinger = 5 * time.Second
	// How long the API server may take to say its version.
	reachPatience = 10 * time.Second
)

// Config is what managers differ in.
type Config struct {
	// Name begins the name of the Lease.
	Name    string
	Options *options.Options
	Scheme  *runtime.Scheme
	Cache   cache.Options
	// Guard says what the guard looks after beside what the options name.
	Guard guard.Options
}

// Manager is a manager with webhooks, and the guard that keeps these working.
type Manager struct {
	manager.Manager
	Guard    *guard.Guard
	webhooks *LingeringServer
}

// Connect sets the logger of all packages, and returns how to reach the cluster once its API server has answered: a wrong address ends
// in one clear line and not in retries.
func Connect(opts *options.Options, userAgent string) (*rest.Config, error) {
	ctrl.SetLogger(opts.Logger())
	klog.SetLogger(opts.Logger())
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("failed to find a cluster: %w; run inside one or set KUBECONFIG", err)
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent = opts.KubeAPIQPS, opts.KubeAPIBurst, userAgent
	// Watches are compressed as well, which costs both sides more than a network inside the cluster does.
	cfg.DisableCompression = true
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

// New returns a manager that is ready when its webhooks answer. The cache is no part of that: it is filled through the webhooks, which
// the API server reaches only on Pods that are ready.
func New(cfg *rest.Config, c Config) (*Manager, error) {
	opts := c.Options
	c.Guard.Namespace, c.Guard.Secret = opts.OperatorNamespace, opts.WebhookSecretName
	c.Guard.OLM, c.Guard.CSV = opts.OLM, opts.ClusterServiceVersion
	c.Guard.Endpoint = guard.Endpoint{Namespace: opts.OperatorNamespace, Name: opts.WebhookServiceName, URL: opts.WebhookURL}
	lifecycleGuard, err := guard.New(cfg, c.Guard)
	if err != nil {
		return nil, err
	}
	host, port, err := opts.WebhookAddress()
	if err != nil {
		return nil, err
	}
	webhooks := NewLingeringServer(NewLimitedServer(webhook.Options{
		Host:    host,
		Port:    port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = lifecycleGuard.GetCertificate }},
	}, c.Guard.ConversionPath), webhookLinger)
	mgr, err := newManager(cfg, c, webhooks)
	if err != nil {
		return nil, fmt.Errorf("failed to make the manager: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhooks", lifecycleGuard.Readiness(webhooks.StartedChecker())); err != nil {
		return nil, fmt.Errorf("failed to add the readiness check: %w", err)
	}
	return &Manager{Manager: mgr, Guard: lifecycleGuard, webhooks: webhooks}, nil
}

func newManager(cfg *rest.Config, c Config, webhooks webhook.Server) (manager.Manager, error) {
	lease, err := NewLease(cfg, c.Scheme, renewEvery, leaderelection.Options{
		LeaderElection:          c.Options.LeaderElect,
		LeaderElectionID:        c.Name + ".operator.example.com",
		LeaderElectionNamespace: c.Options.LeaderElectionNamespace,
		RenewDeadline:           renewDeadline,
	})
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme: c.Scheme,
		Cache:  c.Cache,
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Metrics: metricsserver.Options{
			BindAddress:    c.Options.MetricsBindAddress,
			SecureServing:  true,
			CertDir:        c.Options.MetricsCertDir,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer:                       webhooks,
		HealthProbeBindAddress:              c.Options.HealthProbeBindAddress,
		LeaderElection:                      c.Options.LeaderElect,
		LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(leaseDuration),
		RenewDeadline:                       ptr.To(renewDeadline),
		RetryPeriod:                         ptr.To(retryPeriod),
		GracefulShutdownTimeout:             ptr.To(shutdownTimeout),
		// Standbys keep their caches filled, so that a new leader works at once.
		Controller: config.Controller{EnableWarmup: ptr.To(true)},
	})
}

// Start runs the guard and the manager, and returns when both and the webhooks have ended. The guard is no runnable of the manager:
// the manager fills its cache first, for which the guard's work is needed.
func (m *Manager) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.Guard.Start(log.IntoContext(ctx, ctrl.Log)) })
	group.Go(func() error { return m.Manager.Start(ctx) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("operator ended: %w", err)
	}
	return m.webhooks.Wait()
}
