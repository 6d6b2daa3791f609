package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/operand"
)

// maxBytes is the limit for the data of a ControllerRevision. etcd accepts up to 1.5 MiB.
const maxBytes = 1_400_000

// stored is the data of the ControllerRevision that stores the children in effect.
type stored struct {
	// Change identifies the Pods, and Generation is that of their spec, or 0.
	Change     change.ID `json:"change"`
	Generation int64     `json:"generation,omitempty"`
	// Spec is the part of the spec that reaches the Pods, if known. Only kubectl nginx reads it.
	Spec json.RawMessage `json:"spec,omitempty"`
	// PatchedKinds are the kinds of children that patches of the spec change.
	PatchedKinds []string `json:"patchedKinds"`
	// Children have no data of ConfigMaps. Digests has the SHA-256 hashes of these data.
	Children []json.RawMessage `json:"children"`
	Digests  map[string]string `json:"digests,omitempty"`
}

// encode returns the data, or an error if it is too large for etcd.
func (s stored) encode(children []client.Object) ([]byte, error) {
	for _, child := range children {
		raw, err := json.Marshal(child)
		if err != nil {
			return nil, fmt.Errorf("failed to encode child %q: %w", child.GetName(), err)
		}
		s.Children = append(s.Children, raw)
	}

	// Sorted fields, so that the hash does not depend on who encodes the data again.
	var sorted map[string]any
	raw, err := json.Marshal(s)
	if err == nil {
		err = utiljson.Unmarshal(raw, &sorted)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to encode the children in effect: %w", err)
	}
	if raw, err = json.Marshal(sorted); err == nil && len(raw) > maxBytes {
		err = fmt.Errorf("failed to store the children in effect: %d bytes, the limit is %d", len(raw), maxBytes)
	}

	return raw, err
}

// decode reverses encode. The declaration has no Content yet. The data is the operator's own,
// because its hash is that of the status.
func decode(raw []byte) (*Declaration, stored, error) {
	var from stored
	if err := json.Unmarshal(raw, &from); err != nil {
		return nil, from, fmt.Errorf("failed to decode the children in effect: %w", err)
	}

	declaration := &Declaration{Change: from.Change, Generation: from.Generation, PatchedKinds: from.PatchedKinds}
	for _, text := range from.Children {
		child, err := decodeChild(text)
		if err != nil {
			return nil, from, fmt.Errorf("failed to decode the children in effect: %w", err)
		}
		declaration.Children = append(declaration.Children, child)
	}

	return declaration, from, nil
}

func decodeChild(text []byte) (client.Object, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		return nil, err
	}

	child := operand.New(meta.Kind)
	if child == nil {
		return nil, fmt.Errorf("unknown kind %q", meta.Kind)
	}
	return child, json.Unmarshal(text, child)
}

// SpecOf returns the part of the spec in the data of a ControllerRevision that reaches the Pods, or
// nil if it is not known, and the children. The status has the hash of the data.
func SpecOf(raw []byte, hash string) (json.RawMessage, []client.Object, error) {
	if hashOf(raw) != hash {
		return nil, nil, errors.New("another client has changed it")
	}

	declaration, from, err := decode(raw)
	if err != nil {
		return nil, nil, err
	}
	return from.Spec, declaration.Children, nil
}

// hashOf returns the SHA-256 hash of a text.
func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
