package storage

import (
	"encoding/json"
	"maps"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// Patch applies a patch to an object or its subresource.
func (s *Store) Patch(key Key, kind types.PatchType, patch []byte, subresource string) (*Version, error) {
	live := s.live[key]
	if live == nil {
		return nil, apierrors.NewNotFound(key.Resource.GroupResource(), key.Name)
	}
	patched, err := patchOf(key, kind, live.Raw, patch)
	if err != nil {
		return nil, err
	}
	if subresource == "scale" {
		return nil, apierrors.NewBadRequest("the model scales by Update")
	}
	return s.replace(live, decode(patched), subresource)
}

func patchOf(key Key, kind types.PatchType, live, patch []byte) ([]byte, error) {
	switch kind {
	case types.MergePatchType:
		patched, err := jsonpatch.MergePatch(live, patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patched, nil
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		patched, err := operations.Apply(live)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(422, "", key.Resource.GroupResource(), key.Name, err.Error(), 0, false)
		}
		return patched, nil
	case types.StrategicMergePatchType:
		typed, err := clientgoscheme.Scheme.New(key.Resource.GroupVersionKind())
		if err != nil {
			break // a custom resource has no strategic merge patch
		}
		patched, err := strategicpatch.StrategicMergePatch(live, patch, typed)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patched, nil
	}
	return nil, apierrors.NewGenericServerResponse(415, "", key.Resource.GroupResource(), key.Name,
		"the body of the request was in an unknown format", 0, false)
}

// decode decodes JSON with integers as int64, like the API server.
func decode(raw []byte) map[string]any {
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &out); err != nil {
		panic(err) // callers pass JSON that was encoded before
	}
	return out
}

// canonical returns the object as its type encodes it: without unknown fields, and with the zero
// values that the type always encodes.
func canonical(of *Resource, object map[string]any) (map[string]any, error) {
	typed, err := clientgoscheme.Scheme.New(of.GroupVersionKind())
	if err != nil {
		return maps.Clone(object), nil //nolint:nilerr // a custom resource
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, typed); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return ToMap(typed), nil
}

func seconds(number int64) time.Duration { return time.Duration(number) * time.Second }
