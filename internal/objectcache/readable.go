package objectcache

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	scheme := newLenientScheme()
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &v1alpha2.GroupVersion
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = newDirectly(scheme)
	cfg.Wrap(lists.Wrap)
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("failed to make the client that reads objects one by one: %w", err)
	}
	return &lenientClient{client, runtime.NewParameterCodec(scheme)}, nil
}

func newLenientScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1alpha2.GroupVersion.WithKind("NginxOperator"), &lenient{})
	scheme.AddKnownTypeWithName(v1alpha2.GroupVersion.WithKind("NginxOperatorList"), &v1alpha2.NginxOperatorList{})
	metav1.AddToGroupVersion(scheme, v1alpha2.GroupVersion)
	return scheme
}

func newDirectly(scheme *runtime.Scheme) directly {
	return directly{serializer.NewCodecFactory(scheme).WithoutConversion()}
}

// directly is a serializer that decodes an object of a watch without an earlier search for its
// kind. The search and the validation of the usual serializer take half of the time.
type directly struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (d directly) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return directDecoder{d.NegotiatedSerializer.DecoderToVersion(decoder, version)}
}

type directDecoder struct{ runtime.Decoder }

// beginning is the beginning of each NginxOperator that an API server sends: it sorts the fields of
// custom resources.
var beginning = []byte(`{"apiVersion":"` + v1alpha2.GroupVersion.String() + `","kind":"NginxOperator",`)

// Decode implements runtime.Decoder. It decodes anything else, for example the Status of an error,
// in the usual way.
func (d directDecoder) Decode(
	raw []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil || !bytes.HasPrefix(raw, beginning) {
		return d.Decoder.Decode(raw, defaults, into)
	}
	kind := v1alpha2.GroupVersion.WithKind("NginxOperator")
	return &lenient{*codec.ReadAlone(raw)}, &kind, nil
}

// oneByOne lists and watches NginxOperators.
type oneByOne struct {
	source *lenientClient
	// namespace is the namespace of the objects, or "" for all namespaces.
	namespace string
}

func (o *oneByOne) listWatch() *toolscache.ListWatch {
	ask := func(options *metav1.ListOptions) *rest.Request {
		return o.source.Get().NamespaceIfScoped(o.namespace, o.namespace != "").Resource("nginxoperators").
			VersionedParams(options, o.source.parameters)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha2.NginxOperatorList{}
			return list, ask(&options).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks = true, true
			events, err := ask(&options).Watch(ctx)
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

// keepUnreadable restores the mark of an unreadable object, which the inner transform removes with
// the annotations.
func keepUnreadable(transform toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, ok := in.(*v1alpha2.NginxOperator)
		if !ok {
			return transform(in)
		}
		why, unreadable := codec.Unreadable(object)
		out, err := transform(in)
		if unreadable {
			codec.MarkUnreadable(object, why)
		}
		return out, err
	}
}
