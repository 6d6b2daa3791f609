package optional

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// startTimeout bounds the time that a controller waits for its optional kinds when it starts. An
// optional kind that cannot be listed must not block the reconciles of all objects.
const startTimeout = 30 * time.Second

// Users returns a request for every object that uses the kind.
type Users func(ctx context.Context) []reconcile.Request

// Source returns the source of a controller for the kind. It sends requests for the events of the
// kind's objects, and one for each user when the kind becomes served or unserved.
func (a *API) Source(users Users, events handler.EventHandler, predicates ...predicate.Predicate) source.SyncingSource {
	return &follower{api: a, users: users, events: events, predicates: predicates}
}

// follower is the source. Only its one goroutine uses the fields below queue.
type follower struct {
	api        *API
	users      Users
	events     handler.EventHandler
	predicates []predicate.Predicate

	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// uid is the UID of the CustomResourceDefinition whose objects are watched until stop is
	// called, or "" if there is none.
	uid  types.UID
	stop context.CancelFunc
}

// String names the source in logs.
func (f *follower) String() string { return "optional kind source: " + f.api.options.Kind.String() }

// Start implements source.Source.
func (f *follower) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f.queue, f.stop = queue, func() {}
	definitions, err := f.api.newDefinitions()
	if err != nil {
		return err
	}
	informer, err := definitions.GetInformer(ctx, &apiextensionsv1.CustomResourceDefinition{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("failed to watch CustomResourceDefinition %s: %w", f.api.crd(), err)
	}
	changed := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default: // a wake-up is pending
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake,
	}); err != nil {
		return fmt.Errorf("failed to watch CustomResourceDefinition %s: %w", f.api.crd(), err)
	}
	go func() {
		if err := definitions.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Failed to watch a CustomResourceDefinition", "name", f.api.crd())
		}
	}()
	go func() {
		if !definitions.WaitForCacheSync(ctx) {
			return
		}
		for {
			f.sync(ctx, definitions)
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// WaitForSync implements source.SyncingSource.
func (f *follower) WaitForSync(ctx context.Context) error {
	select {
	case <-f.api.decided:
	case <-ctx.Done():
	case <-time.After(startTimeout):
		log.FromContext(ctx).Info("Starting without an optional kind", "kind", f.api.options.Kind.Kind, "problem", f.api.Problem())
	}
	return nil
}

// newDefinitions returns a cache of the single CustomResourceDefinition.
func (a *API) newDefinitions() (cache.Cache, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("failed to register CustomResourceDefinitions: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	return cache.New(a.config, cache.Options{
		HTTPClient: a.http, Scheme: scheme, Mapper: mapper,
		ByObject: map[client.Object]cache.ByObject{&apiextensionsv1.CustomResourceDefinition{}: {
			Field: fields.OneTermEqualSelector("metadata.name", a.crd()), Transform: stripCRD, UnsafeDisableDeepCopy: ptr.To(true),
		}},
	})
}

// sync starts or stops the watch of the objects, depending on the CustomResourceDefinition.
func (f *follower) sync(ctx context.Context, definitions client.Reader) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := definitions.Get(ctx, client.ObjectKey{Name: f.api.crd()}, crd)
	if apierrors.IsNotFound(err) {
		crd = nil
	} else if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read a CustomResourceDefinition from the cache", "name", f.api.crd())
		return
	}
	problem := problemOf(crd, f.api.crd(), f.api.options.Kind.Version)
	if problem == "" && f.uid == crd.UID {
		return
	}
	f.stop()
	f.uid, f.stop = "", func() {}
	if problem != "" {
		f.update(ctx, nil, problem)
		return
	}
	f.uid = crd.UID
	if err := f.watch(ctx); err != nil {
		log.FromContext(ctx).Error(err, "Failed to watch the objects of an optional kind", "kind", f.api.options.Kind.Kind)
	}
}

// watch fills a cache of the objects. Clients read from it after it is filled. Until then, which
// takes a moment, the users are not reconciled.
func (f *follower) watch(ctx context.Context) error {
	ctx, f.stop = context.WithCancel(ctx)
	f.api.set(ctx, nil, fmt.Sprintf("the objects of CustomResourceDefinition %q cannot be listed yet", f.api.crd()))
	object, err := f.api.newObject()
	if err != nil {
		return err
	}
	objects, reader, err := f.api.newCache(object)
	if err != nil {
		return err
	}
	events := source.Kind(objects, object, f.events, f.predicates...)
	if err := events.Start(ctx, f.queue); err != nil {
		return fmt.Errorf("failed to watch %s: %w", f.api.options.Kind.Kind, err)
	}
	go func() {
		if err := objects.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Failed to watch an optional kind", "kind", f.api.options.Kind.Kind)
		}
	}()
	go func() {
		if err := events.WaitForSync(ctx); err == nil {
			f.update(ctx, &period{ctx, reader}, "")
		}
	}()
	return nil
}

// update starts a period or records the problem, and reconciles the users if the state changed. The
// first time, the controller reconciles all objects itself.
func (f *follower) update(ctx context.Context, now *period, problem string) {
	if !f.api.set(ctx, now, problem) {
		return
	}
	if problem == "" {
		log.FromContext(ctx).Info("Watching an optional kind", "kind", f.api.options.Kind.Kind)
	} else {
		log.FromContext(ctx).Info("Continuing without an optional kind", "kind", f.api.options.Kind.Kind, "problem", problem)
	}
	isFirst := false
	f.api.decide.Do(func() {
		isFirst = true
		close(f.api.decided)
	})
	if isFirst {
		return
	}
	for _, request := range f.users(ctx) {
		f.queue.Add(request)
	}
}
