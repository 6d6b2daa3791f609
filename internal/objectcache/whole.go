package objectcache

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/codec"
)

// maxWhole is the maximum number of objects of a list that are read from the API server. Few of the
// operator's own children are so large, and any client can create objects with our labels.
const maxWhole = 32

// whole is a client that reads an object from the API server if the cache has only a part of it.
type whole struct {
	client.Client
	live    client.Reader
	lenient *lenientClient
}

// Whole returns a client of cached objects that reads an object from the reader of the API server
// if the cache has only a part of it (cached.IsPart). The result has the same fields as other
// objects of the cache. A list of NginxOperators or Deployments can have parts.
func Whole(cfg *rest.Config, cached client.Client, live client.Reader) (client.Client, error) {
	lenient, err := newLenientClient(cfg)
	if err != nil {
		return nil, err
	}
	return whole{cached, live, lenient}, nil
}

// Get implements client.Reader.
func (w whole) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := w.Client.Get(ctx, key, object, options...); err != nil || !cached.IsPart(object) {
		return err
	}
	return w.complete(ctx, key, object)
}

// List implements client.Reader.
func (w whole) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := w.Client.List(ctx, list, options...); err != nil {
		return err
	}
	switch list.(type) {
	case *v1alpha2.NginxOperatorList, *appsv1.DeploymentList:
		return nil
	}

	read := 0
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok || !cached.IsPart(object) {
			return nil
		}

		if read++; read > maxWhole {
			return fmt.Errorf("more than %d objects of type %T are too large for the cache, for example %q: "+
				"delete the objects that another client created",
				maxWhole, object, object.GetName())
		}

		err := w.complete(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil // the event of its deletion follows
		}
		return err
	})
}

// complete replaces a part with the object from the API server, in the form of the cache.
func (w whole) complete(ctx context.Context, key client.ObjectKey, part client.Object) error {
	read, err := w.read(ctx, key, part)
	if err != nil {
		return err
	}
	if _, err := slim(read); err != nil {
		return err
	}

	reflect.ValueOf(part).Elem().Set(reflect.ValueOf(read).Elem())
	return nil
}

// read returns an object of the API server.
func (w whole) read(ctx context.Context, key client.ObjectKey, part client.Object) (client.Object, error) {
	if _, ok := part.(*v1alpha2.NginxOperator); ok {
		raw, err := w.lenient.Get().Namespace(key.Namespace).Resource("nginxoperators").Name(key.Name).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		return codec.ReadAlone(raw), nil
	}

	// The operator has no permission to get Pods and ReplicaSets.
	kind, err := apiutil.GVKForObject(part, w.Scheme())
	if err != nil {
		return nil, fmt.Errorf("failed to find the kind of %T: %w", part, err)
	}

	created, err := w.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("failed to create a list of %s: %w", kind.Kind, err)
	}

	list := created.(client.ObjectList)
	if err := w.live.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name}); err != nil {
		return nil, err
	}

	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		return nil, cmp.Or(err, error(apierrors.NewNotFound(kind.GroupVersion().WithResource(kind.Kind).GroupResource(), key.Name)))
	}

	return items[0].(client.Object), nil
}
