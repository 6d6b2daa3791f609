// Command nginx-operator manages NGINX instances that are declared as NginxOperator objects.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/controllers/storagemigration"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/guard"
	"github.com/example/nginx-operator/internal/metadata"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/olm"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/options"
	"github.com/example/nginx-operator/internal/reference"
	operatorwebhook "github.com/example/nginx-operator/internal/webhook"
)

// version is set by the linker to the content of the file VERSION.
var version = "dev"

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	// A standby asks for the Lease after one to 2.2 times this, so it bounds what a handover after a clean stop takes.
	retryPeriod = 500 * time.Millisecond
	// How often the leader renews it. It has to stop before a standby may begin, so renewEvery, renewDeadline and retryPeriod are less
	// than leaseDuration together.
	renewEvery = 3 * time.Second
	// A reconcile is bounded to a minute, so one that runs for three is stuck.
	stuckAfter = 3 * time.Minute
	// An object whose reconcile failed has another one after a minute at the latest, so a leader that ends none for ten, though objects
	// wait, is stuck.
	idleAfter = 10 * time.Minute
	// Less than the Pod's terminationGracePeriodSeconds: the Lease is released after it.
	shutdownTimeout = 8 * time.Second
	// How long the webhooks answer after that has begun: nodes take a second or two to follow the Service. Less than the
	// Pod's terminationGracePeriodSeconds as well.
	webhookLinger = 5 * time.Second
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:])
	if err != nil && !errors.Is(err, options.ErrHelp) {
		fmt.Fprintln(os.Stderr, "nginx-operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	opts, err := options.Parse(args, os.LookupEnv, os.Stdout)
	if err != nil {
		return err
	}
	if opts.Version {
		fmt.Println(version)
		return nil
	}
	if err := operatormanager.LimitMemory(os.LookupEnv); err != nil {
		return err
	}
	operatormanager.PaceGC(os.LookupEnv)
	ctrl.SetLogger(opts.Logger())
	klog.SetLogger(opts.Logger())

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("failed to find a cluster: %w; run inside one or set KUBECONFIG", err)
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent = opts.KubeAPIQPS, opts.KubeAPIBurst, metadata.OperatorName+"/"+version
	if err := reachable(cfg); err != nil {
		return err
	}
	lifecycleGuard, err := newGuard(cfg, opts)
	if err != nil {
		return err
	}
	server, err := newWebhookServer(opts, lifecycleGuard)
	if err != nil {
		return err
	}
	mgr, err := newManager(cfg, opts, server)
	if err != nil {
		return fmt.Errorf("failed to make the manager: %w", err)
	}
	if err := setupControllers(mgr, opts, lifecycleGuard); err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version, "image", opts.NginxImage)
	// The guard is no runnable of the manager: the manager fills its cache first, for which the guard's work is needed.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lifecycleGuard.Start(log.IntoContext(ctx, ctrl.Log)) })
	group.Go(func() error { return mgr.Start(ctx) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("operator ended: %w", err)
	}
	return server.Wait()
}

func newGuard(cfg *rest.Config, opts *options.Options) (*guard.Guard, error) {
	return guard.New(cfg, guard.Options{
		Namespace:      opts.OperatorNamespace,
		Secret:         opts.WebhookSecretName,
		Endpoint:       guard.Endpoint{Namespace: opts.OperatorNamespace, Name: opts.WebhookServiceName, URL: opts.WebhookURL},
		ConversionPath: conversion.Path,
		CRD:            metadata.CRDName,
		Mutating:       guard.MutatingName,
		Validating:     guard.ValidatingName,
		CSV:            opts.ClusterServiceVersion,
		Restored:       metrics.NewRestores(ctrlmetrics.Registry),
	})
}

// reachable asks the API server for its version, so that a wrong address ends in one clear line and not in retries.
func reachable(cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 10 * time.Second
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("failed to configure the API client: %w", err)
	}
	if _, err := discoveryClient.ServerVersion(); err != nil {
		return fmt.Errorf("failed to reach the API server %s: %w", cfg.Host, err)
	}
	return nil
}

func newWebhookServer(opts *options.Options, lifecycleGuard *guard.Guard) (*operatormanager.LingeringServer, error) {
	host, port, err := opts.WebhookAddress()
	if err != nil {
		return nil, err
	}
	server := operatormanager.NewLimitedServer(webhook.Options{
		Host:    host,
		Port:    port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = lifecycleGuard.GetCertificate }},
	}, conversion.Path)
	return operatormanager.NewLingeringServer(server, webhookLinger), nil
}

func newManager(cfg *rest.Config, opts *options.Options, server webhook.Server) (manager.Manager, error) {
	scheme := operatormanager.NewScheme()
	lease, err := operatormanager.NewLease(cfg, scheme, renewEvery, leaderelection.Options{
		LeaderElection:          opts.LeaderElect,
		LeaderElectionID:        metadata.OperatorName + ".operator.example.com",
		LeaderElectionNamespace: opts.LeaderElectionNamespace,
		RenewDeadline:           renewDeadline,
	})
	if err != nil {
		return nil, err
	}
	cacheOptions := operatormanager.CacheOptions()
	if cacheOptions.NewInformer, err = operatormanager.Informers(cfg); err != nil {
		return nil, err
	}
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions,
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Metrics: metricsserver.Options{
			BindAddress:    opts.MetricsBindAddress,
			SecureServing:  true,
			CertDir:        opts.MetricsCertDir,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer:                       server,
		HealthProbeBindAddress:              opts.HealthProbeBindAddress,
		LeaderElection:                      opts.LeaderElect,
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

// setupControllers adds the controller, the webhooks, the probes and the runnables to the manager.
func setupControllers(mgr manager.Manager, opts *options.Options, lifecycleGuard *guard.Guard) error {
	counts, err := metrics.New(ctrlmetrics.Registry, mgr.GetCache())
	if err != nil {
		return fmt.Errorf("failed to register metrics: %w", err)
	}
	uncached, err := client.New(mgr.GetConfig(),
		client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("failed to make the uncached client: %w", err)
	}
	configMaps, secrets, err := reference.NewTrackers(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetAPIReader())
	if err != nil {
		return err
	}
	reconciler := &nginxoperator.Reconciler{
		Client: mgr.GetClient(),
		Applier: &apply.Applier{
			Client:     mgr.GetClient(),
			Reader:     mgr.GetAPIReader(),
			Annotation: metadata.AnnotationLastDeclared,
			Wrote:      counts.ChildWritten,
		},
		Recorder:   mgr.GetEventRecorder(metadata.OperatorName),
		Metrics:    counts,
		ConfigMaps: configMaps,
		Secrets:    secrets,
		Image:      opts.NginxImage,
		IPv6:       opts.IPv6(),
	}
	watchdog := operatormanager.NewWatchdog(stuckAfter)
	watchdog.WatchQueue(idleAfter, mgr.Elected(), operatormanager.Waiting(mgr.GetCache()))
	if err := reconciler.SetupWithManager(mgr, opts.MaxConcurrentReconciles, watchdog.Watch); err != nil {
		return fmt.Errorf("failed to set up the controller: %w", err)
	}
	if err := setupMigration(mgr, opts, uncached); err != nil {
		return fmt.Errorf("failed to set up the storage migration: %w", err)
	}
	if err := mgr.AddHealthzCheck("reconcile", watchdog.Check); err != nil {
		return fmt.Errorf("failed to add the liveness check: %w", err)
	}
	conversion.Register(mgr)
	mgr.GetWebhookServer().Register(guard.PathCRD, lifecycleGuard.Admission())
	if err := operatorwebhook.Setup(mgr, reconciler.Deployment); err != nil {
		return fmt.Errorf("failed to set up admission: %w", err)
	}
	// Ready means that the webhooks answer. The cache is no part of it: it is filled through the webhooks, which the API
	// server reaches only on Pods that are ready.
	if err := mgr.AddReadyzCheck("webhooks", lifecycleGuard.Readiness(mgr.GetWebhookServer().StartedChecker())); err != nil {
		return fmt.Errorf("failed to add the readiness check: %w", err)
	}
	return nil
}

// setupMigration adds the controller of the storage migration, which speaks to OLM as well.
func setupMigration(mgr manager.Manager, opts *options.Options, uncached client.Client) error {
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("failed to configure discovery: %w", err)
	}
	reconciler := &storagemigration.Reconciler{
		Client:    uncached,
		Discovery: discoveryClient,
		Target:    v1alpha2.GroupVersion.WithKind("NginxOperator"),
		Recorder:  mgr.GetEventRecorder(metadata.OperatorName),
		Condition: olm.NewUpgradeable(uncached, ctrl.Log.WithName("olm")),
		Metrics:   metrics.NewMigration(ctrlmetrics.Registry),
	}
	if opts.StorageMigrationManifest != "" {
		manifest, err := storagemigration.Load(opts.StorageMigrationManifest)
		if err != nil {
			return err
		}
		reconciler.Manifest = manifest
	}
	return reconciler.SetupWithManager(mgr)
}
