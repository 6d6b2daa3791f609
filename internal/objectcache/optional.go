package objectcache

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/pkg/manager"
)

var optionalKinds = []schema.GroupVersionKind{
	schema.GroupVersion(gatewayv1.GroupVersion).WithKind("HTTPRoute"),
	monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind),
	monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind),
}

func crdOf(kind schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource().String()
}

// WithOptionalKinds returns a mapper for a cache, which cannot have an unknown kind.
func WithOptionalKinds(others meta.RESTMapper) meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	for _, kind := range optionalKinds {
		known.Add(kind, meta.RESTScopeNamespace)
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, others}}
}

// NewMapper returns the mapper of the manager.
func NewMapper(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	return WithOptionalKinds(dynamic), err
}

// OptionalKinds is a runnable of the leader. After the election, it looks which optional kinds the
// API server serves. If that changes later, it ends the process, and the next leader looks again.
// For the reasons, see docs/adr/0059-optional-kinds-at-the-election.md.
type OptionalKinds struct {
	// Settle is the time without events after which a change counts.
	Settle time.Duration
	// MinTerm is the minimum time from the election to the end of the process. With two replicas
	// and five minutes, each container runs for ten minutes, after which a kubelet resets its
	// back-off, so one of them always answers conversions.
	MinTerm time.Duration

	mgr      ctrl.Manager
	metadata metadata.Interface
	setup    Setup
}

// Setup adds the controllers to a manager, which starts them after Setup has returned. missing has
// the reasons why optional kinds are not served, by kind.
type Setup func(mgr ctrl.Manager, missing map[string]string) error

// NewOptionalKinds returns a runnable for the manager.
func NewOptionalKinds(mgr ctrl.Manager, setup Setup) (*OptionalKinds, error) {
	watcher, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("failed to create the metadata client: %w", err)
	}
	return &OptionalKinds{Settle: 10 * time.Second, MinTerm: 5 * time.Minute, mgr: mgr, metadata: watcher, setup: setup}, nil
}

// Start implements manager.Runnable. It returns manager.ErrRestart if the kinds have changed.
func (o *OptionalKinds) Start(ctx context.Context) error {
	earliest := time.Now().Add(o.MinTerm)
	missing, err := o.missing(ctx)
	if err != nil {
		return err
	}

	pending := &pendingManager{Manager: o.mgr}
	if err := o.setup(pending, missing); err != nil {
		return err
	}
	if err := pending.start(); err != nil {
		return err
	}

	changed, timer := o.watch(ctx), time.NewTimer(o.MinTerm)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			timer.Reset(max(o.Settle, time.Until(earliest)))
			continue
		case <-timer.C:
		}
		latest, err := o.missing(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to read which optional kinds the cluster serves, retrying")
			timer.Reset(o.Settle)
		} else if !maps.Equal(missing, latest) {
			log.FromContext(ctx).Info("Ending the process, because the optional kinds that the cluster serves have changed",
				"missingAtElection", missing, "missing", latest)
			return fmt.Errorf("the optional kinds that the cluster serves have changed: %w", manager.ErrRestart)
		}
	}
}

func (o *OptionalKinds) watch(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default: // a wake-up is pending
		}
	}

	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, latest any) { wake(latest) }, DeleteFunc: wake}
	crds := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	for _, kind := range optionalKinds {
		named := func(options *metav1.ListOptions) { options.FieldSelector = metav1.ObjectNameField + "=" + crdOf(kind) }
		informer := metadatainformer.NewFilteredMetadataInformer(o.metadata, crds, metav1.NamespaceAll, 0, nil, named).Informer()
		_, _ = informer.AddEventHandler(handler) // it has not started
		go informer.RunWithContext(ctx)
	}

	return changed
}

func (o *OptionalKinds) missing(ctx context.Context) (map[string]string, error) {
	missing := map[string]string{}
	for _, kind := range optionalKinds {
		name, list := crdOf(kind), &apiextensionsv1.CustomResourceDefinitionList{}
		if err := o.mgr.GetAPIReader().List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
			return nil, fmt.Errorf("failed to read CustomResourceDefinition %s: %w", name, err)
		}
		if problem := problemOf(list.Items, name, kind.Version); problem != "" {
			missing[kind.Kind] = problem
		}
	}
	return missing, nil
}

// problemOf returns the reason why a CustomResourceDefinition serves no objects at a version, or ""
// if it does. The list is empty if the CustomResourceDefinition does not exist.
func problemOf(crds []apiextensionsv1.CustomResourceDefinition, name, version string) string {
	serves := func(of apiextensionsv1.CustomResourceDefinitionVersion) bool { return of.Name == version && of.Served }
	switch {
	case len(crds) == 0, !crds[0].DeletionTimestamp.IsZero(), !apihelpers.IsCRDConditionTrue(&crds[0], apiextensionsv1.Established):
		// Each change of the message would write the status of every user, so all three share it.
		return fmt.Sprintf("CustomResourceDefinition %q does not exist, is not established, or is being deleted", name)
	case !slices.ContainsFunc(crds[0].Spec.Versions, serves):
		return fmt.Sprintf("CustomResourceDefinition %q does not serve version %s", name, version)
	}
	return ""
}
