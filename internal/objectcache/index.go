package objectcache

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// fieldPrefix is the prefix of a field's index in the cache's reader.
const fieldPrefix = "field:"

const (
	// indexBytes is the memory in bytes that one value of an index takes.
	indexBytes = 300
	// maxPartReferences is the maximum memory in bytes that one index of references of a part
	// takes. A part with more references is found by every name of its namespace.
	maxPartReferences = 1 << 10
)

// References has functions that return the names of needed objects, by the name of an index.
type References map[string]func(client.Object) []string

// addIndexers adds no index of a manager, whose FieldIndexer would start a standby's informer.
func (r References) addIndexers(indexers toolscache.Indexers, kind runtime.Object) {
	if instance := instanceOf(kind); instance != nil {
		indexers[fieldPrefix+cached.InstanceIndex] = indexer(func(object client.Object) []string {
			if name := instance(object); name != "" {
				return []string{name}
			}
			return nil
		})
	}
	switch kind.(type) {
	case *v1alpha2.NginxOperator, *appsv1.Deployment:
		for index, names := range r {
			indexers[fieldPrefix+index] = indexer(func(object client.Object) []string {
				if kept, isPart := object.GetAnnotations()[partReferences(index)]; isPart {
					return strings.Fields(kept)
				}
				return names(object)
			})
		}
	}
}

func partReferences(index string) string { return cached.AnnotationPart + "-" + index }

func indexer(values func(client.Object) []string) toolscache.IndexFunc {
	return func(in any) ([]string, error) {
		object, ok := in.(client.Object)
		if !ok {
			return nil, nil
		}

		var out []string
		for _, value := range values(object) {
			out = append(out, object.GetNamespace()+"/"+value)
		}
		return out, nil
	}
}

func (r References) size(object client.Object) int {
	size := 0
	for _, names := range r {
		size += sizeOfIndex(names(object))
	}
	return size
}

func sizeOfIndex(names []string) int {
	size := 0
	for _, name := range names {
		size += indexBytes + len(name)
	}
	return size
}

func (r References) keepIn(part, object client.Object) {
	annotations := part.GetAnnotations()
	for index, names := range r {
		kept := names(object)
		switch {
		case len(kept) == 0:
			continue
		case sizeOfIndex(kept) > maxPartReferences:
			kept = []string{cached.AnyReference}
		}
		annotations[partReferences(index)] = strings.Join(kept, " ")
	}
}

// instanceOf returns the index function of a kind, or nil if the kind is not indexed.
func instanceOf(kind runtime.Object) func(metav1.Object) string {
	switch kind.(type) {
	case *appsv1.ControllerRevision, *corev1.ConfigMap, *policyv1.PodDisruptionBudget:
		return cached.ControllingInstance
	case *appsv1.ReplicaSet, *corev1.Pod:
		return labelledInstance
	}
	return nil
}

// labelledInstance returns the instance whose Service selects a Pod or ReplicaSet.
func labelledInstance(object metav1.Object) string {
	instance := object.GetLabels()[wellknown.LabelInstance]
	if !labels.SelectorFromSet(wellknown.Selector(instance)).Matches(labels.Set(object.GetLabels())) {
		return ""
	}
	return instance
}
