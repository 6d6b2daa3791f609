// Command nginx-operator manages NGINX servers that are declared as NginxOperator objects.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/internal/apply"
	operatormanager "github.com/example/nginx-operator/internal/manager"
	"github.com/example/nginx-operator/internal/metadata"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/olm"
	"github.com/example/nginx-operator/internal/options"
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
	mgr, err := newManager(cfg, opts)
	if err != nil {
		return fmt.Errorf("failed to make the manager: %w", err)
	}
	if err := wire(mgr, opts); err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version, "image", opts.NginxImage)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("operator ended: %w", err)
	}
	return nil
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

func newManager(cfg *rest.Config, opts *options.Options) (manager.Manager, error) {
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

// wire adds the controller, the probes and the runnables to the manager.
func wire(mgr manager.Manager, opts *options.Options) error {
	counts, err := metrics.New(ctrlmetrics.Registry, mgr.GetCache())
	if err != nil {
		return fmt.Errorf("failed to register metrics: %w", err)
	}
	uncached, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("failed to make the uncached client: %w", err)
	}
	reconciler := &nginxoperator.Reconciler{
		Client: mgr.GetClient(),
		Applier: &apply.Applier{
			Client:     mgr.GetClient(),
			Reader:     mgr.GetAPIReader(),
			Annotation: metadata.AnnotationLastDeclared,
			Wrote:      counts.ChildWritten,
		},
		Recorder: mgr.GetEventRecorder(metadata.OperatorName),
		Metrics:  counts,
		Image:    opts.NginxImage,
		IPv6:     opts.IPv6(),
	}
	watchdog := operatormanager.NewWatchdog(stuckAfter)
	if err := reconciler.SetupWithManager(mgr, opts.MaxConcurrentReconciles, watchdog.Watch); err != nil {
		return fmt.Errorf("failed to set up the controller: %w", err)
	}
	if err := mgr.Add(&olm.Upgradeable{Client: uncached}); err != nil {
		return fmt.Errorf("failed to add the OLM condition: %w", err)
	}
	if err := mgr.AddHealthzCheck("reconcile", watchdog.Check); err != nil {
		return fmt.Errorf("failed to add the liveness check: %w", err)
	}
	err = mgr.AddReadyzCheck("cache", func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("failed to add the readiness check: %w", err)
	}
	return nil
}
