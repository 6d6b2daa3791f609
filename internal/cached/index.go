// Package cached reads objects of the operator's cache. The cache has only some fields of an object
// (internal/objectcache). The functions here return the same for a whole object and for its form
// in the cache.
package cached

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InstanceIndex is the cache's index (client.MatchingFields) of objects by NginxOperator: by the
// controlling NginxOperator, or by the label if another controller creates the objects. Without the
// index, each list would visit all objects of the namespace. A list requires a namespace.
const InstanceIndex = "instance"

// ControllingInstance returns the name of the NginxOperator that controls a child, or "".
func ControllingInstance(child metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(child); owner != nil && owner.Kind == "NginxOperator" {
		return owner.Name
	}
	return ""
}
