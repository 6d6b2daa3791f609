package integration

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestAdmissionRefusesPorts verifies that admission rejects invalid port numbers, node ports, and
// protocols, each with its remedy.
func TestAdmissionRefusesPorts(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for title, test := range map[string]struct{ spec, want string }{
		"target port 0": {
			spec: "ports: [{name: a, port: 80, targetPort: 0}]",
			want: "spec.ports[0].targetPort: Invalid value: 0: spec.ports[0].targetPort in body should be greater than or equal to 1",
		},
		"large target port": {
			spec: "tls: [{secretName: a, port: 80, targetPort: 65536}]",
			want: "spec.tls[0].targetPort: Invalid value: 65536: spec.tls[0].targetPort in body should be less than or equal to 65535",
		},
		"node port 0": {
			spec: "{ports: [{name: a, port: 80, nodePort: 0}], service: {type: NodePort}}",
			want: "spec.ports[0].nodePort: Invalid value: 0: spec.ports[0].nodePort in body should be greater than or equal to 1",
		},
		"long appProtocol": {
			spec: "ports: [{name: a, port: 80, appProtocol: " + strings.Repeat("a", 318) + "}]",
			want: "spec.ports[0].appProtocol: Too long: may not be more than 317 bytes",
		},
		"two targets of one port of certificates": {
			spec: "tls: [{secretName: a, port: 443}, {secretName: b, port: 443, targetPort: 8443}]\n" + inline("listen 443 ssl;"),
			want: "spec.tls: Invalid value: tls: certificates with the same port must have the same targetPort, and certificates with different " +
				"ports must have different ones; correct targetPort",
		},
		"target port of two certificates": {
			spec: "tls: [{secretName: a, port: 443, targetPort: 8443}, {secretName: b, port: 8443}]",
			want: "spec.tls: Invalid value: tls: certificates with the same port must have the same targetPort",
		},
		"node port of the second certificate on a port": {
			spec: "service: {type: NodePort}\ntls: [{secretName: a, port: 8443}, {secretName: b, port: 8443, nodePort: 30443}]\n" +
				inline("listen 8443 ssl;"),
			want: "spec.tls[1].nodePort: Invalid value: 30443: only the first certificate on a port can set nodePort; move nodePort to the first " +
				"certificate",
		},
		"target port twice": {
			spec: "ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 8080}]",
			want: "spec.ports: Invalid value: ports: nginx cannot listen on the same number for two ports; change the targetPort of one of them",
		},
		"target port that is plain and TLS": {
			spec: "tls: [{secretName: a, port: 443, targetPort: 8080}]",
			want: "spec.tls: Invalid value: tls: nginx already listens on the targetPort for plain HTTP (8080 by default); change the " +
				"certificate's targetPort",
		},
		"target port without a port": {
			spec: "tls: [{secretName: a, targetPort: 8443}]",
			want: "spec.tls[0]: Invalid value: targetPort and nodePort require port; set port, or remove them",
		},
		"neither plain HTTP nor TLS": {
			spec: "ports: []",
			want: "spec.ports: Invalid value: ports: an empty list disables plain HTTP, and no certificate has a port; set a port in tls, or " +
				"remove ports to listen on 8080",
		},
		"no plain HTTP and a certificate that is only mounted": {
			spec: "ports: []\ntls: [{secretName: a}]\n" + inline("return 204;"),
			want: "spec.ports: Invalid value: ports: an empty list disables plain HTTP, and no certificate has a port",
		},
		"node port of a ClusterIP": {
			spec: "ports: [{name: a, port: 80, nodePort: 30090}]",
			want: "spec.ports: Invalid value: ports: nodePort requires a Service of type NodePort or LoadBalancer; set service.type or remove " +
				"nodePort",
		},
		"node port of a certificate and a ClusterIP": {
			spec: "{tls: [{secretName: a, port: 443, nodePort: 30090}], service: {type: ClusterIP}}",
			want: "spec.tls: Invalid value: tls: nodePort requires a Service of type NodePort or LoadBalancer; set service.type or remove nodePort",
		},
		"appProtocol": {
			spec: "ports: [{name: a, port: 80, appProtocol: 'web socket'}]",
			want: `spec.ports[0].appProtocol: Invalid value: "web socket": appProtocol must be a name such as http, or a domain and a name such ` +
				`as kubernetes.io/ws; each must contain only letters, digits, hyphens, dots, and underscores, and must start and end with a letter ` +
				`or digit`,
		},
	} {
		t.Run(title, func(t *testing.T) { refused(t, namespace, v1alpha2.GroupVersion.Version, test.spec, test.want) })
	}
}
