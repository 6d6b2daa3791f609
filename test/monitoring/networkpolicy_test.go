package monitoring

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/hack/kustomize"
	"github.com/example/nginx-operator/test/harness"
)

// TestNetworkPolicy checks that config/network-policy selects the operator's Pods, opens the
// webhook port to everyone and the metrics port to labeled namespaces, and does not restrict
// egress. Neither config/default nor the bundle contains it.
func TestNetworkPolicy(t *testing.T) {
	installed := manifests(t, "", "default")
	if _, found := installed["NetworkPolicy"]; found {
		t.Error("config/default has a NetworkPolicy")
	}
	deployment := one(t, decode[appsv1.Deployment](t, installed["Deployment"]), anyOf)
	config, component := filepath.Join(repository, "config"), types.Kustomization{Components: []string{"network-policy"}}
	var policy networkingv1.NetworkPolicy
	harness.Must(t, yaml.UnmarshalStrict(harness.Must1(harness.Must1(kustomize.Render(config, component))(t).AsYaml())(t), &policy))

	selector := harness.Must1(metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector))(t)
	if policy.Namespace != deployment.Namespace || !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("%s in %s does not select the Pods of the operator", selector, policy.Namespace)
	}
	ports := map[string]int32{}
	for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports[port.Name] = port.ContainerPort
	}
	on := func(port int32) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(port)), Protocol: ptr.To(corev1.ProtocolTCP)}}
	}
	want := []networkingv1.NetworkPolicyIngressRule{
		{Ports: on(9443)},
		{Ports: on(ports["metrics"]), From: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"metrics": "enabled"}},
		}}},
	}
	kinds := policy.Spec.PolicyTypes
	if diff := cmp.Diff(want, policy.Spec.Ingress); diff != "" || len(kinds) != 1 || kinds[0] != "Ingress" {
		t.Errorf("the policy is of type %v and has other rules:\n%s", policy.Spec.PolicyTypes, diff)
	}
	for _, file := range harness.Must1(filepath.Glob(filepath.Join(repository, "bundle", "manifests", "*")))(t) {
		if strings.Contains(file, "networkpolicy") {
			t.Errorf("the bundle has %s", file)
		}
	}
}
