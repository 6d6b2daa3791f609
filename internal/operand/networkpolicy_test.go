package operand

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// portsOf returns the ports of a rule of a NetworkPolicy.
func portsOf(numbers ...int32) []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for _, number := range numbers {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(number))})
	}
	return out
}

// TestNetworkPolicyFrom verifies that only the declared peers reach the served ports, also while
// Pods listen on other numbers, and that the kubelet always reaches its port. A number that some
// Pods serve and others have for their probes is for the peers. No rule is without ports, because
// such a rule opens all of them.
func TestNetworkPolicyFrom(t *testing.T) {
	peers := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}, {IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}
	container := func(name string, number, listens int32) ContainerPort { return ContainerPort{name, number, listens} }
	health := container(HealthPort, 18080, 18080)
	for name, test := range map[string]struct {
		ports      []any
		containers []ContainerPort
		service    []corev1.ServicePort
		want       []networkingv1.NetworkPolicyIngressRule
	}{
		"new": {[]any{"http", 80}, nil, nil, []networkingv1.NetworkPolicyIngressRule{{Ports: portsOf(80), From: peers}, {Ports: portsOf(18080)}}},
		"another target": {
			[]any{"http", "80 to 9090"},
			[]ContainerPort{container("http", 80, 8080), health},
			[]corev1.ServicePort{{Name: "http", Port: 80}},
			[]networkingv1.NetworkPolicyIngressRule{{Ports: portsOf(8080, 9090), From: peers}, {Ports: portsOf(18080)}},
		},
		"a number of the probes is served": {
			[]any{"http", 18080},
			[]ContainerPort{container("http", 80, 80), health},
			[]corev1.ServicePort{{Name: "http", Port: 80}},
			[]networkingv1.NetworkPolicyIngressRule{{Ports: portsOf(80, 18080), From: peers}, {Ports: portsOf(18081)}},
		},
		"a served number is of the probes": {
			[]any{"http", 80},
			[]ContainerPort{container("http", 18080, 18080)},
			[]corev1.ServicePort{{Name: "http", Port: 18080}},
			[]networkingv1.NetworkPolicyIngressRule{{Ports: portsOf(80, 18080), From: peers}},
		},
		"a port that the Service does not have": {
			[]any{"http", 80},
			[]ContainerPort{container("other", 22, 22), health},
			[]corev1.ServicePort{{Name: "http", Port: 80}},
			[]networkingv1.NetworkPolicyIngressRule{{Ports: portsOf(80), From: peers}, {Ports: portsOf(18080)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(fixture.Ports(test.ports...))
			object.Spec.NetworkPolicy = &v1alpha2.NetworkPolicy{From: peers}
			in := Inputs{Running: Running{Containers: test.containers, own: test.containers, Service: test.service}}
			if diff := gocmp.Diff(test.want, partsFor(object, in).policy.Spec.Ingress); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// TestForeignPorts verifies that a Pod or a ReplicaSet opens no port if it only has the labels of
// the instance: neither by the name of the port for probes, nor by the annotation with the ports of
// the Service.
func TestForeignPorts(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "own"}}
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	template := func(port, health int32) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.AnnotationServicePorts: "http=8080"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name:  wellknown.OperandContainer,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}, {Name: HealthPort, ContainerPort: health}},
			}}},
		}
	}
	replicaSet := func(uid types.UID, of *appsv1.Deployment, port int32) *appsv1.ReplicaSet {
		out := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}}
		out.Spec = appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Template: template(port, port+1)}
		if of != nil {
			out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, kind)}
		}
		return out
	}
	pod := func(of *appsv1.ReplicaSet, port int32) *corev1.Pod {
		made := template(port, port+1)
		out := &corev1.Pod{ObjectMeta: made.ObjectMeta, Spec: made.Spec}
		if of != nil {
			out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		}
		return out
	}
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "other"}}
	sets := []*appsv1.ReplicaSet{
		replicaSet("own-set", deployment, 8090), replicaSet("foreign", nil, 1000), replicaSet("of another", other, 2000),
	}
	pods := []*corev1.Pod{pod(sets[0], 8092), pod(sets[1], 3000), pod(nil, 4000)}
	service := []corev1.ServicePort{{Name: "http", Port: 8080}}
	in := Inputs{Running: NewRunning(service, 0, deployment, sets, pods)}
	want := []networkingv1.NetworkPolicyIngressRule{{Ports: portsOf(8080, 8090, 8091, 8092, 8093, 18080)}}
	if diff := gocmp.Diff(want, partsFor(fixture.NewObject(), in).policy.Spec.Ingress); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
