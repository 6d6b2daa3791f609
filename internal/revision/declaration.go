// Package revision has the declarations of an instance: the children that its spec renders, those
// that were declared last, and those in effect. A ControllerRevision stores the children in effect
// before they are replaced. Only stored or rendered children are ever written.
package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

// Declaration has the children of an instance while no Pods of another declaration run.
type Declaration struct {
	// Change identifies its Pods.
	Change change.ID
	// Generation is that of the spec, or 0 if it is not known.
	Generation int64
	// Object has the spec, with the inputs of its children. It is nil unless the spec was rendered.
	Object *v1alpha2.NginxOperator
	Inputs operand.Inputs
	// Children have no entrance if they were declared last.
	Children []client.Object
	// Content has the data of the ConfigMaps.
	Content apply.Content
	// PatchedKinds are the kinds of children that patches change, unless the spec was rendered.
	PatchedKinds []string
}

// Deployment returns the declared Deployment, or nil if there is none.
func (d *Declaration) Deployment() *appsv1.Deployment {
	return operand.ChildOf[*appsv1.Deployment](d.Children)
}

// Image returns the container image of nginx.
func (d *Declaration) Image() string { return imageOf(d.Deployment(), wellknown.OperandContainer) }

// Exporter returns the container image of the exporter, or "".
func (d *Declaration) Exporter() string { return imageOf(d.Deployment(), wellknown.ExporterContainer) }

// RequestMetrics returns the container image of the receiver of request metrics, or "".
func (d *Declaration) RequestMetrics() string {
	return imageOf(d.Deployment(), wellknown.RequestMetricsContainer)
}

func imageOf(deployment *appsv1.Deployment, name string) string {
	if deployment == nil {
		return ""
	}

	pod := &deployment.Spec.Template.Spec
	for _, container := range slices.Concat(pod.Containers, pod.InitContainers) {
		if container.Name == name {
			return container.Image
		}
	}

	return ""
}

// ConfigHash returns the hash in the name of the ConfigMap with the nginx configuration.
func (d *Declaration) ConfigHash() string {
	deployment := d.Deployment()
	if deployment == nil {
		return ""
	}

	pod := deployment.Spec.Template.Spec.DeepCopy()
	operand.WithoutSuffix(pod)
	for _, volume := range pod.Volumes {
		if volume.Name == "config" && volume.ConfigMap != nil {
			return strings.TrimPrefix(volume.ConfigMap.Name, deployment.Name+"-")
		}
	}

	return ""
}

// Rendering has the children of an instance for the live state.
type Rendering struct {
	// Pods is the declaration of the Pods.
	Pods *Declaration
	// Entrance can be the same declaration. It is nil if the entrance is not known, and stays.
	Entrance *Declaration
	operand.Composed
	// Running are the ports of the Pods, and Missing the reasons why kinds are not installed.
	Running operand.Running
	Missing map[string]string
}

// Unrendered returns the optional kinds that the entrance declares and that are not installed.
func (r Rendering) Unrendered() []operand.OptionalKind {
	if r.Entrance == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(operand.OptionalKinds), func(optional operand.OptionalKind) bool {
		isOfKind := func(child client.Object) bool { return operand.KindOf(child) == optional.Kind }
		isDeclared := slices.ContainsFunc(r.Entrance.Children, isOfKind)
		if object := r.Entrance.Object; object != nil { // its children lack the kinds that are not installed
			isDeclared = optional.IsDeclared(&object.Spec)
		}
		return r.Missing[optional.Kind] == "" || !isDeclared
	})
}

// PatchedKinds returns the kinds of children that patches of a spec change, sorted. before are
// those of the status, for parts whose patches are not known.
func (r Rendering) PatchedKinds(before []string) []string {
	patched := sets.New[string]()
	for i, part := range []*Declaration{r.Pods, r.Entrance} {
		kinds, isEntrance := before, i == 1
		switch {
		case part == nil:
		case part.Object != nil:
			kinds = operand.PatchedKinds(part.Object.Spec.Patches, r.Children)
		case part.PatchedKinds != nil:
			kinds = part.PatchedKinds
		}
		for _, kind := range kinds {
			if slices.Contains(operand.EntranceKinds(), kind) == isEntrance {
				patched.Insert(kind)
			}
		}
	}

	return sets.List(patched)
}

// maxBytes is the limit for the data of a ControllerRevision. etcd accepts up to 1.5 MiB.
const maxBytes = 1_400_000

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

// decode reverses encode, without Content. The hash in the status protects the data.
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

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
