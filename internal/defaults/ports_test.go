package defaults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestServicePorts verifies the ports of the Service. A port has an appProtocol only if the spec
// declares one.
func TestServicePorts(t *testing.T) {
	port := ptr.To[int32]
	plain := ServicePort{Name: "http", Number: 8080, Listens: 8080}
	for name, test := range map[string]struct {
		spec    v1alpha2.NginxOperatorSpec
		want    []ServicePort
		listens []int32
	}{
		"nothing given": {want: []ServicePort{plain}, listens: []int32{8080}},
		"no plain HTTP": {
			spec:    v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{}, TLS: []v1alpha2.TLS{{SecretName: "a"}}},
			want:    []ServicePort{{Number: 8443, Listens: 8443, TLS: true}},
			listens: []int32{8443},
		},
		"targets": {
			spec: v1alpha2.NginxOperatorSpec{
				Ports: []v1alpha2.Port{
					{Name: "web", Port: 80, TargetPort: port(8080), NodePort: port(30080), AppProtocol: "kubernetes.io/ws"},
					{Name: "https", Port: 9443, AppProtocol: "https"},
				},
				TLS: []v1alpha2.TLS{{SecretName: "a", Port: port(443), TargetPort: port(8443), NodePort: port(30443)}, {SecretName: "b"}},
			},
			want: []ServicePort{
				{Name: "web", Number: 80, Listens: 8080, NodePort: 30080, AppProtocol: "kubernetes.io/ws"},
				{Name: "https", Number: 9443, Listens: 9443, TLS: true, AppProtocol: "https"},
				{Number: 443, Listens: 8443, NodePort: 30443, TLS: true},
			},
			listens: []int32{8080, 9443, 8443},
		},
		"certificates on one port": {
			spec: v1alpha2.NginxOperatorSpec{
				TLS: []v1alpha2.TLS{{SecretName: "a", Port: port(443)}, {SecretName: "b", Port: port(443)}},
			},
			want:    []ServicePort{plain, {Number: 443, Listens: 443, TLS: true}},
			listens: []int32{8080, 443},
		},
	} {
		if diff := cmp.Diff(test.want, ServicePorts(&test.spec)) + cmp.Diff(test.listens, ListenPorts(&test.spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSameSpec verifies that an empty list of ports differs from an absent one. Other empty fields
// equal absent ones.
func TestSameSpec(t *testing.T) {
	none, empty := v1alpha2.NginxOperatorSpec{}, v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{}}
	if SameSpec(&none, &empty) || !SameSpec(&none, &none) || !SameSpec(&empty, empty.DeepCopy()) {
		t.Error("an empty list of ports is taken for none")
	}
	if !SameSpec(&none, &v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{}}) {
		t.Error("an empty list of certificates is not taken for none")
	}
}
