package apply

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/wellknown"
)

// AnnotationBytes returns the size of a child's annotations after a write, as the API server counts
// it: keys and values. The record of the declaration is an annotation and contains the other
// annotations, so these count at least twice.
func AnnotationBytes(child client.Object) (int, error) {
	record, err := declaration(child)
	if err != nil {
		return 0, fmt.Errorf("failed to encode: %w", err)
	}
	size := len(wellknown.AnnotationLastDeclared) + len(record)
	for key, value := range child.GetAnnotations() {
		size += len(key) + len(value)
	}
	return size, nil
}
