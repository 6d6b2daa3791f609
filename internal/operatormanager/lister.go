package operatormanager

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/lists"
)

// pageSize is the page size of a list after a list that did not end in time.
const pageSize = 500

// lister lists objects, and transforms each before it decodes the next one. A watch needs no such
// help: the informer transforms each event before it stores it.
type lister struct {
	inner toolscache.ListerWatcherWithContext
	kind  reflect.Type
	transform toolscache.TransformFunc
	// paged is true if a list was incomplete. An API server ends a list after a minute.
	paged bool
}

func (l *lister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if l.paged && options.Continue == "" {
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	if l.paged && options.Limit == 0 {
		options.Limit = pageSize
	}
	out, err := lists.Collect(ctx, func(ctx context.Context) (runtime.Object, error) {
		return l.inner.ListWithContext(ctx, options)
	}, l.decode, l.keep)
	if err != nil {
		l.paged = l.paged || errors.Is(err, lists.ErrIncomplete)
		return nil, err
	}
	return out, nil
}

// keep returns the transformed form of an item.
func (l *lister) keep(item runtime.Object) (runtime.Object, error) {
	transformed, err := l.transform(item)
	if err != nil {
		return nil, err
	}
	object, ok := transformed.(client.Object)
	if !ok {
		return nil, fmt.Errorf("a list has a %T", transformed)
	}
	return object, nil
}

// decode decodes an item.
func (l *lister) decode(raw []byte, isJSON bool) (runtime.Object, error) {
	if l.kind == reflect.TypeFor[v1alpha2.NginxOperator]() {
		return bounds.ReadAlone(raw), nil
	}
	out := reflect.New(l.kind).Interface().(client.Object)
	if err := lists.Decode(raw, isJSON, out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // those of a custom resource
	return out, nil
}
