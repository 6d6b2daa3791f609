package operatormanager

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/lists"
)

// pageSize is the page size of a list after a list that did not end in time.
const pageSize = 500

// lister lists objects in their packed form. It has at most one whole object at a time. A watch needs
// no such help: the reflector transforms each event before it stores it.
type lister struct {
	inner toolscache.ListerWatcherWithContext
	kind  reflect.Type
	// pack returns the packed form of an object.
	pack func(any) (any, error)
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
	out := &internalversion.List{}
	add := func(object runtime.Object) error {
		stored, err := l.pack(object)
		if err != nil {
			return err
		}
		item, ok := stored.(runtime.Object)
		if !ok {
			return fmt.Errorf("a list has a %T", stored)
		}
		out.Items = append(out.Items, item)
		return nil
	}
	list, err := l.inner.ListWithContext(lists.WithItems(ctx, lists.Items{
		Reset: func() { out.Items = nil },
		Each: func(raw []byte, isJSON bool) error {
			object, err := l.decode(raw, isJSON)
			if err != nil {
				return err
			}
			return add(object)
		},
	}), options)
	if err != nil {
		l.paged = l.paged || errors.Is(err, lists.ErrIncomplete)
		return nil, err
	}
	if err := meta.EachListItem(list, add); err != nil { // without the transport of internal/lists
		return nil, fmt.Errorf("failed to read a list: %w", err)
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("failed to read the metadata of a list: %w", err)
	}
	out.ResourceVersion, out.Continue = of.GetResourceVersion(), of.GetContinue()
	return out, nil
}

// decode decodes an item.
func (l *lister) decode(raw []byte, isJSON bool) (client.Object, error) {
	if l.kind == reflect.TypeFor[v1alpha2.NginxOperator]() {
		return bounds.ReadAlone(raw), nil
	}
	out := reflect.New(l.kind).Interface().(client.Object)
	if isJSON {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, out); err != nil {
			return nil, err
		}
		out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		return out, nil
	}
	builtIn, ok := out.(message)
	if !ok {
		return nil, fmt.Errorf("a %T has no protocol buffers", out)
	}
	return out, builtIn.Unmarshal(raw)
}
