package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// TestAdmissionRefusesTransitionsOfTheService verifies that admission rejects changes that
// Kubernetes forbids in a Service.
func TestAdmissionRefusesTransitionsOfTheService(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	i := 0
	for title, test := range map[string]struct{ before, after, want string }{
		"class": {
			before: "service: {type: LoadBalancer, loadBalancerClass: example.com/a}",
			after:  "service: {type: LoadBalancer, loadBalancerClass: example.com/b}",
			want: "spec.service.loadBalancerClass: Invalid value: loadBalancerClass cannot be changed while type is LoadBalancer " +
				"(Kubernetes forbids it); set type ClusterIP first, then type and class again",
		},
		"first family": {
			before: "service: {ipFamilies: [IPv4]}",
			after:  "service: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}",
			want: "spec.service.ipFamilies: Invalid value: the first entry of ipFamilies cannot be changed (Kubernetes forbids it); restore the " +
				"first entry, or create another NginxOperator",
		},
	} {
		i++
		t.Run(title, func(t *testing.T) {
			name := fmt.Sprintf("web-%d", i)
			object := specManifest(t, v1alpha2.GroupVersion.Version, namespace, name, test.before)
			must(t, suite.admin.Create(t.Context(), object))
			after := specManifest(t, v1alpha2.GroupVersion.Version, namespace, name, test.after)
			err := tryUpdate(t, object, func(o *unstructured.Unstructured) { o.Object["spec"] = after.Object["spec"] })
			if !harness.Says(err, test.want) {
				t.Errorf("want a refusal with\n%s\ngot\n%v", test.want, err)
			}
		})
	}
}

// TestFamiliesOfTheService verifies that a Service gets its second IP family and loses it again,
// while its first address stays. The API server of the tests supports both families.
func TestFamiliesOfTheService(t *testing.T) {
	t.Parallel()
	namespace, object, first := newWeb(t, nil)
	address := first.service.Spec.ClusterIP
	dual := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	for i, step := range []struct {
		form *v1alpha2.Service
		want []corev1.IPFamily
	}{
		{&v1alpha2.Service{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack)}, dual},
		{&v1alpha2.Service{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack)}, dual[:1]},
		{&v1alpha2.Service{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyRequireDualStack), IPFamilies: dual}, dual},
		{&v1alpha2.Service{IPFamilies: dual[:1]}, dual[:1]},
		{&v1alpha2.Service{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyRequireDualStack), IPFamilies: dual}, dual},
		{nil, dual[:1]},
	} {
		update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Service = step.form })
		waitForWeb(t, namespace, func(got children) error {
			spec := got.service.Spec
			if !slices.Equal(spec.IPFamilies, step.want) || len(spec.ClusterIPs) != len(step.want) || spec.ClusterIP != address {
				return fmt.Errorf("step %d: %v with %v, want %v with %s first", i, spec.IPFamilies, spec.ClusterIPs, step.want, address)
			}
			return nil
		})
	}
}

// TestOtherFamilyThanThatOfTheService verifies that Degraded names the field if the Service has
// another first IP family, until the field is corrected. Only the API server detects this conflict.
func TestOtherFamilyThanThatOfTheService(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, nil)
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Service = &v1alpha2.Service{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}}
	})
	told := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, "True", v1alpha2.ReasonInvalidConfiguration)
	if want := "spec.service.ipFamilies[0]: Invalid value: "; !strings.Contains(told.Message, want) {
		t.Errorf("want %q in %q", want, told.Message)
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Service = nil })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, "False", v1alpha2.ReasonAsExpected)
}
