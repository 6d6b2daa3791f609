// Command nginx-operator manages NGINX instances that are declared as NginxOperator objects.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/objectcache"
	"github.com/example/nginx-operator/internal/olm"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/options"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/scheme"
	operatorwebhook "github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/access"
	"github.com/example/nginx-operator/pkg/guard"
	"github.com/example/nginx-operator/pkg/manager"
	"github.com/example/nginx-operator/pkg/reference"
	"github.com/example/nginx-operator/pkg/storagemigration"
)

// version is set by the linker to the content of the file VERSION.
var version = "dev"

// A reconcile ends after a minute, and a failed one is repeated after a minute at the latest.
const stuckAfter, idleAfter = 3 * time.Minute, 10 * time.Minute

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

	cfg, err := manager.Connect(&opts.Options, opts.Logger(), wellknown.OperatorName+"/"+version)
	if err != nil {
		return err
	}

	var permissions *access.Namespaces
	if len(opts.WatchNamespaces) > 0 {
		permissions = access.New(ctrl.Log,
			"bind ClusterRole "+wellknown.ManagerRole+" to the operator's ServiceAccount in it, or remove it from --watch-namespaces")
	}

	mgr, err := newManager(cfg, opts, permissions)
	if err != nil {
		return err
	}
	if err := setupControllers(mgr, opts, permissions); err != nil {
		return err
	}

	ctrl.Log.Info("Starting", "version", version, "image", opts.NginxImage)
	return mgr.Start(ctx)
}

func newManager(cfg *rest.Config, opts *options.Options, permissions *access.Namespaces) (*manager.Manager, error) {
	newInformer, err := objectcache.Informers(cfg, resolve.Indexes(), permissions)
	if err != nil {
		return nil, err
	}

	cacheOptions := objectcache.CacheOptions(opts.WatchNamespaces...)
	cacheOptions.NewInformer = newInformer
	return manager.New(cfg, manager.Config{
		Name:    wellknown.OperatorName,
		Options: &opts.Options,
		Scheme:  scheme.New(),
		Mapper:  objectcache.NewMapper,
		Cache:   cacheOptions,
		Guard: guard.Options{
			ConversionPath: conversion.Path, ConvertedVersion: v1alpha2.GroupVersion.Version,
			CRD: wellknown.CRDName, Mutating: wellknown.MutatingName, Validating: wellknown.ValidatingName,
			Restored: metrics.NewRestores(ctrlmetrics.Registry, guard.Kinds...),
		},
	})
}

// setupControllers adds the controller, the webhooks and the liveness check to the manager.
func setupControllers(mgr *manager.Manager, opts *options.Options, permissions *access.Namespaces) error {
	instances := objectcache.NewInstances(mgr.GetCache(), permissions)
	counts := metrics.New(ctrlmetrics.Registry, instances.List)
	metrics.NewWebhookCertificate(ctrlmetrics.Registry, mgr.Guard.GetCertificate)
	uncached, err := newUncached(mgr)
	if err != nil {
		return fmt.Errorf("failed to create the uncached client: %w", err)
	}

	configMaps, secrets, err := reference.NewTrackers(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetAPIReader(),
		permissions, opts.WatchNamespaces...)
	if err != nil {
		return err
	}

	cached, err := objectcache.Whole(mgr.GetConfig(), mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return err
	}

	reconciler := &nginxoperator.Reconciler{
		Client:     cached,
		Applier:    nginxoperator.NewApplier(cached, mgr.GetAPIReader(), counts.ChildWritten),
		Recorder:   mgr.GetEventRecorder(wellknown.OperatorName),
		Metrics:    counts,
		ConfigMaps: configMaps,
		Secrets:    secrets,
		Fleet:      fleet.New(opts.FleetRollout),
		Release: operand.Release{
			Image: opts.NginxImage, ExporterImage: opts.ExporterImage, IPv6: opts.IPv6(), Nameservers: opts.Nameservers("/etc/resolv.conf"),
		},
	}

	watchdog := manager.NewWatchdog(stuckAfter, idleAfter, mgr.Elected(), instances.Waiting)
	wrap := func(inner reconcile.Reconciler) reconcile.Reconciler { return watchdog.Watch(permissions.Guard(inner)) }
	controllerOptions := manager.ControllerOptions()
	controllerOptions.MaxConcurrentReconciles = opts.MaxConcurrentReconciles
	optionalKinds, err := objectcache.NewOptionalKinds(mgr, func(pending ctrl.Manager, missing map[string]string) error {
		reconciler.Missing = missing
		return reconciler.SetupWithManager(pending, controllerOptions, wrap)
	})
	if err != nil {
		return err
	}

	upgradeable := olm.NewUpgradeable(uncached, ctrl.Log.WithName("olm"))
	if err := setupMigration(mgr, opts, uncached, upgradeable.Part()); err != nil {
		return fmt.Errorf("failed to set up the storage migration: %w", err)
	}

	failed := metrics.NewConversionFailures(ctrlmetrics.Registry)
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler(failed))
	mgr.GetWebhookServer().Register(operatorwebhook.PathCRD, mgr.Guard.Admission())
	operatorwebhook.Setup(mgr.GetWebhookServer(), uncached, reconciler, opts.OperatorNamespace, opts.Watches)

	const list = "NginxOperatorList"
	return errors.Join(
		mgr.Add(instances),
		mgr.Add(optionalKinds),
		mgr.Add(&fleet.Reporter{
			Gate: reconciler.Fleet, Names: instances.Names,
			SetCondition: upgradeable.Part().Set, Instances: metrics.NewFleet(ctrlmetrics.Registry),
			Log: ctrl.Log.WithName("fleet"),
		}),
		mgr.Add(metrics.NewVersions(ctrlmetrics.Registry, uncached, opts.WatchNamespaces,
			v1alpha1.GroupVersion.WithKind(list), v1alpha2.GroupVersion.WithKind(list))),
		mgr.AddHealthzCheck("reconcile", watchdog.Check),
	)
}

// newUncached returns a client without a cache. It drops the API server's warnings: each answer at
// the deprecated version has one, and the reconciler receives those of dry runs again.
func newUncached(mgr ctrl.Manager) (client.Client, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	return client.New(config,
		client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
}

// setupMigration adds the controller of the storage migration.
func setupMigration(mgr ctrl.Manager, opts *options.Options, uncached client.Client, condition storagemigration.Condition) error {
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("failed to configure discovery: %w", err)
	}

	reconciler := &storagemigration.Reconciler{
		Client:      uncached,
		Discovery:   discoveryClient,
		Target:      v1alpha2.GroupVersion.WithKind("NginxOperator"),
		Recorder:    mgr.GetEventRecorder(wellknown.OperatorName),
		Condition:   condition,
		Metrics:     metrics.NewMigration(ctrlmetrics.Registry),
		Namespaces:  opts.WatchNamespaces,
		ClusterRole: wellknown.ManagerRole,
	}
	if opts.StorageMigrationManifest != "" {
		manifest, err := storagemigration.Load(opts.StorageMigrationManifest, wellknown.CRDName)
		if err != nil {
			return err
		}

		manifest.SetLabels(map[string]string{wellknown.LabelManagedBy: wellknown.OperatorName})
		reconciler.Manifest = manifest
	}

	return reconciler.SetupWithManager(mgr)
}
