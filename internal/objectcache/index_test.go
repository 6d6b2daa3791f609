package objectcache

import (
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
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestReferences verifies that an NginxOperator is found by each of its references, and by nothing
// else. A part with too many references is found by AnyReference.
func TestReferences(t *testing.T) {
	t.Parallel()
	references := References{
		"configMap": func(object client.Object) []string {
			return strings.Fields(object.(*v1alpha2.NginxOperator).Spec.Image)
		},
		"secret": func(object client.Object) []string {
			return strings.Fields(object.(*v1alpha2.NginxOperator).Spec.ForceRedeploy)
		},
	}
	indexers := toolscache.Indexers{}
	references.addIndexers(indexers, &v1alpha2.NginxOperator{})
	stored := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
	transform := references.bounded(slim)
	const few = "page-0 page-1 page-2"
	const many = few + " page-3 page-4 page-5 page-6 page-7 page-8"
	large := &v1alpha2.Config{Inline: strings.Repeat("x", maxCached)}
	for name, spec := range map[string]v1alpha2.NginxOperatorSpec{
		"none": {}, "one": {Image: "page-0"}, "secret": {ForceRedeploy: "page-0"}, "few": {Image: few},
		"large": {Image: "page-0", Config: large}, "none-large": {Config: large},
		"many": {Image: many}, "many-large": {ForceRedeploy: "page-0", Image: many, Config: large},
	} {
		object, err := transform(&v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		if err := stored.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[[2]string]string{
		{"configMap", "shop/page-0"}:  "few large one",
		{"configMap", "shop/page-2"}:  "few",
		{"configMap", "shop/page-3"}:  "",
		{"configMap", "shop/*"}:       "many many-large",
		{"secret", "shop/page-0"}:     "many-large secret",
		{"secret", "shop/*"}:          "",
		{"configMap", "other/page-0"}: "",
	} {
		keys, err := stored.IndexKeys(fieldPrefix+query[0], query[1])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(keys)
		if got := strings.ReplaceAll(strings.Join(keys, " "), "shop/", ""); got != want {
			t.Errorf("%v: got %s, want %s", query, got, want)
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
		"owned by another kind":     {&corev1.ConfigMap{ObjectMeta: owned("Other", true)}, ""},
		"owned, not controlled":     {&appsv1.ControllerRevision{ObjectMeta: owned("NginxOperator", false)}, ""},
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
