// Package guard keeps the operator's webhooks working through everything that replaces what they need: OLM, which
// replaces the CustomResourceDefinition, the ClusterServiceVersion and the certificate during an upgrade, and kubectl
// apply. It runs in every replica, whether it leads or not, and beside the manager: the manager's cache reads converted
// objects, so it cannot be filled before the guard has done its work once.
//
// docs/adr/0012-lifecycle-guard.md says what happens without it.
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

// Names of what config/ installs and the guard looks after.
const (
	// MutatingName and ValidatingName are the names of the webhook configurations outside OLM, which makes its own.
	MutatingName   = "nginx-operator-mutating-webhook-configuration"
	ValidatingName = "nginx-operator-validating-webhook-configuration"
)

const (
	// propagation is the time that API servers get to learn of another CA before a certificate of it is used.
	propagation = 3 * time.Second
	// attempt bounds one reconcile.
	attempt = 10 * time.Second
	// firstRetry and lastRetry bound the back-off of a reconcile that failed.
	firstRetry = 20 * time.Millisecond
	lastRetry  = 10 * time.Second
	// renewalOfOthers is how often a certificate is looked at that somebody else should have renewed.
	renewalOfOthers = time.Minute
	// writesAtOnce and writesPerSecond limit what the guard writes. It has to be fast, but somebody who undoes each of its
	// writes must not make it write without end.
	writesAtOnce    = 30
	writesPerSecond = 1
)

// Options say what the guard looks after.
type Options struct {
	// Namespace is the operator's own.
	Namespace string
	// Secret is the name of the Secret with the serving certificate.
	Secret string
	// Endpoint is where the API server finds the webhooks, and ConversionPath the path of the conversion there.
	Endpoint       Endpoint
	ConversionPath string
	// CRD is the name of the CustomResourceDefinition whose conversion is kept, empty for an operator that converts
	// nothing. Mutating and Validating are the names of the webhook configurations outside OLM.
	CRD, Mutating, Validating string
	// OLM: OLM has the certificate and the webhook configurations made. CSV is the name of the own ClusterServiceVersion, empty without
	// OLM v0.
	OLM bool
	CSV string
	// Restored is called after each restore, with the kind of what was restored.
	Restored func(kind string)
}

// Guard is made by New.
type Guard struct {
	options Options
	// cache holds the few objects, each watched by its name; reader is the same to whoever only reads, client writes them.
	cache  cache.Cache
	reader client.Reader
	client client.Client
	writes flowcontrol.RateLimiter
	// serving is the certificate that the webhook server presents.
	serving atomic.Pointer[tls.Certificate]
	// CA is that of the serving certificate; next is the certificate that follows it, known since nextSince. Only
	// the one worker touches them.
	ca        []byte
	next      *tls.Certificate
	nextSince time.Time
	// trusted is the bundle of CAs that the CRD has, for admission.
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
		return nil, fmt.Errorf("failed to make the guard's cache: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("failed to make the guard's client: %w", err)
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

// GetCertificate is for the configuration of the webhook server.
func (g *Guard) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := g.serving.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// Ready returns an error until all that the guard looks after was right once.
func (g *Guard) Ready() error {
	if !g.ready.Load() {
		return errors.New("the certificate or the conversion of the API is not there yet")
	}
	return nil
}

// Readiness returns a check that passes when the webhooks answer, and all that the guard looks after was right once. It is handed
// the check of the webhook server.
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
		again, err := g.reconcile(ctx)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			// Another replica or OLM was faster.
			logger.V(1).Info("Looking again after a conflict", "conflict", err.Error())
			queue.AddRateLimited(key)
		case err != nil:
			logger.Error(err, "Failed to keep the webhooks working, trying again")
			queue.AddRateLimited(key)
		default:
			queue.Forget(key)
			if again > 0 {
				queue.AddAfter(key, again)
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

// reconcile brings everything to what it has to be, and returns when to look again without an event, 0 for never.
func (g *Guard) reconcile(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	secret, certificate, ca, err := g.given(ctx)
	if err != nil {
		if g.ca == nil {
			return 0, err
		}
		// What is served goes on without the Secret, and so does what trusts it.
		_, restoreErr := g.restore(ctx, g.ca)
		return 0, errors.Join(err, restoreErr)
	}
	if g.options.CSV != "" {
		if err := g.adopt(ctx, secret); err != nil {
			return 0, err
		}
	}
	// The CA is trusted first and its certificate used after, so that no connection meets one without the other.
	overlap, err := g.restore(ctx, ca)
	if err != nil {
		return 0, err
	}
	again := g.serve(certificate, ca, overlap)
	g.ready.Store(true)
	if again == 0 && !g.options.OLM {
		again = time.Until(certificates.RenewAt(certificate.Leaf))
		if again <= 0 {
			again = renewalOfOthers
		}
	}
	return again, nil
}

// serve uses a certificate, and returns how long to wait with that: API servers get some time to learn of its CA,
// as long as they trust the certificate before it as well.
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
