package operand

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestVolumesOnTheDisk verifies that the annotation for cluster-autoscaler in the documentation
// lists the volumes that keep it from removing a node: each emptyDir that is not in memory.
func TestVolumesOnTheDisk(t *testing.T) {
	const annotation = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	cache := func(inMemory bool) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Cache = &v1alpha2.Cache{Size: "1Gi", InMemory: inMemory}
		}
	}
	page := fieldsPage(t)
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		want   string
		// words are on the page.
		words string
	}{
		"default":         {func(*v1alpha2.NginxOperatorSpec) {}, "tmp", annotation + ": tmp\n"},
		"cache":           {cache(false), "tmp,cache", "`tmp,cache`"},
		"cache in memory": {cache(true), "tmp", "A volume in memory needs no entry."},
		"monitoring": {
			func(s *v1alpha2.NginxOperatorSpec) { s.Monitoring = &v1alpha2.Monitoring{} }, "tmp", annotation + ": tmp\n",
		},
	} {
		var names []string
		object := fixture.NewObject(test.change)
		for _, volume := range DesiredDeployment(object, newInputs(t, object, "", false)).Spec.Template.Spec.Volumes {
			if volume.EmptyDir != nil && volume.EmptyDir.Medium != corev1.StorageMediumMemory {
				names = append(names, volume.Name)
			}
		}
		if got := strings.Join(names, ","); got != test.want || !strings.Contains(page, test.words) {
			t.Errorf("%s: the volumes are %s, want %s; the page has %q: %t", name, got, test.want, test.words, strings.Contains(page, test.words))
		}
	}
}
