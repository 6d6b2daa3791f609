package objectcache

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/codec"
)

// The cache has only a part of a large object, so that it costs no more memory than a small one. A
// reconcile reads such an object from the API server (Whole).

const (
	// maxCached bounds an object in bytes. With its key and indexes, it takes at most 4 KiB.
	maxCached = 3 << 10
	// maxWithPorts is the maximum size in bytes of a Pod and of a ReplicaSet. It is enough for 33
	// ports, because 1000 Pods are too many to read them for each reconcile.
	maxWithPorts = 6 << 10
	// maxKind bounds the API version and the kind of the owner in a part.
	maxKind = 64
)

// partSeed is random, so no client can create two contents with the same hash.
var partSeed = maphash.MakeSeed()

// bounded returns the transform of an informer. It narrows an object, and returns a copy, or its
// part if it is too large. The slices of a copy have no larger arrays, unlike those of a decoder.
func (r References) bounded(narrow toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if object, ok := in.(client.Object); ok && cached.IsPart(object) {
			return in, nil // an informer may transform an object twice
		}

		narrowed, err := narrow(in)
		if err != nil {
			return nil, err
		}

		object, ok := narrowed.(client.Object)
		if !ok {
			return narrowed, nil // a tombstone
		}
		if sizeOf(reflect.ValueOf(object))+r.size(object) <= maxSizeOf(object) {
			return object.DeepCopyObject(), nil
		}

		part, err := partOf(object)
		if err != nil {
			return nil, fmt.Errorf("failed to encode %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
		}

		r.keepIn(part, object)
		return part, nil
	}
}

func maxSizeOf(object client.Object) int {
	switch object.(type) {
	case *corev1.Pod, *appsv1.ReplicaSet:
		return maxWithPorts
	}
	return maxCached
}

func partOf(object client.Object) (client.Object, error) {
	if instance, ok := object.(*v1alpha2.NginxOperator); ok {
		return partOfInstance(instance), nil
	}

	content := object.DeepCopyObject().(client.Object)
	content.SetResourceVersion("") // each write changes it
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}

	out := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	meta := metaOf(out)
	*meta = *metaOf(object)
	meta.Annotations = map[string]string{cached.AnnotationPart: fmt.Sprintf("%x", maphash.Bytes(partSeed, raw))}
	if owners := meta.OwnerReferences; len(owners) > 0 && max(len(owners[0].APIVersion), len(owners[0].Kind)) > maxKind {
		meta.OwnerReferences = nil
	}

	return out, nil
}

// metaOf returns the metadata of an object, which every type of the cache embeds.
func metaOf(object client.Object) *metav1.ObjectMeta {
	return object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

func partOfInstance(object *v1alpha2.NginxOperator) *v1alpha2.NginxOperator {
	out := &v1alpha2.NginxOperator{ObjectMeta: *object.ObjectMeta.DeepCopy()}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, cached.AnnotationPart, cached.SpecHash(object)+" "+cached.StatusHash(object))
	out.GenerateName = ""
	out.Spec.Replicas = object.Spec.Replicas
	out.Status = cached.KnownStatus(&object.Status)
	return out
}

// locationType is the type that a time refers to. All times share one or two of them.
var locationType = reflect.TypeFor[time.Location]()

// sizeOf returns the bytes that a value refers to and does not share, without its own size.
func sizeOf(value reflect.Value) int {
	size := 0
	switch value.Kind() {
	case reflect.String:
		size = value.Len()
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() && value.Elem().Type() != locationType {
			size = int(value.Elem().Type().Size()) + sizeOf(value.Elem())
		}
	case reflect.Slice:
		size = value.Len() * int(value.Type().Elem().Size())
		for i := range value.Len() {
			size += sizeOf(value.Index(i))
		}
	case reflect.Map:
		// An entry takes up to twice its size, because a map grows by doubling.
		size = 2 * value.Len() * int(value.Type().Key().Size()+value.Type().Elem().Size())
		for entry := value.MapRange(); entry.Next(); {
			size += sizeOf(entry.Key()) + sizeOf(entry.Value())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			size += sizeOf(value.Field(i))
		}
	}

	return size
}

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
