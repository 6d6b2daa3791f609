package codec

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds"
)

// annotationUnreadable marks an object that could not be decoded. Its value is the reason. It
// exists only in the memory of this process.
const annotationUnreadable = "internal.operator.example.com/unreadable"

// maxReason bounds the reason why an object cannot be read, in bytes.
const maxReason = 512

// ReadAlone decodes one object of a list or a watch, as the API server sent it. If the object
// cannot be decoded, the result has its identity, an empty spec, the reason, and, if readable, its
// status. One object therefore does not fail the whole list. See Unreadable.
func ReadAlone(raw []byte) *v1alpha2.NginxOperator {
	out, err := decodeDirectly(raw)
	if err != nil {
		// This is several times more expensive, and few objects need it.
		out, err = decodeByMap(raw)
	}
	if err == nil {
		delete(out.Annotations, annotationUnreadable)
	} else {
		out.Annotations = map[string]string{annotationUnreadable: cut(err.Error())}
	}
	// No code reads these fields, and omitting them saves memory for each object.
	out.APIVersion, out.Kind = "", ""
	return out
}

// decodeDirectly decodes an object into its type. It returns an error if decoding could be
// expensive.
func decodeDirectly(raw []byte) (*v1alpha2.NginxOperator, error) {
	if err := bounds.JSON(raw); err != nil {
		return nil, err
	}
	if bounds.MayBeExpensive(raw) {
		return nil, errors.New("it may have a quantity that is expensive to compute")
	}
	return decode(raw)
}

// decodeByMap decodes an object through a map. If that fails, it returns the identity of the object
// with the error.
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

// Unreadable reports whether an object could not be decoded, and the reason.
func Unreadable(object *v1alpha2.NginxOperator) (why string, unreadable bool) {
	why, unreadable = object.Annotations[annotationUnreadable]
	return why, unreadable
}

// MarkUnreadable marks an object as one that could not be decoded. Transforms that remove
// annotations need it.
func MarkUnreadable(object *v1alpha2.NginxOperator, why string) {
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[annotationUnreadable] = why
}

// identityOf returns the readable fields of an object. Each of these getters ignores fields of
// another type.
func identityOf(object *unstructured.Unstructured) *v1alpha2.NginxOperator {
	out := &v1alpha2.NginxOperator{}
	out.Namespace, out.Name, out.UID = object.GetNamespace(), object.GetName(), object.GetUID()
	out.ResourceVersion, out.Generation = object.GetResourceVersion(), object.GetGeneration()
	out.CreationTimestamp, out.DeletionTimestamp = object.GetCreationTimestamp(), object.GetDeletionTimestamp()
	raw, err := json.Marshal(object.Object["status"])
	if err != nil || bounds.JSON(raw) != nil {
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
