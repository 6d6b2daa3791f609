package revision

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/pkg/apply"
)

// rendered has the data of the ConfigMaps of a spec.
type rendered struct {
	object *v1alpha2.NginxOperator
	in     operand.Inputs
	read   func(context.Context) (operand.Files, error)
	found  *operand.Files
}

// NewContent returns the data of the ConfigMaps of a spec. It calls read at most once.
func NewContent(object *v1alpha2.NginxOperator, in operand.Inputs, read func(context.Context) (operand.Files, error)) apply.Content {
	return &rendered{object: object, in: in, read: read}
}

// Fill implements apply.Content.
func (c *rendered) Fill(ctx context.Context, child client.Object) error {
	configMap, ok := child.(*corev1.ConfigMap)
	if !ok || configMap.Data != nil || configMap.BinaryData != nil {
		return nil
	}

	if c.found == nil {
		found, err := c.read(ctx)
		if err != nil {
			return err
		}
		c.found = &found
	}

	for _, directory := range c.in.Directories {
		if operand.DirectoryName(c.object, c.in, directory) == configMap.Name {
			content := c.found.Directories[directory.Path]
			configMap.Data, configMap.BinaryData = maps.Clone(content.Text), maps.Clone(content.Binary)
			return nil
		}
	}

	// The maps are shared with other copies.
	switch in := c.in; configMap.Name {
	case operand.ContentName(c.object, in):
		configMap.Data, configMap.BinaryData = maps.Clone(c.found.Text), maps.Clone(c.found.Binary)
	case operand.FilesName(c.object, in):
		configMap.Data, configMap.BinaryData = maps.Clone(c.found.FileText), maps.Clone(c.found.FileBinary)
	default:
		configMap.Data = c.found.Config
	}

	return nil
}

// Holds implements apply.Content. It compares all data, because a client can compute other data
// with the 40-bit hash in the name.
func (c *rendered) Holds(ctx context.Context, child, live client.Object) (bool, error) {
	stored, ok := live.(*corev1.ConfigMap)
	if !ok {
		return true, nil
	}

	want := child.DeepCopyObject().(*corev1.ConfigMap)
	err := c.Fill(ctx, want)
	return ptr.Deref(stored.Immutable, false) && maps.Equal(want.Data, stored.Data) &&
		maps.EqualFunc(want.BinaryData, stored.BinaryData, bytes.Equal), err
}

// digests has the SHA-256 hash of the data of each ConfigMap of a stored declaration, by name. spec
// renders some of them, or is nil.
type digests struct {
	of   map[string]string
	spec *Declaration
}

// Lost is the error for a ConfigMap that Pods need, that does not exist, and that nothing renders.
type Lost struct{ Name string }

// Error names the ConfigMap and the remedy.
func (e Lost) Error() string {
	return fmt.Sprintf("ConfigMap %q of the running Pods was deleted, and the spec does not render it. Correct the spec", e.Name)
}

// Fill implements apply.Content.
func (d digests) Fill(ctx context.Context, child client.Object) error {
	configMap, ok := child.(*corev1.ConfigMap)
	if !ok || configMap.Data != nil || configMap.BinaryData != nil {
		return nil
	}

	if d.spec != nil {
		for _, other := range d.spec.Children {
			if same, isConfigMap := other.(*corev1.ConfigMap); isConfigMap && same.Name == configMap.Name {
				return d.spec.Content.Fill(ctx, configMap)
			}
		}
	}

	return Lost{configMap.Name}
}

// Holds implements apply.Content.
func (d digests) Holds(_ context.Context, child, live client.Object) (bool, error) {
	stored, ok := live.(*corev1.ConfigMap)
	if !ok {
		return true, nil
	}

	digest, err := digestOf(stored)
	want, known := d.of[child.GetName()]
	return !known || ptr.Deref(stored.Immutable, false) && digest == want, err
}

// digestOf returns the SHA-256 hash of the data of a ConfigMap.
func digestOf(configMap *corev1.ConfigMap) (string, error) {
	raw, err := json.Marshal([]any{configMap.Data, configMap.BinaryData})
	if err != nil {
		return "", fmt.Errorf("failed to encode ConfigMap %q: %w", configMap.Name, err)
	}
	return hashOf(raw), nil
}
