package revision

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

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

// Holds implements apply.Content. A client can find other data with the 40-bit hash in the name.
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

// digests has the SHA-256 hash of each stored ConfigMap, by name. spec can be nil.
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

func digestOf(configMap *corev1.ConfigMap) (string, error) {
	raw, err := json.Marshal([]any{configMap.Data, configMap.BinaryData})
	if err != nil {
		return "", fmt.Errorf("failed to encode ConfigMap %q: %w", configMap.Name, err)
	}
	return hashOf(raw), nil
}

// InEffect returns the ControllerRevision that stores the children in effect, and its reference for
// the status: the Pods of the live Deployment and the live entrance, as they were declared last.
// Stored pods, which can be nil, replace those of the live Deployment. It returns nil if the
// Deployment has no last declaration. If another client deleted the Service, its last declaration is
// lost. The Service is then that of spec, which can be nil, so that it is recreated even if the
// change fails.
func (s Store) InEffect(
	ctx context.Context, object *v1alpha2.NginxOperator, pods, spec *Declaration,
) (*appsv1.ControllerRevision, *v1alpha2.StoredRevision, error) {
	data := stored{Digests: map[string]string{}, PatchedKinds: append([]string{}, object.Status.PatchedKinds...)}
	var children []client.Object
	if pods != nil {
		children = slices.DeleteFunc(slices.Clone(pods.Children), operand.IsEntrance)
		data.Change, data.Generation = pods.Change, pods.Generation
		if from, ok := pods.Content.(digests); ok {
			data.Digests = from.of
		}

		data.Spec = specOf(pods.Deployment())
	} else {
		var err error
		if children, err = s.livePods(ctx, object, &data); children == nil || err != nil {
			return nil, nil, err
		}
	}

	entrance, err := s.liveChildren(ctx, object, operand.EntranceKinds()...)
	if err != nil {
		return nil, nil, err
	}

	if spec != nil && operand.ChildOf[*corev1.Service](entrance) == nil {
		if service := operand.ChildOf[*corev1.Service](spec.Children); service != nil {
			entrance = append(entrance, service)
		}
	}

	raw, err := data.encode(append(children, entrance...))
	if err != nil {
		return nil, nil, err
	}

	name := string(raw)
	if before := object.Status.StoredRevision; before != nil { // another client may have changed it
		name += before.Name
	}

	revision := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: object.Name + "-" + operand.ShortHash(name), Labels: wellknown.ChildLabels(object.Name, ""),
		},
		Revision: object.Generation,
	}

	revision.Data.Raw = raw
	return revision, &v1alpha2.StoredRevision{Name: revision.Name, Hash: hashOf(raw), HasEntrance: true}, nil
}

// livePods returns the last declarations of the Deployment, its ConfigMaps, and the size.
func (s Store) livePods(ctx context.Context, object *v1alpha2.NginxOperator, data *stored) ([]client.Object, error) {
	last, err := s.Last(ctx, object, nil)
	if last == nil || err != nil {
		return nil, err
	}

	deployment := last.Deployment()
	data.Change, data.Spec = last.Change, specOf(deployment)
	operand.MarkAgain(deployment, string(last.Change))
	out := []client.Object{}
	for _, name := range cached.MountedConfigMaps(&deployment.Spec.Template) {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: name}}
		whole, err := s.whole(ctx, object, configMap)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			continue // a user's ConfigMap, or one that is gone
		}
		if data.Digests[name], err = digestOf(whole.(*corev1.ConfigMap)); err != nil {
			return nil, err
		}
		if declared := s.Applier.LastDeclared(whole); declared != nil {
			out = append(out, declared)
		}
	}

	size, err := s.liveChildren(ctx, object, "PodDisruptionBudget", "HorizontalPodAutoscaler")
	return slices.Concat(out, []client.Object{deployment}, size), err
}

func (s Store) liveChildren(ctx context.Context, object *v1alpha2.NginxOperator, kinds ...string) ([]client.Object, error) {
	var out []client.Object
	for _, kind := range kinds {
		for _, child := range s.Live.Owned(kind) {
			declared, err := s.declared(ctx, object, child)
			if err != nil {
				return nil, err
			}
			if declared != nil {
				out = append(out, declared)
			}
		}
	}

	return out, nil
}

func specOf(deployment *appsv1.Deployment) json.RawMessage {
	if text := deployment.Annotations[wellknown.AnnotationSpec]; json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}
