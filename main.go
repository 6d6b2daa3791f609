// Command nginx-operator manages NGINX servers that are declared as NginxOperator objects.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
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
	operatormanager "github.com/example/nginx-operator/internal/manager"
	"github.com/example/nginx-operator/internal/metadata"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/olm"
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
	// A pass is bounded to a minute, so one that runs for three is stuck.
	stuckAfter = 3 * time.Minute
	// Less than the Pod's terminationGracePeriodSeconds: the Lease is released after it.
	shutdownTimeout = 8 * time.Second
	// How long the webhooks answer after that has begun: nodes take a second or two to follow the Service. Less than the
	// Pod's terminationGracePeriodSeconds as well.
	webhookLinger = 5 * time.Second
)

func main() {
	// Most of the operator's memory is its cache. Collecting garbage at half the usual growth takes little time and much
	// less memory; GOGC has its way where it is set.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
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
	keeper, err := newGuard(cfg, opts)
	if err != nil {
		return err
	}
	server, err := newWebhookServer(opts, keeper)
	if err != nil {
		return err
	}
	mgr, err := newManager(cfg, opts, server)
	if err != nil {
		return fmt.Errorf("failed to make the manager: %w", err)
	}
	if err := wire(mgr, opts, keeper); err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version, "image", opts.NginxImage)
	// The guard is no runnable of the manager: the manager fills its cache first, for which the guard's work is needed.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return keeper.Start(log.IntoContext(ctx, ctrl.Log)) })
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
		Definition:     metadata.DefinitionName,
		Mutating:       guard.MutatingName,
		Validating:     guard.ValidatingName,
		CSV:            opts.ClusterServiceVersion,
		Repaired:       metrics.NewRepairs(ctrlmetrics.Registry),
	})
}

// reachable asks the API server for its version, so that a wrong address ends in one clear line and not in retries.
func reachable(cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 10 * time.Second
	asker, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("failed to configure the API client: %w", err)
	}
	if _, err := asker.ServerVersion(); err != nil {
		return fmt.Errorf("failed to reach the API server %s: %w", cfg.Host, err)
	}
	return nil
}

func newWebhookServer(opts *options.Options, keeper *guard.Guard) (*operatormanager.LingeringServer, error) {
	host, port, err := opts.WebhookAddress()
	if err != nil {
		return nil, err
	}
	return operatormanager.NewLingeringServer(webhook.NewServer(webhook.Options{
		Host:    host,
		Port:    port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = keeper.GetCertificate }},
	}), webhookLinger), nil
}

func newManager(cfg *rest.Config, opts *options.Options, server webhook.Server) (manager.Manager, error) {
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme: operatormanager.NewScheme(),
		Cache:  operatormanager.CacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Metrics: metricsserver.Options{
			BindAddress:    opts.MetricsBindAddress,
			SecureServing:  true,
			CertDir:        opts.MetricsCertDir,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer:                 server,
		HealthProbeBindAddress:        opts.HealthProbeBindAddress,
		LeaderElection:                opts.LeaderElect,
		LeaderElectionID:              metadata.OperatorName + ".operator.example.com",
		LeaderElectionNamespace:       opts.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(retryPeriod),
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		// Standbys keep their caches filled, so that a new leader works at once.
		Controller: config.Controller{EnableWarmup: ptr.To(true)},
	})
}

// wire adds the controller, the webhooks, the probes and the runnables to the manager.
func wire(mgr manager.Manager, opts *options.Options, keeper *guard.Guard) error {
	counts, err := metrics.New(ctrlmetrics.Registry, mgr.GetCache())
	if err != nil {
		return fmt.Errorf("failed to register metrics: %w", err)
	}
	uncached, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
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
	if err := reconciler.SetupWithManager(mgr, opts.MaxConcurrentReconciles, watchdog.Watch); err != nil {
		return fmt.Errorf("failed to set up the controller: %w", err)
	}
	if err := wireMigration(mgr, opts, uncached); err != nil {
		return fmt.Errorf("failed to set up the storage migration: %w", err)
	}
	if err := mgr.AddHealthzCheck("reconcile", watchdog.Check); err != nil {
		return fmt.Errorf("failed to add the liveness check: %w", err)
	}
	if err := conversion.Register(mgr); err != nil {
		return fmt.Errorf("failed to set up the conversion: %w", err)
	}
	mgr.GetWebhookServer().Register(guard.PathDefinition, keeper.Admission())
	if err := operatorwebhook.Setup(mgr); err != nil {
		return fmt.Errorf("failed to set up admission: %w", err)
	}
	// Ready means that the webhooks answer. The cache is no part of it: it is filled through the webhooks, which the API
	// server reaches only on Pods that are ready.
	if err := mgr.AddReadyzCheck("webhooks", keeper.Readiness(mgr.GetWebhookServer().StartedChecker())); err != nil {
		return fmt.Errorf("failed to add the readiness check: %w", err)
	}
	return nil
}

// wireMigration adds the controller of the storage migration, which speaks to OLM as well.
func wireMigration(mgr manager.Manager, opts *options.Options, uncached client.Client) error {
	asker, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("failed to configure discovery: %w", err)
	}
	reconciler := &storagemigration.Reconciler{
		Client:    uncached,
		Discovery: asker,
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
