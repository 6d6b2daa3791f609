// Package guard keeps the operator's webhooks working while OLM or kubectl apply replace the
// objects that they need: the CustomResourceDefinition, the ClusterServiceVersion, and the
// certificate. It runs in every replica, and independently of the manager, whose cache cannot be
// filled without the conversion. For the reasons, see docs/adr/0012-lifecycle-guard.md.
package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/pkg/certificates"
)

const (
	// propagation is the time for API servers to load a CA before its certificate is served.
	propagation = 3 * time.Second
	// attempt bounds one reconcile. firstRetry and lastRetry bound the back-off after a failure.
	attempt               = 10 * time.Second
	firstRetry, lastRetry = 20 * time.Millisecond, 10 * time.Second
	// renewalOfOthers is the interval of checks of a due certificate of another component.
	renewalOfOthers = time.Minute
	// writesAtOnce and writesPerSecond bound the writes if a client reverts each of them.
	writesAtOnce, writesPerSecond = 30, 1
)

// Options configure a guard.
type Options struct {
	// Name is the operator's name: the label app.kubernetes.io/managed-by of the Secret, and the
	// prefix of the field manager. Namespace is the operator's namespace. Secret is the name of the
	// Secret with the serving certificate.
	Name, Namespace, Secret string
	// Endpoint is the address of the webhooks, and ConversionPath the path of the conversion.
	Endpoint       Endpoint
	ConversionPath string
	// CRD is the name of the CustomResourceDefinition whose conversion the guard restores, or empty
	// for an operator without a conversion. A CRD without ConvertedVersion belongs to an earlier
	// release and needs no conversion.
	CRD, ConvertedVersion string
	// Mutating and Validating are the names of the webhook configurations outside of OLM.
	Mutating, Validating string
	// OLM is true if OLM creates the certificate and the webhook configurations. CSV is the name of
	// the operator's ClusterServiceVersion, or empty without OLM v0.
	OLM bool
	CSV string
	// Restored is called after each restore, with its kind.
	Restored func(kind string)
}

// Guard restores the conversion, the webhook configurations, and the certificate.
type Guard struct {
	options Options
	// cache has the watched objects. reader reads from it, and client writes.
	cache  cache.Cache
	reader client.Reader
	client client.Client
	writes flowcontrol.RateLimiter
	// serving is the certificate of the webhook server. Both workers replace it.
	serving atomic.Pointer[served]
	// next is the successor of the serving certificate, known since nextSince, for restores only.
	next      *served
	nextSince time.Time
	// trusted is the CA bundle of the CRD, for admission.
	trusted atomic.Pointer[[]byte]
	ready   atomic.Bool
}

// New returns a guard for a cluster.
func New(config *rest.Config, options Options) (*Guard, error) {
	scheme := newScheme()
	watched, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: options.watched(), ReaderFailOnMissingInformer: true})
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

// Ready returns an error until all guarded objects were correct once.
func (g *Guard) Ready() error {
	if !g.ready.Load() {
		return errors.New("the certificate or the conversion of the API is not ready yet")
	}
	return nil
}

// Start watches and restores until the context ends.
func (g *Guard) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("guard"))
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	tasks := map[string]func(context.Context) (time.Duration, error){"restore": g.reconcile, "follow": g.follow}
	wake := func(any) {
		for task := range tasks {
			queue.Add(task)
		}
	}

	for kind := range g.options.watched() {
		informer, err := g.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("failed to watch %T: %w", kind, err)
		}

		handler := toolscache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, object any) { wake(object) }, DeleteFunc: wake}
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
	wake(nil)
	var workers sync.WaitGroup
	for range tasks {
		workers.Go(func() {
			for {
				task, shutdown := queue.Get()
				if shutdown {
					return
				}

				requeueAfter, err := tasks[task](ctx)
				retry(ctx, queue, task, requeueAfter, err)
				queue.Done(task)
			}
		})
	}

	workers.Wait()
	return <-ended
}

func retry(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], task string, requeueAfter time.Duration, err error) {
	logger := log.FromContext(ctx)
	switch {
	case ctx.Err() != nil:
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		// Another replica or OLM was faster.
		logger.V(1).Info("Retrying after a conflict", "error", err.Error())
		queue.AddRateLimited(task)
	case err != nil:
		logger.Error(err, "Failed to restore the webhooks, retrying", "task", task)
		queue.AddRateLimited(task)
	default:
		queue.Forget(task)
		if requeueAfter > 0 {
			queue.AddAfter(task, requeueAfter)
		}
	}
}

// watched returns the watched objects, by name unless OLM chooses the names.
func (o Options) watched() map[client.Object]cache.ByObject {
	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}

	mutating, validating := named(o.Mutating), named(o.Validating)
	if o.OLM {
		mutating = cache.ByObject{Transform: o.Endpoint.ownWebhooks}
		validating = mutating
	}

	objects := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{o.Namespace: {FieldSelector: named(o.Secret).Field}}},
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   mutating,
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: validating,
	}
	if o.CRD != "" {
		objects[&apiextensionsv1.CustomResourceDefinition{}] = named(o.CRD)
	}
	return objects
}

// reconcile restores all objects. It returns the time until the next one, or 0 to wait for an event.
func (g *Guard) reconcile(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()

	before := g.serving.Load()
	secret, err := g.secret(ctx)
	var next *served
	if err == nil {
		next, err = g.certificateIn(ctx, secret)
	}
	if err != nil && before == nil {
		return 0, err
	}
	if err != nil {
		// The operator keeps serving the last certificate, so its CA must stay trusted.
		return 0, errors.Join(err, g.restore(ctx, before.ca))
	}

	if g.options.CSV != "" {
		if err := g.adopt(ctx, secret); err != nil {
			return 0, err
		}
	}

	// Trust the CA before serving its certificate, so that no connection fails in between.
	if err := g.restore(ctx, next.ca); err != nil {
		return 0, err
	}

	requeueAfter := g.serve(ctx, before, next)
	g.ready.Store(true)
	if requeueAfter == 0 && !g.options.OLM {
		requeueAfter = time.Until(certificates.RenewAt(next.Leaf))
		if g.isOwn(secret) && certificates.Outdated(next.Leaf) != nil {
			requeueAfter = propagation
		} else if requeueAfter <= 0 {
			requeueAfter = renewalOfOthers
		}
	}

	return requeueAfter, nil
}
