package bounds

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// annotationUnreadable marks, in the memory of this process and nowhere else, an object that could not be decoded. Its value says
// why.
const annotationUnreadable = "internal.operator.example.com/unreadable"

// maxReason bounds what is told of why an object cannot be read, in bytes.
const maxReason = 512

// ReadAlone decodes one object of a list or a watch, as the API server sent it. One that cannot be decoded has its identity, its status
// where that can be read, an empty spec, and the reason; so it fails alone. See Unreadable.
func ReadAlone(raw []byte) *v1alpha2.NginxOperator {
	out, err := decodeDirectly(raw)
	if err != nil {
		// It costs several times as much, and nearly no object needs it.
		out, err = decodeByMap(raw)
	}
	if err == nil {
		delete(out.Annotations, annotationUnreadable)
	} else {
		out.Annotations = map[string]string{annotationUnreadable: cut(err.Error())}
	}
	// Many objects have them, and nobody reads them.
	out.APIVersion, out.Kind = "", ""
	return out
}

// decodeDirectly decodes an object into its type, unless that could be dear.
func decodeDirectly(raw []byte) (*v1alpha2.NginxOperator, error) {
	if err := JSON(raw); err != nil {
		return nil, err
	}
	if mayBeDear(raw) {
		return nil, errors.New("it may have a quantity that is dear to compute with")
	}
	return decode(raw)
}

// decodeByMap decodes an object by way of a map, and returns its identity with the error where that fails.
func decodeByMap(raw []byte) (*v1alpha2.NginxOperator, error) {
	object := &unstructured.Unstructured{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object.Object)
	if err != nil {
		return identityOf(object), err
	}
	out, err := Decode(object.Object)
	if err != nil {
		return identityOf(object), err
	}
	return out, nil
}

// Unreadable reports whether an object could not be decoded, and why.
func Unreadable(object *v1alpha2.NginxOperator) (why string, unreadable bool) {
	why, unreadable = object.Annotations[annotationUnreadable]
	return why, unreadable
}

// MarkUnreadable makes an object one that could not be decoded. It is for what takes annotations away.
func MarkUnreadable(object *v1alpha2.NginxOperator, why string) {
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[annotationUnreadable] = why
}

// identityOf takes over what can be read whatever the rest is. Each of these getters passes over what has another type.
func identityOf(object *unstructured.Unstructured) *v1alpha2.NginxOperator {
	out := &v1alpha2.NginxOperator{}
	out.Namespace, out.Name, out.UID = object.GetNamespace(), object.GetName(), object.GetUID()
	out.ResourceVersion, out.Generation = object.GetResourceVersion(), object.GetGeneration()
	out.CreationTimestamp, out.DeletionTimestamp = object.GetCreationTimestamp(), object.GetDeletionTimestamp()
	raw, err := json.Marshal(object.Object["status"])
	if err != nil || JSON(raw) != nil {
		return out
	}
	var status v1alpha2.NginxOperatorStatus
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, &status) == nil {
		out.Status = status
	}
	return out
}

func cut(text string) string {
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return strings.ToValidUTF8(text, "")
}
