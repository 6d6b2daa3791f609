package optional

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// routed is a client that hands on what is about some kinds to clients of their own.
type routed struct {
	client.Client
	apis map[schema.GroupVersionKind]*API
}

// NewClient returns a client that reads single objects of these kinds, and creates, patches and deletes them, as it does all others, and
// returns a meta.NoKindMatchError while they are not served. Everything else the client for all others does.
func NewClient(others client.Client, apis ...*API) client.Client {
	out := &routed{Client: others, apis: map[schema.GroupVersionKind]*API{}}
	for _, api := range apis {
		out.apis[api.options.Kind] = api
	}
	return out
}

// Get implements client.Reader.
func (r *routed) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return r.with(ctx, object, func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, object, options...) })
}

// Create implements client.Writer.
func (r *routed) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return r.with(ctx, object, func(ctx context.Context, c client.Client) error { return c.Create(ctx, object, options...) })
}

// Patch implements client.Writer.
func (r *routed) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return r.with(ctx, object, func(ctx context.Context, c client.Client) error { return c.Patch(ctx, object, patch, options...) })
}

// Delete implements client.Writer.
func (r *routed) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return r.with(ctx, object, func(ctx context.Context, c client.Client) error { return c.Delete(ctx, object, options...) })
}

// isUnserved reports whether the API server says that it does not serve a kind any more, before its CustomResourceDefinition is seen to go:
// it does not know the path, or creates nothing, which it says in words only (apiextensions-apiserver,
// pkg/apiserver/customresource_handler.go).
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "custom resource definition is terminating")
}

// with calls what is to be done with the client for an object. Where its kind ceases to be served meanwhile, the call ends, for what it
// waits for will not come.
func (r *routed) with(ctx context.Context, object runtime.Object, do func(context.Context, client.Client) error) error {
	kind, err := r.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Errorf("failed to find the kind of a %T: %w", object, err)
	}
	api, found := r.apis[kind]
	if !found {
		return do(ctx, r.Client)
	}
	now := api.current()
	if now == nil {
		return api.noMatch()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(now.ended, cancel)()
	if err := do(ctx, now.client); err != nil {
		if now.ended.Err() != nil || isUnserved(err) {
			return api.noMatch()
		}
		return err
	}
	return nil
}
