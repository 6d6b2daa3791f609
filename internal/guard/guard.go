// Package guard keeps the operator's webhooks working while OLM or kubectl apply replace the
// objects that they need: the CustomResourceDefinition, the ClusterServiceVersion, and the
// certificate. It runs in every replica, whether the replica leads or not, and independently of the
// manager: the manager's cache reads converted objects, so it cannot be filled before the guard has
// restored the conversion once.
//
// For the effects without the guard, see docs/adr/0012-lifecycle-guard.md.
package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/internal/certificates"
)

// Names of objects that config/ installs and the guard restores.
const (
	// MutatingName and ValidatingName are the names of the webhook configurations outside of OLM,
	// which creates its own.
	MutatingName   = "nginx-operator-mutating-webhook-configuration"
	ValidatingName = "nginx-operator-validating-webhook-configuration"
)

const (
	// propagation is the time for API servers to load another CA before the operator serves a
	// certificate of it.
	propagation = 3 * time.Second
	// attempt bounds one reconcile.
	attempt = 10 * time.Second
	// firstRetry and lastRetry bound the back-off of a reconcile that failed.
	firstRetry = 20 * time.Millisecond
	lastRetry  = 10 * time.Second
	// renewalOfOthers is the interval of checks of a certificate that another component should have
	// renewed.
	renewalOfOthers = time.Minute
	// writesAtOnce and writesPerSecond limit the guard's writes. The guard must be fast, but a
	// client that reverts each of its writes must not cause an endless loop.
	writesAtOnce    = 30
	writesPerSecond = 1
)

// Options configure a guard.
type Options struct {
	// Namespace is the operator's namespace.
	Namespace string
	// Secret is the name of the Secret with the serving certificate.
	Secret string
	// Endpoint is the address of the webhooks for the API server. ConversionPath is the path of the
	// conversion.
	Endpoint       Endpoint
	ConversionPath string
	// CRD is the name of the CustomResourceDefinition whose conversion the guard restores, or empty
	// for an operator without a conversion. Mutating and Validating are the names of the webhook
	// configurations outside of OLM.
	CRD, Mutating, Validating string
	// OLM is true if OLM creates the certificate and the webhook configurations. CSV is the name of
	// the operator's ClusterServiceVersion, or empty without OLM v0.
	OLM bool
	CSV string
	// Restored is called after each restore, with its kind.
	Restored func(kind string)
}

// Guard restores the conversion, the webhook configurations, and the certificate. Create it with
// New.
type Guard struct {
	options Options
	// cache holds the few objects, each watched by its name. reader reads from the cache, and
	// client writes.
	cache  cache.Cache
	reader client.Reader
	client client.Client
	writes flowcontrol.RateLimiter
	// serving is the certificate of the webhook server.
	serving atomic.Pointer[tls.Certificate]
	// ca is the CA of the serving certificate. next is its successor, known since nextSince. Only
	// the single worker uses these fields.
	ca        []byte
	next      *tls.Certificate
	nextSince time.Time
	// trusted is the CA bundle of the CRD, for admission.
	trusted atomic.Pointer[[]byte]
	ready   atomic.Bool
}

// New returns a guard for a cluster.
func New(config *rest.Config, options Options) (*Guard, error) {
	scheme := newScheme()
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	objects := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{options.Namespace: {FieldSelector: named(options.Secret)}}},
	}
	if options.CRD != "" {
		objects[&apiextensionsv1.CustomResourceDefinition{}] = cache.ByObject{Field: named(options.CRD)}
	}
	if !options.OLM {
		objects[&admissionregistrationv1.MutatingWebhookConfiguration{}] = cache.ByObject{Field: named(options.Mutating)}
		objects[&admissionregistrationv1.ValidatingWebhookConfiguration{}] = cache.ByObject{Field: named(options.Validating)}
	}
	watched, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: objects, ReaderFailOnMissingInformer: true})
	if err != nil {
		return nil, fmt.Errorf("failed to create the guard's cache: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("failed to create the guard's client: %w", err)
	}
	g := newGuard(options, watched, writer)
	g.cache = watched
	return g, nil
}

func newGuard(options Options, reader client.Reader, writer client.Client) *Guard {
	limiter := flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, writesAtOnce)
	return &Guard{options: options, reader: reader, client: writer, writes: limiter}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	return scheme
}

// GetCertificate returns the serving certificate. It is for the TLS configuration of the webhook
// server.
func (g *Guard) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := g.serving.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// Ready returns an error until all guarded objects were correct once.
func (g *Guard) Ready() error {
	if !g.ready.Load() {
		return errors.New("the certificate or the conversion of the API is not ready yet")
	}
	return nil
}

// Readiness returns a check that passes when the webhooks answer and all guarded objects were
// correct once. The argument is the check of the webhook server.
func (g *Guard) Readiness(started healthz.Checker) healthz.Checker {
	return func(request *http.Request) error {
		if err := g.Ready(); err != nil {
			return err
		}
		return started(request)
	}
}

// Start watches and restores until the context ends.
func (g *Guard) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("guard")
	ctx = log.IntoContext(ctx, logger)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	const everything = "everything"
	wake := func(any) { queue.Add(everything) }
	for kind := range g.watchedKinds() {
		informer, err := g.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("failed to watch %T: %w", kind, err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("failed to watch %T: %w", kind, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- g.cache.Start(ctx) }()
	if !g.cache.WaitForCacheSync(ctx) {
		return <-ended
	}
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	queue.Add(everything)
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return <-ended
		}
		requeueAfter, err := g.reconcile(ctx)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			// Another replica or OLM was faster.
			logger.V(1).Info("Retrying after a conflict", "conflict", err.Error())
			queue.AddRateLimited(key)
		case err != nil:
			logger.Error(err, "Failed to restore the webhooks, retrying")
			queue.AddRateLimited(key)
		default:
			queue.Forget(key)
			if requeueAfter > 0 {
				queue.AddAfter(key, requeueAfter)
			}
		}
		queue.Done(key)
	}
}

func (g *Guard) watchedKinds() map[client.Object]struct{} {
	kinds := map[client.Object]struct{}{&corev1.Secret{}: {}}
	if g.options.CRD != "" {
		kinds[&apiextensionsv1.CustomResourceDefinition{}] = struct{}{}
	}
	if !g.options.OLM {
		kinds[&admissionregistrationv1.MutatingWebhookConfiguration{}] = struct{}{}
		kinds[&admissionregistrationv1.ValidatingWebhookConfiguration{}] = struct{}{}
	}
	return kinds
}

// reconcile restores all objects. It returns the time until the next reconcile without an event, or
// 0 if none is needed.
func (g *Guard) reconcile(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()

	secret, certificate, ca, err := g.servingSecret(ctx)
	if err != nil {
		if g.ca == nil {
			return 0, err
		}
		// The operator keeps serving the last certificate, so its CA must stay trusted.
		_, restoreErr := g.restore(ctx, g.ca)
		return 0, errors.Join(err, restoreErr)
	}

	if g.options.CSV != "" {
		if err := g.adopt(ctx, secret); err != nil {
			return 0, err
		}
	}

	// Trust the CA before serving its certificate, so that no connection fails in between.
	overlap, err := g.restore(ctx, ca)
	if err != nil {
		return 0, err
	}

	requeueAfter := g.serve(certificate, ca, overlap)
	g.ready.Store(true)
	if requeueAfter == 0 && !g.options.OLM {
		requeueAfter = time.Until(certificates.RenewAt(certificate.Leaf))
		if requeueAfter <= 0 {
			requeueAfter = renewalOfOthers
		}
	}
	return requeueAfter, nil
}

// serve switches to a certificate, or returns the time to wait before that. API servers get some
// time to load its CA, as long as they trust the previous certificate as well.
func (g *Guard) serve(certificate *tls.Certificate, ca []byte, overlap bool) time.Duration {
	before := g.serving.Load()
	if before != nil && before.Leaf.Equal(certificate.Leaf) {
		g.ca, g.next = ca, nil
		return 0
	}

	if before != nil && overlap {
		if g.next == nil || !g.next.Leaf.Equal(certificate.Leaf) {
			g.next, g.nextSince = certificate, time.Now()
		}
		if left := propagation - time.Since(g.nextSince); left > 0 {
			return left
		}
	}

	g.serving.Store(certificate)
	g.ca, g.next = ca, nil
	return 0
}
