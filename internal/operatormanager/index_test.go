package operatormanager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestReferrersAreFound verifies that an NginxOperator is found by each of its references, whatever
// their number, and by nothing else. One with more references than the packed form has is found by
// every name of its namespace.
func TestReferrersAreFound(t *testing.T) {
	t.Parallel()
	form := newPacking(&v1alpha2.NginxOperator{}, newRecent())
	fieldsOf := func(text func(*v1alpha2.NginxOperatorSpec) string) func(client.Object) []string {
		return func(object client.Object) []string {
			return strings.Fields(text(&object.(*v1alpha2.NginxOperator).Spec))
		}
	}
	form.index = referencesOf(Indexes{
		"configMap": fieldsOf(func(spec *v1alpha2.NginxOperatorSpec) string { return spec.Image }),
		"secret":    fieldsOf(func(spec *v1alpha2.NginxOperatorSpec) string { return spec.ForceRedeploy }),
	})
	stored := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{referenceIndex: bucketsOfReferences})
	names := func(count int) string {
		var out []string
		for i := range count {
			out = append(out, fmt.Sprint("page-", i))
		}
		return strings.Join(out, " ")
	}
	for name, spec := range map[string]v1alpha2.NginxOperatorSpec{
		"none": {}, "one": {Image: "page-0"}, "secret": {ForceRedeploy: "page-0"}, "few": {Image: names(maxBuckets)},
		"many": {Image: names(maxHashes)}, "most": {Image: names(maxHashes), ForceRedeploy: "page-0"},
	} {
		object, err := form.pack(&v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		if err := stored.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[[2]string]string{
		{"configMap", "shop/page-0"}:  "few many most one",
		{"configMap", "shop/page-7"}:  "few many most",
		{"configMap", "shop/page-8"}:  "many most",
		{"configMap", "shop/other"}:   "most",
		{"secret", "shop/page-0"}:     "most secret",
		{"configMap", "other/page-0"}: "",
	} {
		items, err := packedIndexer{stored, form}.ByIndex(fieldPrefix+query[0], query[1])
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range items {
			got = append(got, item.(*v1alpha2.NginxOperator).Name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%v: got %v, want %s", query, got, want)
		}
	}
}

// TestInstanceIndex verifies that children are indexed by their controller, and Pods and
// ReplicaSets by their labels. Any other reference to an instance is ignored.
func TestInstanceIndex(t *testing.T) {
	owned := func(kind string, controller bool) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "shop", Name: "child",
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "web", Controller: ptr.To(controller)}},
		}
	}
	labelled := metav1.ObjectMeta{Namespace: "shop", Name: "pod", Labels: wellknown.Selector("web")}
	forged := metav1.ObjectMeta{Namespace: "shop", Name: "pod", Labels: map[string]string{wellknown.LabelInstance: "web"}}
	for name, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"a child":                   {&corev1.ConfigMap{ObjectMeta: owned("NginxOperator", true)}, "web"},
		"what another kind owns":    {&corev1.ConfigMap{ObjectMeta: owned("Other", true)}, ""},
		"what it does not control":  {&appsv1.ControllerRevision{ObjectMeta: owned("NginxOperator", false)}, ""},
		"a ConfigMap with labels":   {&corev1.ConfigMap{ObjectMeta: labelled}, ""},
		"a Pod":                     {&corev1.Pod{ObjectMeta: labelled}, "web"},
		"a revision":                {&appsv1.ReplicaSet{ObjectMeta: labelled}, "web"},
		"a Pod that lacks a label":  {&corev1.Pod{ObjectMeta: forged}, ""},
		"a Pod with an owner alone": {&corev1.Pod{ObjectMeta: owned("NginxOperator", true)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := instanceOf(test.object)(test.object); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestInstancesShareBuckets verifies that a list has only the objects of its instance, although another
// instance has the same bucket.
func TestInstancesShareBuckets(t *testing.T) {
	t.Parallel()
	instances, buckets := []string{}, map[string]string{}
	for i := 0; len(instances) == 0; i++ { // ends after at most one more than there are buckets
		name := fmt.Sprint("web-", i)
		if other, found := buckets[bucketOf("shop/"+name)]; found {
			instances = []string{name, other}
		}
		buckets[bucketOf("shop/"+name)] = name
	}
	form := newPacking(&corev1.Pod{}, newRecent())
	stored := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{fieldPrefix + cached.InstanceIndex: bucketsOf})
	for _, instance := range append(instances, "") {
		meta := metav1.ObjectMeta{Namespace: "shop", Name: "pod-of-" + instance, Labels: wellknown.Selector(instance)}
		pod, err := form.pack(&corev1.Pod{ObjectMeta: meta})
		if err != nil {
			t.Fatal(err)
		}
		if err := stored.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	if keys, err := stored.IndexKeys(fieldPrefix+cached.InstanceIndex, bucketOf("shop/"+instances[0])); len(keys) != 2 || err != nil {
		t.Errorf("the bucket has %v, %v", keys, err)
	}
	for _, instance := range instances {
		items, err := packedIndexer{stored, form}.ByIndex(fieldPrefix+cached.InstanceIndex, "shop/"+instance)
		if len(items) != 1 || items[0].(*corev1.Pod).Name != "pod-of-"+instance || err != nil {
			t.Errorf("%s has %v, %v", instance, items, err)
		}
	}
	if items, err := (packedIndexer{stored, form}).ByIndex(fieldPrefix+cached.InstanceIndex, "shop/"); len(items) != 0 || err != nil {
		t.Errorf("no instance has %v, %v", items, err)
	}
}
