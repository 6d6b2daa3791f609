package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// A Service gets its second family and loses it again; its first address stays throughout. The API server of the tests has both.
func TestFamiliesOfTheService(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	create(t, object)
	address := waitForChildren(t, namespace, "web").service.Spec.ClusterIP
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
		waitFor(t, func() error {
			got, err := childrenOf(t.Context(), namespace, "web")
			if err != nil {
				return err
			}
			spec := got.service.Spec
			if !slices.Equal(spec.IPFamilies, step.want) || len(spec.ClusterIPs) != len(step.want) || spec.ClusterIP != address {
				return fmt.Errorf("step %d: %v with %v, want %v with %s first", i, spec.IPFamilies, spec.ClusterIPs, step.want, address)
			}
			return nil
		})
	}
}

// That the Service has another first family only the API server knows. It is told at the field, until that is corrected.
func TestOtherFamilyThanThatOfTheService(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	create(t, object)
	waitForChildren(t, namespace, "web")
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
