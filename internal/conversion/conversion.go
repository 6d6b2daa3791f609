// Package conversion converts NginxOperators between v1alpha1 and v1alpha2, the hub, without loss
// in both directions.
//
// v1alpha1 has one port, replicas, and forceRedeploy. The rest of a v1alpha2 spec is stored in an
// annotation of the v1alpha1 form. In the conversion to v1alpha2, the fields of v1alpha1 override
// the annotation, so that a client that only knows v1alpha1 can change them. For the reasons, see
// docs/adr/0010-conversion-keeps-data-in-an-annotation.md.
//
// Objects are converted as JSON and not as Go types. Go types would change "0.5" to "500m" and omit
// "paused: false", so a client that applies a manifest with such values would find a difference
// every time.
package conversion

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// ToV1alpha2 converts to v1alpha2. It does not change the type of the destination, and the two
// objects share no memory.
//
// It does not fail, because one damaged annotation would fail the list of a whole cluster.
// Unreadable parts of the annotation are not used, and its text is moved to another annotation: see
// wellknown.AnnotationV1alpha2Unreadable.
func ToV1alpha2(src, dst *unstructured.Unstructured) error {
	copyAllButSpec(src, dst)
	spec, hasSpec := src.Object["spec"].(map[string]any)
	out := map[string]any{}
	if text, found := takeAnnotation(dst); found {
		kept, err := parse(text)
		if err != nil {
			setAnnotation(dst, wellknown.AnnotationV1alpha2Unreadable, text)
		}
		out = kept
	}
	if port, found := spec["port"].(int64); found {
		setPort(out, port)
	} else if _, kept := out["ports"]; kept {
		setPort(out, int64(v1alpha1.DefaultPort))
	}
	for _, field := range inBoth {
		delete(out, field)
		if value, found := spec[field]; found {
			out[field] = deepCopy(value)
		}
	}
	if hasSpec || len(out) > 0 {
		dst.Object["spec"] = out
	}
	return nil
}

// ToV1alpha1 converts to v1alpha1. It does not change the type of the destination, and the two
// objects share no memory.
func ToV1alpha1(src, dst *unstructured.Unstructured) error {
	copyAllButSpec(src, dst)
	// At v1alpha2, the annotation has no meaning. A copy of it must not become effective.
	takeAnnotation(dst)
	spec, _ := src.Object["spec"].(map[string]any)
	text, err := keep(spec)
	if err != nil {
		return err
	}
	if text != "" {
		setAnnotation(dst, wellknown.AnnotationV1alpha2, text)
	}
	out := map[string]any{"port": int64(v1alpha1.DefaultPort)}
	if port, found := firstPort(spec)["port"].(int64); found {
		out["port"] = port
	}
	for _, field := range inBoth {
		if value, found := spec[field]; found {
			out[field] = deepCopy(value)
		}
	}
	dst.Object["spec"] = out
	return nil
}

// inBoth are the spec fields that are identical in both versions.
var inBoth = []string{"replicas", "forceRedeploy"}

// copyAllButSpec copies all fields except the spec. The status is identical in both versions, and
// the metadata differs in the annotation only.
func copyAllButSpec(src, dst *unstructured.Unstructured) {
	out := map[string]any{
		"apiVersion": dst.GetAPIVersion(), "kind": dst.GetKind(),
		// The API server accepts no object without metadata.
		"metadata": map[string]any{},
	}
	for key, value := range src.Object {
		if key != "apiVersion" && key != "kind" && key != "spec" {
			out[key] = deepCopy(value)
		}
	}
	dst.Object = out
}

// takeAnnotation removes the annotation and returns it. If there is no other annotation, it removes
// the map as well, so that the object is as it was before the annotation.
func takeAnnotation(object *unstructured.Unstructured) (string, bool) {
	meta, _ := object.Object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, found := annotations[wellknown.AnnotationV1alpha2]
	if !found {
		return "", false
	}
	delete(annotations, wellknown.AnnotationV1alpha2)
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
	text, _ := value.(string)
	return text, true
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

// firstPort returns the first port of a v1alpha2 spec, or nil if there is none.
func firstPort(spec map[string]any) map[string]any {
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 {
		return nil
	}
	port, _ := ports[0].(map[string]any)
	return port
}

// setPort sets the port of a v1alpha1 spec in a v1alpha2 spec, with a minimal change. Ports that
// are stored as empty were not set at v1alpha2, and are set only if the port changed. Ports that
// are stored as null were an empty list.
func setPort(spec map[string]any, port int64) {
	_, kept := spec["ports"]
	switch first := firstPort(spec); {
	case first != nil:
		first["port"] = port
	case hasNoPorts(spec) && port == int64(v1alpha2.DefaultPort):
		spec["ports"] = []any{}
	case kept && port == int64(v1alpha2.DefaultPort):
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
