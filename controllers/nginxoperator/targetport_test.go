package nginxoperator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
)

// What a Pod says of itself is taken as far as it is sound.
func TestServicePortsOfAPod(t *testing.T) {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
		{Name: "http", ContainerPort: 8080}, {Name: "admin", ContainerPort: 9000},
	}}}}
	plain := []containerPort{{"http", 8080, 8080}, {"admin", 9000, 9000}}
	for text, want := range map[string][]containerPort{
		"":                             plain,
		"http=80":                      {{"http", 80, 8080}, {"admin", 9000, 9000}},
		"admin=81,http=80":             {{"http", 80, 8080}, {"admin", 81, 9000}},
		"http=80,other=1":              {{"http", 80, 8080}, {"admin", 9000, 9000}},
		"http=0,admin=70000":           plain,
		"http=-1,admin=":               plain,
		"http,,=,admin":                plain,
		strings.Repeat("x=1,", 10_000): plain,
	} {
		got := containerPortsOf(map[string]string{wellknown.AnnotationServicePorts: text}, spec)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(containerPort{})); diff != "" {
			t.Errorf("%.20q (-want +got):\n%s", text, diff)
		}
	}
}

// The most that can be declared is kept by the cache.
func TestServicePortsAreBounded(t *testing.T) {
	var all []served
	for range 32 {
		all = append(all, served{target: "fifteen-letters", number: 65535, listens: 1})
	}
	if n := len(servicePorts(all)); n > operatormanager.MaxServicePorts {
		t.Errorf("%d bytes", n)
	}
}

// The template has the annotation only where the numbers differ.
func TestServicePortsOnPods(t *testing.T) {
	for _, test := range []struct {
		object *v1alpha2.NginxOperator
		want   string
	}{
		{newObject(ports("http", 80)), ""},
		{newObject(ports("http", "80 to 80")), ""},
		{newObject(ports("http", "80 to 8080", "admin", 9000)), "http=80"},
		{newObject(ports(), func(s *v1alpha2.NginxOperatorSpec) {
			s.TLS = []v1alpha2.TLS{{SecretName: "a", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)}}
		}), "tls-443=443"},
	} {
		template := desiredDeployment(test.object, inputs{image: testImage}).Spec.Template
		if got := template.Annotations[wellknown.AnnotationServicePorts]; got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if low := len(template.Spec.SecurityContext.Sysctls) > 0; low != (test.want == "") {
			t.Errorf("%q: the Pod may listen on low ports: %v", test.want, low)
		}
	}
}

// A node port goes to another port of the Service when all Pods that stay serve that one.
func TestNodePortsMoveBetweenPods(t *testing.T) {
	declared := []served{{number: 80, nodePort: 30080}, {number: 81}, {number: 8080}}
	live := func(port, nodePort int32) corev1.ServicePort {
		return corev1.ServicePort{Port: port, NodePort: nodePort}
	}
	for name, test := range map[string]struct {
		now  running
		want []int32
	}{
		"no Service":          {running{}, []int32{30080, 0, 0}},
		"nobody has it":       {running{service: []corev1.ServicePort{live(8080, 30000)}, pods: 1}, []int32{30080, 0, 0}},
		"has it already":      {running{service: []corev1.ServicePort{live(80, 30080)}, pods: 1}, []int32{30080, 0, 0}},
		"of one that leaves":  {running{service: []corev1.ServicePort{live(8080, 30080)}, pods: 1}, []int32{0, 0, 30080}},
		"of one that is gone": {running{service: []corev1.ServicePort{live(8081, 30080)}, pods: 1}, []int32{30080, 0, 0}},
		"no Pods":             {running{service: []corev1.ServicePort{live(8080, 30080)}}, []int32{30080, 0, 0}},
		"all Pods serve the one": {
			running{service: []corev1.ServicePort{live(8080, 30080)}, pods: 2, everywhere: sets.New[int32](80)}, []int32{30080, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ports := append([]served{}, declared...)
			keepNodePorts(ports, test.now)
			var got []int32
			for _, port := range ports {
				got = append(got, port.nodePort)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What all Pods serve counts once one of them is ready.
func TestServedEverywhere(t *testing.T) {
	old, both := []containerPort{{"http", 8080, 8080}}, []containerPort{{"http", 8080, 8080}, {"p-80", 80, 8081}, {"health", 18080, 18080}}
	for name, test := range map[string]struct {
		pods  [][]containerPort
		ready []bool
		want  []int32
	}{
		"none ready":     {[][]containerPort{both}, []bool{false}, nil},
		"an old one":     {[][]containerPort{old, both}, []bool{true, true}, []int32{8080}},
		"only new ones":  {[][]containerPort{both, both}, []bool{false, true}, []int32{80, 8080}},
		"old ones ready": {[][]containerPort{old, both}, []bool{true, false}, []int32{8080}},
	} {
		var now running
		ready := sets.New[int32]()
		for i, pod := range test.pods {
			now.addPod(pod, test.ready[i], ready)
		}
		if got := now.everywhere.Intersection(ready); !got.Equal(sets.New(test.want...)) {
			t.Errorf("%s: %v", name, sets.List(got))
		}
	}
}
