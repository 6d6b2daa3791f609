package snapshot

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// References returns the references to children, as in status.relatedObjects.
func References(children []client.Object) []v1alpha2.RelatedObject {
	var out []v1alpha2.RelatedObject
	for _, child := range children {
		apiVersion, kind := child.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		out = append(out, v1alpha2.RelatedObject{APIVersion: apiVersion, Kind: kind, Name: child.GetName()})
	}
	return out
}
