// Package codec decodes NginxOperators within the bounds of package bounds.
package codec

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds"
)

// DecodeText decodes the text of a v1alpha2 object that is within the bounds, without duplicate
// fields, and whose quantities were checked. A number that is too large for its field is an error.
func DecodeText(raw []byte) (*v1alpha2.NginxOperator, error) {
	object := &v1alpha2.NginxOperator{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, object); err != nil {
		return nil, err
	}
	return object, nil
}

// Encode returns JSON. Unlike json.Marshal, it does not escape "<", ">", and "&" to six bytes.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

const maxQuantities = 32

// Quantities returns the errors of the quantities in a v1alpha2 spec, without computing them.
func Quantities(spec map[string]any, path *field.Path) field.ErrorList {
	errs := resourceQuantities(spec, path)
	monitoring, _ := spec["monitoring"].(map[string]any)
	errs = append(errs, resourceQuantities(monitoring, path.Child("monitoring"))...)
	requestMetrics, _ := monitoring["requestMetrics"].(map[string]any)
	errs = append(errs, resourceQuantities(requestMetrics, path.Child("monitoring", "requestMetrics"))...)
	for _, name := range []string{"initContainers", "sidecars"} {
		for i, container := range Objects(spec[name]) {
			errs = append(errs, resourceQuantities(container, path.Child(name).Index(i))...)
		}
	}

	for i, volume := range Objects(spec["volumes"]) {
		emptyDir, _ := volume["emptyDir"].(map[string]any)
		if limit := emptyDir["sizeLimit"]; limit != nil && !bounds.IsQuantity(limit) {
			at := path.Child("volumes").Index(i).Child("emptyDir", "sizeLimit")
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, bounds.QuantityRule))
		}
	}

	return errs
}

// Objects returns the objects of a list at their original indexes.
func Objects(value any) []map[string]any {
	list, _ := value.([]any)
	objects := make([]map[string]any, len(list))
	for i := range list {
		objects[i], _ = list[i].(map[string]any)
	}
	return objects
}

func resourceQuantities(value map[string]any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	resources, _ := value["resources"].(map[string]any)
	for _, name := range []string{"limits", "requests"} {
		list, _ := resources[name].(map[string]any)
		at := path.Child("resources", name)
		if len(list) > maxQuantities {
			errs = append(errs, field.TooMany(at, len(list), maxQuantities))
			continue
		}

		for _, key := range slices.Sorted(maps.Keys(list)) {
			if !bounds.IsQuantity(list[key]) {
				errs = append(errs, field.Invalid(at.Key(key), field.OmitValueType{}, bounds.QuantityRule))
			}
		}
	}

	return errs
}

// annotationUnreadable has the reason in an object that could not be decoded.
const annotationUnreadable = "internal.operator.example.com/unreadable"

// maxReason bounds the reason why an object cannot be read, in bytes.
const maxReason = 512

// ReadAlone decodes one object of a list or a watch, as the API server sent it. If the object
// cannot be decoded, the result has its identity, an empty spec, the reason, and, if readable, its
// status. One object therefore does not fail the whole list. See Unreadable.
func ReadAlone(raw []byte) *v1alpha2.NginxOperator {
	object, err := read(raw)
	if err == nil {
		delete(object.Annotations, annotationUnreadable)
	} else {
		object = identityOf(raw)
		why := err.Error()
		MarkUnreadable(object, strings.ToValidUTF8(why[:min(len(why), maxReason)], ""))
	}

	// No code reads these fields, and omitting them saves memory for each object.
	object.APIVersion, object.Kind = "", ""
	return object
}

// read decodes an object within the bounds. Most objects have no value that could be an expensive
// quantity. The check of the others costs as much as decoding.
func read(raw []byte) (*v1alpha2.NginxOperator, error) {
	if err := bounds.JSON(raw); err != nil {
		return nil, err
	}
	if bounds.MayBeExpensive(raw) {
		object, err := bounds.Read(raw)
		if err != nil {
			return nil, err
		}

		spec, _ := object["spec"].(map[string]any)
		if errs := Quantities(spec, field.NewPath("spec")); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
	}

	return DecodeText(raw)
}

// Unreadable reports whether an object could not be decoded, and the reason.
func Unreadable(object *v1alpha2.NginxOperator) (why string, unreadable bool) {
	why, unreadable = object.Annotations[annotationUnreadable]
	return why, unreadable
}

// MarkUnreadable restores the mark after a transform has removed the annotations.
func MarkUnreadable(object *v1alpha2.NginxOperator, why string) {
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, annotationUnreadable, why)
}

// identityOf returns the readable fields. The getters ignore fields of another type.
func identityOf(raw []byte) *v1alpha2.NginxOperator {
	var fields unstructured.Unstructured
	_ = kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields.Object)
	object := &v1alpha2.NginxOperator{}
	object.Namespace, object.Name, object.UID = fields.GetNamespace(), fields.GetName(), fields.GetUID()
	object.ResourceVersion, object.Generation = fields.GetResourceVersion(), fields.GetGeneration()
	object.CreationTimestamp, object.DeletionTimestamp = fields.GetCreationTimestamp(), fields.GetDeletionTimestamp()

	text, err := json.Marshal(fields.Object["status"])
	var status v1alpha2.NginxOperatorStatus
	if err == nil && bounds.JSON(text) == nil && kjson.UnmarshalCaseSensitivePreserveInts(text, &status) == nil {
		object.Status = status
	}

	return object
}
