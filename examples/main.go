// Command examples runs the four example operators in one manager: Foo, Activity, MyApp, and
// SidecarSet.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	activityv1 "github.com/example/nginx-operator/examples/activity/api/v1"
	activity "github.com/example/nginx-operator/examples/activity/controller"
	foov1 "github.com/example/nginx-operator/examples/foo/api/v1"
	foo "github.com/example/nginx-operator/examples/foo/controller"
	myappv1alpha1 "github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	myapp "github.com/example/nginx-operator/examples/myapp/controller"
	sidecarsetv1alpha1 "github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	sidecarset "github.com/example/nginx-operator/examples/sidecarset/controller"
	sidecarsetwebhook "github.com/example/nginx-operator/examples/sidecarset/webhook"
	"github.com/example/nginx-operator/pkg/guard"
	"github.com/example/nginx-operator/pkg/manager"
)

// RBAC permissions of the guard and of the metrics. Each example adds its own.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=nginx-operator-examples-mutating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=nginx-operator-examples-validating-webhook-configuration,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=nginx-operator-examples-webhook-server-cert,verbs=list;watch;update
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// operatorName is the prefix of the names of the objects in examples/config.
const operatorName = "nginx-operator-examples"

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, operatorName+":", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := &manager.Options{
		KubeAPIQPS: 200, KubeAPIBurst: 400,
		WebhookServiceName: operatorName + "-webhook-service", WebhookSecretName: operatorName + "-webhook-server-cert",
	}
	flags := flag.NewFlagSet(operatorName, flag.ContinueOnError)
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "elect one of several replicas to reconcile")
	namespace := cmp.Or(os.Getenv("POD_NAMESPACE"), operatorName+"-system")
	flags.StringVar(&o.OperatorNamespace, "operator-namespace", namespace, "namespace of the manager, its webhooks' Service and certificate")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", ":8443", `address of the HTTPS metrics endpoint, "0" for none`)
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.WebhookBindAddress, "webhook-bind-address", ":9443", "address of the HTTPS endpoint for admission")
	flags.StringVar(&o.WebhookURL, "webhook-url", "", "https://host:port at which the API server reaches a manager outside of the cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg, err := manager.Connect(o, logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)), operatorName)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	err = errors.Join(clientgoscheme.AddToScheme(scheme), foov1.AddToScheme(scheme), activityv1.AddToScheme(scheme),
		myappv1alpha1.AddToScheme(scheme), sidecarsetv1alpha1.AddToScheme(scheme))
	if err != nil {
		return fmt.Errorf("failed to make the scheme: %w", err)
	}
	// Activity and SidecarSet need other Pods or other fields than Foo, so they have their own
	// caches.
	byObject := foo.CacheByObject()
	maps.Copy(byObject, myapp.CacheByObject())
	mgr, err := manager.New(cfg, manager.Config{
		Name:    operatorName,
		Options: o,
		Scheme:  scheme,
		Warmup:  true, // the webhook of SidecarSets reads from the cache
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject},
		Guard: guard.Options{
			Mutating: operatorName + "-mutating-webhook-configuration", Validating: operatorName + "-validating-webhook-configuration",
		},
	})
	if err != nil {
		return err
	}
	err = errors.Join(foo.Setup(mgr), activity.Setup(mgr), myapp.Setup(mgr), sidecarset.Setup(mgr),
		sidecarsetwebhook.Setup(mgr, o.OperatorNamespace), mgr.AddHealthzCheck("ping", healthz.Ping))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
