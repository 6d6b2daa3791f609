// Package world runs the operator on the model of a cluster, on the virtual clock of
// testing/synctest. One goroutine serves all requests and delivers all events, one at a time, in an
// order that depends only on the seed. What the operator's goroutines do to each other is ordered,
// too (turns.go).
package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/controllers/nginxoperator"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/objectcache"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/pkg/manager"
	"github.com/example/nginx-operator/pkg/reference"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// Release has the settings that differ between releases of the operator.
type Release struct {
	Image         string
	ExporterImage string
	Fleet         fleet.Policy
}

// call is a pending request.
type call struct {
	*storage.Request
	answer chan reply
}

type reply struct {
	response *http.Response
	err      error
}

// process is a running operator.
type process struct {
	started time.Time
	// view is the resource version that the first lists of the process see, or 0 for the newest.
	view    int64
	release Release
	cancel  context.CancelFunc
	ended   chan error
	wake    chan struct{}
	watches []*storage.Watch
	// elected is closed when the caches are synced and the controllers start.
	elected <-chan struct{}
	// events and registry get the Events and the metrics of the process.
	events   *eventLog
	registry *prometheus.Registry
	// fleet has the report of the process on the rollout of its release.
	fleet *fleetReport
	// killed is closed when the process is killed.
	killed chan struct{}

	mu    sync.Mutex
	calls []*call
	// turns are the actions that wait until nothing else is in progress.
	turns []turn
	// readOnly is true if writes fail. dead is true if all requests fail.
	readOnly, dead bool
}

var errKilled = errors.New("the process was killed")

// knownTypes is the scheme of all processes. It never changes.
var knownTypes = scheme.New()

// start starts an operator. The caller must serve the requests of the process.
func start(release Release, view int64, listDelay time.Duration, log *eventLog) (*process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{
		started: time.Now(), view: view, release: release, cancel: cancel, ended: make(chan error, 1), wake: make(chan struct{}, 1),
		fleet: &fleetReport{}, events: log, registry: prometheus.NewRegistry(), killed: make(chan struct{}),
	}
	mgr, err := p.newManager(listDelay)
	if err != nil {
		cancel()
		return nil, err
	}
	p.elected = mgr.Elected()
	go func() { p.ended <- mgr.Start(ctx) }()
	return p, nil
}

// newManager returns a manager with the controller, set up like in main.
func (p *process) newManager(listDelay time.Duration) (ctrl.Manager, error) {
	cfg := storage.Config(&storage.Transport{Handle: p.handle})
	newInformer, err := objectcache.Informers(cfg, resolve.Indexes(), nil)
	if err != nil {
		return nil, err
	}
	cacheOptions := objectcache.CacheOptions()
	cacheOptions.NewInformer = func(
		from toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		return orderedInformer{newInformer(from, kind, resync, indexers), p, fmt.Sprintf("%T", kind)}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: knownTypes, Cache: cacheOptions, Logger: logr.Discard(),
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return objectcache.WithOptionalKinds(storage.Mapper()), nil
		},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("failed to make the manager: %w", err)
	}
	instances := objectcache.NewInstances(mgr.GetCache(), nil)
	counts := metrics.New(p.registry, instances.List)
	configMaps, secrets, err := reference.NewTrackers(cfg, mgr.GetHTTPClient(), mgr.GetAPIReader(), nil)
	if err != nil {
		return nil, err
	}
	cached, err := objectcache.Whole(cfg, mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	reconciler := &nginxoperator.Reconciler{
		Client:   cached,
		Applier:  nginxoperator.NewApplier(cached, mgr.GetAPIReader(), counts.ChildWritten),
		Recorder: p, Metrics: counts, ConfigMaps: configMaps, Secrets: secrets,
		Fleet:   fleet.New(p.release.Fleet),
		Release: operand.Release{Image: p.release.Image, ExporterImage: p.release.ExporterImage, Nameservers: []string{"10.96.0.10"}},
	}
	options := manager.ControllerOptions()
	options.NewQueue = p.ordered(options.NewQueue)
	unchanged := func(inner reconcile.Reconciler) reconcile.Reconciler { return inner }
	optionalKinds, err := objectcache.NewOptionalKinds(mgr, func(pending ctrl.Manager, missing map[string]string) error {
		reconciler.Missing = missing
		return reconciler.SetupWithManager(pending, options, unchanged)
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(optionalKinds); err != nil {
		return nil, fmt.Errorf("failed to add the controller: %w", err)
	}
	return mgr, mgr.Add(&fleet.Reporter{
		Gate: reconciler.Fleet, Names: slow(instances.Names, listDelay),
		SetCondition: p.fleet.set, Instances: metrics.NewFleet(p.registry),
		Log: logr.Discard(),
	})
}

// handle queues a request, and waits for its answer.
func (p *process) handle(request *storage.Request) (*http.Response, error) {
	waiting := &call{Request: request, answer: make(chan reply, 1)}
	p.mu.Lock()
	if p.dead || p.readOnly && request.IsWrite() {
		p.mu.Unlock()
		return nil, errKilled
	}
	p.calls = append(p.calls, waiting)
	p.mu.Unlock()
	p.wakeUp()
	select {
	case got := <-waiting.answer:
		return got.response, got.err
	case <-request.Done():
		p.drop(waiting)
		return nil, request.Err()
	}
}

// wakeUp ends a pause of the world.
func (p *process) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

func (p *process) drop(waiting *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = slices.DeleteFunc(p.calls, func(c *call) bool { return c == waiting })
}

// waiting returns the pending requests, in an order that does not depend on the scheduler.
func (p *process) waiting() []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := slices.Clone(p.calls)
	slices.SortStableFunc(out, func(a, b *call) int { return strings.Compare(a.Order(), b.Order()) })
	return out
}

// reply answers a request.
func (p *process) reply(to *call, response *http.Response) {
	p.drop(to)
	to.answer <- reply{response: response}
}

// end makes all requests fail from now on. If onlyWrites is set, only writes fail.
func (p *process) end(onlyWrites bool) {
	p.mu.Lock()
	p.readOnly, p.dead = true, !onlyWrites
	var failed []*call
	p.calls = slices.DeleteFunc(p.calls, func(c *call) bool {
		fails := !onlyWrites || c.IsWrite()
		if fails {
			failed = append(failed, c)
		}
		return fails
	})
	p.mu.Unlock()
	for _, waiting := range failed {
		waiting.answer <- reply{err: errKilled}
	}
}

// kill ends the process. Pending writes never happen. If a manager is stopped before its caches are
// synced, it waits for them in a busy loop, so kill answers reads until then.
func (p *process) kill(store *storage.Store) {
	close(p.killed)
	p.end(true)
	for !p.isElected() {
		synctest.Wait()
		for _, waiting := range p.waiting() {
			p.reply(waiting, store.Serve(waiting.Request))
		}
		time.Sleep(latency)
	}
	p.end(false)
	p.cancel()
	<-p.ended
}

func (p *process) isElected() bool { return isClosed(p.elected) }

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// hasEnded reports whether the process has ended because the served kinds have changed. It panics
// if the process has ended for another reason.
func (p *process) hasEnded() bool {
	if p == nil {
		return false
	}
	select {
	case err := <-p.ended:
		if !errors.Is(err, manager.ErrRestart) {
			panic(err)
		}
		return true
	default:
		return false
	}
}
