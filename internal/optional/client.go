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

// routed is a client that sends requests about some kinds to separate clients.
type routed struct {
	client.Client
	apis map[schema.GroupVersionKind]*API
}

// NewClient returns a client for optional kinds and all others. It can get, create, patch, and
// delete single objects of the optional kinds, and returns a meta.NoKindMatchError while a kind is
// not served. The client for all other kinds handles everything else.
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

// isUnserved reports whether an error of the API server means that it no longer serves a kind,
// before the operator sees the deletion of its CustomResourceDefinition. Either the API server does
// not know the path, or it rejects a create with an error that only the message identifies
// (apiextensions-apiserver, pkg/apiserver/customresource_handler.go).
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "custom resource definition is terminating")
}

// with calls the function with the client for an object. If its kind is no longer served, the call
// ends, because its result would never arrive.
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
