// Package conversion converts NginxOperators between v1alpha1 and v1alpha2, the hub, and loses nothing on either way.
//
// v1alpha1 knows one port, replicas and forceRedeploy. The rest of a v1alpha2 spec is kept in an annotation of the
// v1alpha1 form. On the way back what v1alpha1 says itself wins over the annotation, so that a client which knows
// v1alpha1 only can change it. docs/adr/0010-conversion-keeps-data-in-an-annotation.md says why.
//
// Objects are converted as JSON and not by their Go types. Those would write "0.5" as "500m" and leave out
// "paused: false", and whoever applies a manifest with that would find another object than the one applied, every time.
package conversion

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// ToV1alpha2 converts up. It leaves the type of the destination as it is and shares no memory between the two.
//
// It does not fail: one annotation that somebody damaged would make the list of a whole cluster fail. What cannot be
// read of it is not used, and its text goes into another annotation; see wellknown.AnnotationV1alpha2Unreadable.
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
			out[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	if hasSpec || len(out) > 0 {
		dst.Object["spec"] = out
	}
	return nil
}

// ToV1alpha1 converts down. It leaves the type of the destination as it is and shares no memory between the two.
func ToV1alpha1(src, dst *unstructured.Unstructured) error {
	copyAllButSpec(src, dst)
	// At v1alpha2 the annotation has no meaning. A copy of it must not become one that has.
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
			out[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	dst.Object["spec"] = out
	return nil
}

// inBoth are the fields of a spec that are the same in both versions.
var inBoth = []string{"replicas", "forceRedeploy"}

// copyAllButSpec: the status is the same in both versions, and metadata is but for the annotation.
func copyAllButSpec(src, dst *unstructured.Unstructured) {
	out := map[string]any{
		"apiVersion": dst.GetAPIVersion(), "kind": dst.GetKind(),
		// The API server takes no object without it, not even when its own has none.
		"metadata": map[string]any{},
	}
	for key, value := range src.Object {
		if key != "apiVersion" && key != "kind" && key != "spec" {
			out[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	dst.Object = out
}

// takeAnnotation removes the annotation and returns it. An object that has no other has no annotations then, as before
// it got this one.
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
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// firstPort returns the first port of a v1alpha2 spec, nil where none is given.
func firstPort(spec map[string]any) map[string]any {
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 {
		return nil
	}
	port, _ := ports[0].(map[string]any)
	return port
}

// setPort makes a v1alpha2 spec mean the port of a v1alpha1 spec, with as little change as possible. Ports that are kept
// as empty were not given at v1alpha2, and are not given again unless the port is another one now; those that are kept as null
// were an empty list.
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

// isPortOfV1alpha1 reports whether ports are what setPort makes of a v1alpha1 spec.
func isPortOfV1alpha1(ports []any) bool {
	if len(ports) != 1 {
		return false
	}
	port, _ := ports[0].(map[string]any)
	return len(port) == 3 && port["name"] == v1alpha2.DefaultPortName && port["protocol"] == string(corev1.ProtocolTCP)
}
