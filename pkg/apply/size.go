package apply

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationBytes returns the size of a child's annotations after a write, as the API server counts
// it: keys and values. The record of the declaration is an annotation with this key and contains
// the other annotations, so these count at least twice.
func AnnotationBytes(child client.Object, recordKey string) (int, error) {
	record, err := declaration(child)
	if err != nil {
		return 0, fmt.Errorf("failed to encode: %w", err)
	}

	size := len(recordKey) + len(record)
	for key, value := range child.GetAnnotations() {
		size += len(key) + len(value)
	}
	return size, nil
}
