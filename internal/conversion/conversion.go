// Package conversion converts NginxOperators between v1alpha1 and v1alpha2, the hub, without loss
// in both directions (docs/adr/0010-conversion-keeps-data-in-an-annotation.md).
//
// v1alpha1 has one port, replicas, and forceRedeploy. The rest of a v1alpha2 spec is stored in an
// annotation of the v1alpha1 form. In the conversion to v1alpha2, the fields of v1alpha1 override
// the annotation, so that a client that only knows v1alpha1 can change them.
//
// Objects are converted as JSON, because Go types would change "0.5" to "500m" and omit
// "paused: false", and a client that applies such a manifest would always find a difference.
package conversion

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// inBoth are the spec fields that are identical in both versions. The status is identical, too.
var inBoth = []string{"replicas", "forceRedeploy"}

// ToV1alpha2 converts a v1alpha1 object in place.
//
// It does not fail, because one damaged annotation would fail the list of a whole cluster.
// Unreadable parts of the annotation are not used, and its text is moved to another annotation: see
// wellknown.AnnotationV1alpha2Unreadable.
func ToV1alpha2(object *unstructured.Unstructured) {
	text, isKept := start(object, v1alpha2.GroupVersion)
	declared, hasSpec := object.Object["spec"].(map[string]any)
	spec := map[string]any{}
	if isKept {
		kept, _, err := read(text)
		if err != nil {
			setAnnotation(object, wellknown.AnnotationV1alpha2Unreadable, text)
		}
		maps.Copy(spec, kept)
	}

	if port, isSet := declared["port"].(int64); isSet {
		setPort(spec, port)
	} else if _, isSet := spec["ports"]; isSet {
		setPort(spec, int64(v1alpha1.DefaultPort))
	}

	copyFields(declared, spec)
	delete(object.Object, "spec")
	if hasSpec || len(spec) > 0 {
		object.Object["spec"] = spec
	}
}

// ToV1alpha1 converts a v1alpha2 object in place.
func ToV1alpha1(object *unstructured.Unstructured) {
	// At v1alpha2, the annotation has no meaning. A copy of it must not become effective.
	start(object, v1alpha1.GroupVersion)
	declared, _ := object.Object["spec"].(map[string]any)
	if text := keep(declared); text != "" {
		setAnnotation(object, wellknown.AnnotationV1alpha2, text)
	}

	spec := map[string]any{"port": int64(v1alpha1.DefaultPort)}
	if port, isSet := firstPort(declared)["port"].(int64); isSet {
		spec["port"] = port
	}

	copyFields(declared, spec)
	object.Object["spec"] = spec
}

func copyFields(from, to map[string]any) {
	for _, field := range inBoth {
		delete(to, field)
		if value, isSet := from[field]; isSet {
			to[field] = value
		}
	}
}

// start sets the version of an object. It removes the annotation and returns it. It also removes a
// map that is empty then, so that the object is as before.
func start(object *unstructured.Unstructured, version schema.GroupVersion) (text string, isKept bool) {
	object.SetAPIVersion(version.String())
	if _, hasMetadata := object.Object["metadata"]; !hasMetadata {
		object.Object["metadata"] = map[string]any{} // the API server accepts no object without metadata
	}

	meta, _ := object.Object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, isKept := annotations[wellknown.AnnotationV1alpha2]
	delete(annotations, wellknown.AnnotationV1alpha2)
	if isKept && len(annotations) == 0 {
		delete(meta, "annotations")
	}

	text, _ = value.(string)
	return text, isKept
}

func setAnnotation(object *unstructured.Unstructured, key, value string) {
	meta, isObject := object.Object["metadata"].(map[string]any)
	if !isObject {
		return // not an object from the API server
	}

	annotations, isObject := meta["annotations"].(map[string]any)
	if !isObject {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}

	annotations[key] = value
}

func firstPort(spec map[string]any) map[string]any {
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 {
		return nil
	}

	port, _ := ports[0].(map[string]any)
	return port
}

// setPort sets the port of a v1alpha1 spec with a minimal change. Ports that are stored as empty
// were not set, and are set only if the port changed. Ports stored as null were an empty list.
func setPort(spec map[string]any, port int64) {
	_, isKept := spec["ports"]
	switch first := firstPort(spec); {
	case first != nil:
		first["port"] = port
	case hasNoPorts(spec) && port == int64(v1alpha2.DefaultPort):
		spec["ports"] = []any{}
	case isKept && port == int64(v1alpha2.DefaultPort):
		delete(spec, "ports")
	default:
		spec["ports"] = []any{map[string]any{"name": v1alpha2.DefaultPortName, "port": port, "protocol": string(corev1.ProtocolTCP)}}
	}
}

// isPortOfV1alpha1 reports whether setPort creates these ports from a v1alpha1 spec.
func isPortOfV1alpha1(ports []any) bool {
	if len(ports) != 1 {
		return false
	}
	port, _ := ports[0].(map[string]any)
	return len(port) == 3 && port["name"] == v1alpha2.DefaultPortName && port["protocol"] == string(corev1.ProtocolTCP)
}
