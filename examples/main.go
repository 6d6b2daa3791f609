// Command examples runs the four example operators in one manager: Foo, Activity, MyApp and SidecarSet.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"strconv"
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
	"github.com/example/nginx-operator/internal/operatormanager"
)

// RBAC permissions of the guard and of the metrics. Each example adds its own.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=nginx-operator-examples-mutating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=nginx-operator-examples-validating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-examples-webhook-server-cert,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Names of what examples/config installs.
const (
	operatorName    = "nginx-operator-examples"
	webhookService  = operatorName + "-webhook-service"
	webhookSecret   = operatorName + "-webhook-server-cert" // #nosec G101 -- the name of a Secret
	mutatingName    = operatorName + "-mutating-webhook-configuration"
	validatingName  = operatorName + "-validating-webhook-configuration"
	systemNamespace = operatorName + "-system"
)

const (
	// webhookLinger is how long the webhooks answer after a stop has begun: nodes take a moment to follow the Service.
	webhookLinger = 5 * time.Second
	// shutdownTimeout is less than the Pod's terminationGracePeriodSeconds: the Lease is released after it.
	shutdownTimeout = 8 * time.Second
	// retryPeriod is how often a standby asks for the Lease.
	retryPeriod = 500 * time.Millisecond
)

// options are the flags.
type options struct {
	leaderElect                                  bool
	namespace, metrics, probes, webhooks, webURL string
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, operatorName+":", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := options{}
	flags := flag.NewFlagSet(operatorName, flag.ContinueOnError)
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "elect one of several replicas to reconcile")
	namespace := cmp.Or(os.Getenv("POD_NAMESPACE"), systemNamespace)
	flags.StringVar(&o.namespace, "operator-namespace", namespace, "namespace of the manager, its webhooks' Service and certificate")
	flags.StringVar(&o.metrics, "metrics-bind-address", ":8443", `address of the HTTPS metrics endpoint, "0" for none`)
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.webhooks, "webhook-bind-address", ":9443", "address of the HTTPS endpoint for admission")
	flags.StringVar(&o.webURL, "webhook-url", "", "https://host:port at which the API server reaches a manager outside of the cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("failed to find a cluster: %w; run inside one or set KUBECONFIG", err)
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent = 200, 400, operatorName
	lifecycleGuard, err := guard.New(cfg, guard.Options{
		Namespace:  o.namespace,
		Secret:     webhookSecret,
		Endpoint:   guard.Endpoint{Namespace: o.namespace, Name: webhookService, URL: o.webURL},
		Mutating:   mutatingName,
		Validating: validatingName,
	})
	if err != nil {
		return err
	}
	host, text, _ := net.SplitHostPort(o.webhooks)
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("--webhook-bind-address is %q, must be host:port or :port", o.webhooks)
	}
	server := operatormanager.NewLingeringServer(webhook.NewServer(webhook.Options{
		Host:    host,
		Port:    port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = lifecycleGuard.GetCertificate }},
	}), webhookLinger)
	mgr, err := newManager(cfg, o, server)
	if err != nil {
		return fmt.Errorf("failed to make the manager: %w", err)
	}
	// Ready means that the webhooks answer.
	err = errors.Join(foo.Setup(mgr), activity.Setup(mgr), myapp.Setup(mgr), sidecarset.Setup(mgr), sidecarsetwebhook.Setup(mgr, o.namespace),
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("webhooks", lifecycleGuard.Readiness(server.StartedChecker())))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lifecycleGuard.Start(log.IntoContext(ctx, ctrl.Log)) })
	group.Go(func() error { return mgr.Start(ctx) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("manager ended: %w", err)
	}
	return server.Wait()
}

func newManager(cfg *rest.Config, o options, server webhook.Server) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), foov1.AddToScheme(scheme), activityv1.AddToScheme(scheme),
		myappv1alpha1.AddToScheme(scheme), sidecarsetv1alpha1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("failed to make the scheme: %w", err)
	}
	// Examples that want Pods in another way than Foo have caches of their own.
	byObject := foo.CacheByObject()
	maps.Copy(byObject, myapp.CacheByObject())
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Metrics: metricsserver.Options{
			BindAddress: o.metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer:                 server,
		HealthProbeBindAddress:        o.probes,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              operatorName + ".operator.example.com",
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   ptr.To(retryPeriod),
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		// Standbys keep their caches filled, so that a new leader works at once.
		Controller: config.Controller{EnableWarmup: ptr.To(true)},
	})
}
