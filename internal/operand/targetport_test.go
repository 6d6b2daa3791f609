package operand

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestServicePortsOfAPod verifies that the valid parts of a Pod's annotation are used.
func TestServicePortsOfAPod(t *testing.T) {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: wellknown.OperandContainer, Ports: []corev1.ContainerPort{
		{Name: "http", ContainerPort: 8080}, {Name: "admin", ContainerPort: 9000},
	}}}}
	plain := []ContainerPort{{"http", 8080, 8080}, {"admin", 9000, 9000}}
	for text, want := range map[string][]ContainerPort{
		"":                             plain,
		"http=80":                      {{"http", 80, 8080}, {"admin", 9000, 9000}},
		"admin=81,http=80":             {{"http", 80, 8080}, {"admin", 81, 9000}},
		"http=80,other=1":              {{"http", 80, 8080}, {"admin", 9000, 9000}},
		"http=0,admin=70000":           plain,
		"http=-1,admin=":               plain,
		"http,,=,admin":                plain,
		strings.Repeat("x=1,", 10_000): plain,
	} {
		got := ContainerPortsOf(map[string]string{wellknown.AnnotationServicePorts: text}, spec)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(ContainerPort{})); diff != "" {
			t.Errorf("%.20q (-want +got):\n%s", text, diff)
		}
	}
}

// TestServicePortsAreBounded verifies that the cache retains the longest annotation that can be
// declared.
func TestServicePortsAreBounded(t *testing.T) {
	longest := declaredPort{ServicePort: defaults.ServicePort{Number: 65535, Listens: 1}, target: "fifteen-letters"}
	if n := len(servicePorts(slices.Repeat([]declaredPort{longest}, 32))); n > wellknown.MaxServicePorts {
		t.Errorf("%d bytes", n)
	}
}

// TestServicePortsOnPods verifies that the template has the annotation only if port numbers and
// target ports differ.
func TestServicePortsOnPods(t *testing.T) {
	for _, test := range []struct {
		object *v1alpha2.NginxOperator
		want   string
	}{
		{fixture.NewObject(fixture.Ports("http", 80)), ""},
		{fixture.NewObject(fixture.Ports("http", "80 to 80")), ""},
		{fixture.NewObject(fixture.Ports("http", "80 to 8080", "admin", 9000)), "http=80"},
		{fixture.NewObject(fixture.Ports(), func(s *v1alpha2.NginxOperatorSpec) {
			s.TLS = []v1alpha2.TLS{{SecretName: "a", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)}}
		}), "tls-443=443"},
	} {
		template := DesiredDeployment(test.object, Inputs{Image: fixture.Image}).Spec.Template
		if got := template.Annotations[wellknown.AnnotationServicePorts]; got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if low := len(template.Spec.SecurityContext.Sysctls) > 0; low != (test.want == "") {
			t.Errorf("%q: the Pod may listen on low ports: %v", test.want, low)
		}
	}
}

// TestNodePortsMoveBetweenPods verifies that a node port moves to another port of the Service once
// all remaining Pods serve that port.
func TestNodePortsMoveBetweenPods(t *testing.T) {
	declared := []corev1.ServicePort{{Port: 80, NodePort: 30080}, {Port: 81}, {Port: 8080}}
	live := func(port, nodePort int32) corev1.ServicePort {
		return corev1.ServicePort{Port: port, NodePort: nodePort}
	}
	for name, test := range map[string]struct {
		now  Running
		want []int32
	}{
		"no Service":          {Running{}, []int32{30080, 0, 0}},
		"nobody has it":       {Running{Service: []corev1.ServicePort{live(8080, 30000)}, pods: 1}, []int32{30080, 0, 0}},
		"has it already":      {Running{Service: []corev1.ServicePort{live(80, 30080)}, pods: 1}, []int32{30080, 0, 0}},
		"of one that leaves":  {Running{Service: []corev1.ServicePort{live(8080, 30080)}, pods: 1}, []int32{0, 0, 30080}},
		"of one that is gone": {Running{Service: []corev1.ServicePort{live(8081, 30080)}, pods: 1}, []int32{30080, 0, 0}},
		"no Pods":             {Running{Service: []corev1.ServicePort{live(8080, 30080)}}, []int32{30080, 0, 0}},
		"all Pods serve the one": {
			Running{Service: []corev1.ServicePort{live(8080, 30080)}, pods: 2, everywhere: sets.New[int32](80)}, []int32{30080, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ports := slices.Clone(declared)
			keepNodePorts(ports, test.now)
			var got []int32
			for _, port := range ports {
				got = append(got, port.NodePort)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestServedEverywhere verifies that the ports that all Pods serve count once one of the Pods is
// ready.
func TestServedEverywhere(t *testing.T) {
	old, both := []ContainerPort{{"http", 8080, 8080}}, []ContainerPort{{"http", 8080, 8080}, {"p-80", 80, 8081}, {"health", 18080, 18080}}
	for name, test := range map[string]struct {
		pods  [][]ContainerPort
		ready []bool
		want  []int32
	}{
		"none ready":     {[][]ContainerPort{both}, []bool{false}, nil},
		"an old one":     {[][]ContainerPort{old, both}, []bool{true, true}, []int32{8080}},
		"only new ones":  {[][]ContainerPort{both, both}, []bool{false, true}, []int32{80, 8080}},
		"old ones ready": {[][]ContainerPort{old, both}, []bool{true, false}, []int32{8080}},
	} {
		now := Running{ready: sets.New[int32]()}
		for i, pod := range test.pods {
			now.addPod(pod, test.ready[i])
		}
		if served := now.everywhere.Intersection(now.ready); !served.Equal(sets.New(test.want...)) {
			t.Errorf("%s: %v", name, sets.List(served))
		}
	}
}
