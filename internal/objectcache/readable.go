package objectcache

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/pkg/lists"
)

// lenient is an NginxOperator whose decoding never fails (codec.ReadAlone).
type lenient struct{ v1alpha2.NginxOperator }

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient) UnmarshalJSON(raw []byte) error {
	l.NginxOperator = *codec.ReadAlone(raw)
	return nil
}

// lenientClient is a client that decodes NginxOperators into lenient, and lists item by item
// (pkg/lists).
type lenientClient struct {
	*rest.RESTClient
	parameters runtime.ParameterCodec
}

func newLenientClient(cfg *rest.Config) (*lenientClient, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1alpha2.GroupVersion.WithKind("NginxOperator"), &lenient{})
	scheme.AddKnownTypeWithName(v1alpha2.GroupVersion.WithKind("NginxOperatorList"), &v1alpha2.NginxOperatorList{})
	metav1.AddToGroupVersion(scheme, v1alpha2.GroupVersion)

	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &v1alpha2.GroupVersion
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.Wrap(lists.Wrap)
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("failed to create the client that decodes NginxOperators one by one: %w", err)
	}

	return &lenientClient{client, runtime.NewParameterCodec(scheme)}, nil
}

// listWatch lists and watches the NginxOperators of the informer's namespace.
func (c *lenientClient) listWatch(i *informer) *toolscache.ListWatch {
	request := func(options *metav1.ListOptions) *rest.Request {
		return c.Get().NamespaceIfScoped(i.namespace, i.namespace != "").Resource("nginxoperators").
			VersionedParams(options, c.parameters)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha2.NginxOperatorList{}
			return list, request(&options).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks = true, true
			events, err := request(&options).Watch(ctx)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				// The object of an error is a Status.
				if object, ok := event.Object.(*lenient); ok {
					event.Object = &object.NginxOperator
				}
				return event, true
			}), nil
		},
	}
}
