// Command examples runs the four example operators in one manager: Foo, Activity, MyApp and SidecarSet. They are what the
// source documents of this repository describe, each the shortest complete example of its pattern; README.md lists them.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	activityv1 "github.com/example/nginx-operator/examples/activity/api/v1"
	activity "github.com/example/nginx-operator/examples/activity/controller"
	foov1 "github.com/example/nginx-operator/examples/foo/api/v1"
	foo "github.com/example/nginx-operator/examples/foo/controller"
	myappv1alpha1 "github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	myapp "github.com/example/nginx-operator/examples/myapp/controller"
	sidecarsetv1alpha1 "github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	sidecarset "github.com/example/nginx-operator/examples/sidecarset/controller"
	sidecarsetwebhook "github.com/example/nginx-operator/examples/sidecarset/webhook"
	"github.com/example/nginx-operator/internal/guard"
	operatormanager "github.com/example/nginx-operator/internal/manager"
)

// Rights of the manager itself: those of the guard, each for one object by its name where the API server can tell, and
// those by which it lets the API server decide who may read the metrics. Each example adds its own.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=nginx-operator-examples-mutating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=nginx-operator-examples-validating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-examples-webhook-server-cert,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

const (
	// retryPeriod is how often a standby asks for the Lease, so it bounds what a handover after a clean stop takes.
	retryPeriod = 500 * time.Millisecond
	// shutdownTimeout is less than the Pod's terminationGracePeriodSeconds: the Lease is released after it.
	shutdownTimeout = 8 * time.Second
	// webhookLinger is how long the webhooks answer after that has begun: nodes take a second or two to follow the Service.
	webhookLinger = 5 * time.Second
)

// requestsPerSecond and requestsAtOnce bound what the manager asks of the API server.
const (
	requestsPerSecond = 200
	requestsAtOnce    = 400
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:])
	if err != nil && !errors.Is(err, errHelp) {
		fmt.Fprintln(os.Stderr, operatorName+":", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	opts, err := parse(args, os.LookupEnv, os.Stdout)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("failed to find a cluster: %w; run inside one or set KUBECONFIG", err)
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent = requestsPerSecond, requestsAtOnce, operatorName
	keeper, err := guard.New(cfg, guard.Options{
		Namespace:  opts.namespace,
		Secret:     webhookSecret,
		Endpoint:   guard.Endpoint{Namespace: opts.namespace, Name: webhookService, URL: opts.webhookURL},
		Mutating:   mutatingName,
		Validating: validatingName,
	})
	if err != nil {
		return err
	}
	server := operatormanager.NewLingeringServer(webhook.NewServer(webhook.Options{
		Host:    opts.webhookHost,
		Port:    opts.webhookPort,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = keeper.GetCertificate }},
	}), webhookLinger)
	mgr, err := newManager(cfg, opts, server)
	if err != nil {
		return fmt.Errorf("failed to make the manager: %w", err)
	}
	if err := wire(mgr, keeper); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return keeper.Start(log.IntoContext(ctx, ctrl.Log)) })
	group.Go(func() error { return mgr.Start(ctx) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("manager ended: %w", err)
	}
	return server.Wait()
}

// newScheme returns the scheme with every type that the examples read or write.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, foov1.AddToScheme, activityv1.AddToScheme, myappv1alpha1.AddToScheme, sidecarsetv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("failed to make the scheme: %w", err)
		}
	}
	return scheme, nil
}

// cacheOptions returns the options of the manager's cache. Examples that watch Pods have caches of their own, each narrowed
// to what it reads. Reading a kind that no controller watches is an error instead of one more informer.
func cacheOptions() cache.Options {
	byObject := map[client.Object]cache.ByObject{}
	maps.Copy(byObject, myapp.CacheByObject())
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject:                    byObject,
	}
}

func newManager(cfg *rest.Config, opts *options, server webhook.Server) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Metrics: metricsserver.Options{
			BindAddress:    opts.metricsBindAddress,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer:                 server,
		HealthProbeBindAddress:        opts.healthProbeBindAddress,
		LeaderElection:                opts.leaderElect,
		LeaderElectionID:              leaderElection,
		LeaderElectionNamespace:       opts.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   ptr.To(retryPeriod),
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		// Standbys keep their caches filled, so that a new leader works at once.
		Controller: config.Controller{EnableWarmup: ptr.To(true)},
	})
}

// wire adds the four examples and the probes to the manager.
func wire(mgr manager.Manager, keeper *guard.Guard) error {
	for _, setup := range []func(ctrl.Manager) error{
		foo.Setup, activity.Setup, myapp.Setup, sidecarset.Setup, sidecarsetwebhook.Setup,
	} {
		if err := setup(mgr); err != nil {
			return err
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("failed to add the liveness check: %w", err)
	}
	// Ready means that the webhooks answer.
	if err := mgr.AddReadyzCheck("webhooks", keeper.Readiness(mgr.GetWebhookServer().StartedChecker())); err != nil {
		return fmt.Errorf("failed to add the readiness check: %w", err)
	}
	return nil
}
