package lists

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Collect sends a list request, and returns a list of the objects that keep returns for the items.
// It has at most one whole item at a time if the client of the request has the transport of Wrap.
// decode returns an item of the response (Decode). Its argument is valid until it returns.
func Collect(
	ctx context.Context, request func(ctx context.Context) (runtime.Object, error),
	decode func(raw []byte, isJSON bool) (runtime.Object, error), keep func(runtime.Object) (runtime.Object, error),
) (*internalversion.List, error) {
	out := &internalversion.List{}
	add := func(item runtime.Object) error {
		kept, err := keep(item)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, kept)
		return nil
	}
	list, err := request(withItems(ctx, items{
		reset: func() { out.Items = nil },
		each: func(raw []byte, isJSON bool) error {
			item, err := decode(raw, isJSON)
			if err != nil {
				return err
			}
			return add(item)
		},
	}))
	if err != nil {
		return nil, err
	}
	if err := meta.EachListItem(list, add); err != nil { // without the transport
		return nil, fmt.Errorf("failed to read a list: %w", err)
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("failed to read the metadata of a list: %w", err)
	}
	out.ResourceVersion, out.Continue = of.GetResourceVersion(), of.GetContinue()
	return out, nil
}

// Decode decodes an item into an object: a protocol buffer if isJSON is false.
func Decode(raw []byte, isJSON bool, into runtime.Object) error {
	if isJSON {
		return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
	}
	message, ok := into.(interface{ Unmarshal(raw []byte) error })
	if !ok {
		return fmt.Errorf("a %T has no protocol buffers", into)
	}
	return message.Unmarshal(raw)
}
