package operatormanager

import (
	"hash/maphash"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// fieldPrefix is the prefix of a field's index in the cache's reader.
const fieldPrefix = "field:"

// instanceOf returns the function that returns the name of the instance of an indexed kind's object,
// or nil if the kind is not indexed.
func instanceOf(kind runtime.Object) func(metav1.Object) string {
	switch kind.(type) {
	case *appsv1.ControllerRevision, *corev1.ConfigMap, *policyv1.PodDisruptionBudget:
		return cached.ControllingInstance
	case *appsv1.ReplicaSet, *corev1.Pod:
		return labelledInstance
	}
	return nil
}

// instanceBuckets is the number of values of the stored InstanceIndex. The set of objects of one value
// takes 0.3 KiB, even if it has one object, so instances share them.
const instanceBuckets = 1024

// bucketSeed is random, so a user cannot choose names with the same bucket.
var bucketSeed = maphash.MakeSeed()

// bucketOf returns the value of the stored InstanceIndex for a value of the InstanceIndex.
func bucketOf(value string) string {
	return strconv.FormatUint(maphash.String(bucketSeed, value)%instanceBuckets, 10)
}

// labelledInstance returns the instance of a Pod or a ReplicaSet, from the labels that the Service
// selects.
func labelledInstance(object metav1.Object) string {
	instance := object.GetLabels()[wellknown.LabelInstance]
	if !labels.SelectorFromSet(wellknown.Selector(instance)).Matches(labels.Set(object.GetLabels())) {
		return ""
	}
	return instance
}
