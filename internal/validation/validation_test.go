package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const servers = `
config:
  inline: |
    server {
      listen 8080;
    }
`

func specOf(t *testing.T, text string) *v1alpha2.NginxOperatorSpec {
	t.Helper()
	spec := &v1alpha2.NginxOperatorSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestSpec(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"empty": {spec: "{}"},
		"everything": {spec: servers + `
replicas: 3
image: registry.example.com:5000/nginx@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
ports: [{name: http, port: 8080}]
content: {configMapRef: {name: pages.v1}}
tls: [{secretName: shop.example.com}]
service: {type: LoadBalancer, loadBalancerClass: example.com/lb, labels: {team: shop}, annotations: {example.com/lb: internal}}
resources: {requests: {cpu: 100m, memory: 32Mi, example.com/nic: 1}, limits: {memory: 64Mi, example.com/nic: 1}}
drainSeconds: 5
podTemplate:
  labels: {team: shop}
  annotations: {example.com/note: "anything at all"}
  nodeSelector: {kubernetes.io/os: linux}
  tolerations:
  - {operator: Exists}
  - {key: dedicated, value: web, effect: NoSchedule}
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: cores, operator: Gt, values: ["4"]}, {key: gpu, operator: DoesNotExist}]
        - matchFields: [{key: metadata.name, operator: In, values: [node-1]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, preference: {matchExpressions: [{key: zone, operator: In, values: [a, b]}]}}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {team: shop}}, namespaces: [shop]}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2, nodeTaintsPolicy: Honor}
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
  priorityClassName: high
  imagePullSecrets: [{name: registry}]
`},
		"image": {spec: "image: Docker.io/Me/nginx:1.28", want: []string{
			`spec.image: Invalid value: "Docker.io/Me/nginx:1.28": invalid reference format: repository name (Me/nginx) must be lowercase; ` +
				`write for example docker.io/nginxinc/nginx-unprivileged:1.30.7`,
		}},
		"image with a scheme": {spec: "image: https://docker.io/nginx", want: []string{
			`spec.image: Invalid value: "https://docker.io/nginx": invalid reference format; ` +
				`write for example docker.io/nginxinc/nginx-unprivileged:1.30.7`,
		}},
		"port twice": {spec: "ports: [{name: a, port: 80}, {name: b, port: 80}]", want: []string{
			"spec.ports[1].port: Invalid value: 80: spec.ports[0].port already has this port; choose another port",
		}},
		"port of a certificate by default": {spec: "{ports: [{name: http, port: 8443}], tls: [{secretName: shop}]}", want: []string{
			"spec.tls[0].port: Invalid value: 8443: spec.ports[0].port already has this port; choose another port",
		}},
		"port of HTTP by default": {spec: "tls: [{secretName: shop, port: 8080}]", want: []string{
			"spec.tls[0].port: Invalid value: 8080: the default of spec.ports already has this port; choose another port",
		}},
		"target port twice": {spec: "ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 8080}]", want: []string{
			"spec.ports[1].port: Invalid value: 8080: nginx already listens on it for spec.ports[0].targetPort; choose another targetPort",
		}},
		"target ports that cross": {spec: "ports: [{name: a, port: 80, targetPort: 81}, {name: b, port: 81, targetPort: 80}]"},
		"target port of HTTP by default": {spec: "tls: [{secretName: shop, port: 443, targetPort: 8080}]", want: []string{
			"spec.tls[0].targetPort: Invalid value: 8080: nginx already listens on it for the default of spec.ports; choose another targetPort",
		}},
		"no plain HTTP": {spec: "{ports: [], tls: [{secretName: shop}]}"},
		"TLS without a certificate": {spec: "ports: [{name: a, port: 9443, appProtocol: https}]", want: []string{
			`spec.ports[0].appProtocol: Invalid value: "https": https requires a certificate; add one to tls, or add a server block with ssl to ` +
				`config`,
		}},
		"TLS on several ports": {spec: "{ports: [{name: a, port: 9443, appProtocol: https}], tls: [{secretName: shop, port: 8443}]}"},
		"TLS on a port with a configuration elsewhere": {
			spec: "{config: {configMapRef: {name: a}}, ports: [{name: a, port: 9443, appProtocol: https}]}",
		},
		"port of two certificates": {spec: "tls: [{secretName: a, port: 443}, {secretName: b, port: 443}]", want: []string{
			"spec.tls[1].port: Invalid value: 443: spec.tls[0].port already has this port; choose another port",
		}},
		"port of two certificates with a configuration elsewhere": {
			spec: "{config: {configMapRef: {name: a}}, tls: [{secretName: a, port: 443}, {secretName: b, port: 443}]}",
		},
		"certificates on a port that differ": {
			spec: "{config: {configMapRef: {name: a}}, service: {type: NodePort}, tls: [{secretName: a, port: 443}, " +
				"{secretName: b, port: 443, targetPort: 8443, nodePort: 30443}]}",
			want: []string{
				"spec.tls[1].targetPort: Invalid value: 8443: certificates with the same port must have the same targetPort, which is 443 for the " +
					"first certificate",
				"spec.tls[1].nodePort: Invalid value: 30443: only the first certificate on a port can set nodePort; move nodePort to the first " +
					"certificate",
			},
		},
		"masks": {
			spec: "{config: {configMapRef: {name: a, key: '*.conf'}}, files: [{path: a, configMapRef: {name: a, key: '*'}}]}",
			want: []string{
				`spec.config.configMapRef.key: Invalid value: "*.conf": has a *, which this release does not support; write one key, for ` +
					`example nginx.conf`,
				`spec.files[0].configMapRef.key: Invalid value: "*": has a *, which this release does not support; write one key, for ` +
					`example nginx.conf`,
			},
		},
		"class": {spec: "service: {type: LoadBalancer, loadBalancerClass: a/b/c}", want: []string{
			`spec.service.loadBalancerClass: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', ` +
				`and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', ` +
				`regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') ` +
				`with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
		}},
		"endless quantities": {spec: "resources: {requests: {cpu: 1e1000000000}, limits: {cpu: 1e999999999}}", want: []string{
			"spec.resources.requests[cpu]: Invalid value: must not be more than 1e36; lower it",
			"spec.resources.limits[cpu]: Invalid value: must not be more than 1e36; lower it",
		}},
		"pull Secret": {spec: "podTemplate: {imagePullSecrets: [{name: A}]}", want: []string{
			`spec.podTemplate.imagePullSecrets[0].name: Invalid value: "A": ` + subdomain,
		}},
		"what the API server judges": {spec: `
resources: {requests: {cpu: 2, memory: -1, disk: 1}, limits: {cpu: 1}}
podTemplate: {tolerations: [{operator: Is}], nodeSelector: {a b: c}, topologySpreadConstraints: [{}], priorityClassName: High}
service: {type: LoadBalancer, loadBalancerSourceRanges: [a], ipFamilyPolicy: All, ipFamilies: [IPv5]}
networkPolicy: {from: [{}, {ipBlock: {cidr: a}}]}
`},
		"configuration": {spec: "config: {inline: \"server {\\n  listen 8080;\\n  daemon off;\\n  proxy_pas x;\\n}\"}", want: []string{
			"spec.config.inline: Invalid value: line 3: daemon: cannot be set here: nginx runs in the foreground, or its container would end; " +
				"remove it",
			"spec.config.inline: Invalid value: line 4: proxy_pas: nginx does not know it; correct the name, " +
				"or set spec.image to an image that has its module compiled in",
		}},
		"configuration without a declared port": {spec: "ports: [{name: http, port: 8080}, {name: admin, port: 8081}]" + servers, want: []string{
			"spec.config.inline: Invalid value: listen: spec.ports[1].port 8081: no server listens on it; " +
				"add `listen 8081;` to a server, or declare the ports that the servers listen on",
		}},
		"configuration that listens on the port of the probes": {spec: `
config: {inline: 'server { listen 8080; listen 18080; }'}
`, want: []string{
			"spec.config.inline: Invalid value: line 1: listen: port 18080 is used by the operator's own server for the kubelet's probes; " +
				"choose another port",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Spec(specOf(t, test.spec), field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
	"and must start and end with an alphanumeric character (e.g. 'example.com', " +
	"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

// TestSpecIsTooLarge verifies that a spec is rejected if v1alpha1 could not store it in an
// annotation.
func TestSpecIsTooLarge(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{Inline: "server { listen 8080; }\n# " + strings.Repeat("ü", 120_000)}}
	want := "spec: Invalid value: has 240051 bytes as JSON, and the limit is 204800; move the configuration to a ConfigMap and reference " +
		"it in spec.config.configMapRef"
	if got := Spec(spec, field.NewPath("spec")).ToAggregate().Error(); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// TestSpecTellsOfTheFirstErrors verifies that the number of errors is bounded, because Kubernetes
// joins errors in quadratic time.
func TestSpecTellsOfTheFirstErrors(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{Monitoring: &v1alpha2.Monitoring{Alerts: &v1alpha2.Alerts{Labels: map[string]string{}}}}
	for i := range 5_000 {
		spec.Monitoring.Alerts.Labels[fmt.Sprintf("operator.example.com/%04d", i)] = ""
	}
	got := Spec(spec, field.NewPath("spec"))
	if len(got) != maxErrors+1 || got[0].Field != "spec.monitoring.alerts.labels[operator.example.com/0000]" ||
		got[maxErrors].Error() != "spec: Forbidden: and 4968 more errors; correct these first" {
		t.Errorf("%d: %v to %v", len(got), got[0], got[len(got)-1])
	}
}

// TestSpecBoundsWhatTheAPIServerJudges verifies that a part with too many values is rejected before
// the API server validates it, because each value can have an error.
func TestSpecBoundsWhatTheAPIServerJudges(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{PodTemplate: &v1alpha2.PodTemplate{Tolerations: make([]corev1.Toleration, maxJudgedValues)}}
	want := "spec.podTemplate: Invalid value: it has more than 1024 values"
	if got := Spec(spec, field.NewPath("spec")).ToAggregate().Error(); got != want {
		t.Error(cmp.Diff(want, got))
	}
	spec = &v1alpha2.NginxOperatorSpec{
		NetworkPolicy: &v1alpha2.NetworkPolicy{From: make([]networkingv1.NetworkPolicyPeer, maxJudgedValues)},
	}
	want = "spec.networkPolicy: Invalid value: it has more than 1024 values"
	if got := Spec(spec, field.NewPath("spec")).ToAggregate().Error(); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"empty": {spec: "{}"},
		"nothing unused": {
			spec: "{tls: [{secretName: shop}], content: {configMapRef: {name: pages}}, image: 'registry.example.com/nginx:1', drainSeconds: 600}",
		},
		"moving tag": {
			spec: "image: quay.io/me/nginx:latest",
			want: []string{
				"spec.image: the tag is latest, so the image can change at any time, and differ between Pods; use a version or a digest",
			},
		},
		"no tag": {
			spec: "image: quay.io/me/nginx",
			want: []string{
				"spec.image: the image has no tag, which means latest, so the image can change at any time, and differ between Pods; use a version " +
					"or a digest",
			},
		},
		"digest": {spec: "image: quay.io/me/nginx@sha256:" + strings.Repeat("a", 64)},
		"long drain": {
			spec: "drainSeconds: 3600",
			want: []string{
				"spec.drainSeconds: draining a node can wait 3600 seconds for each Pod, and the cluster autoscaler gives up after 600 seconds",
			},
		},
		"little memory": {
			spec: "resources: {limits: {memory: 8Mi}}",
			want: []string{"spec.resources.limits[memory]: nginx may not start with 8Mi; set 16Mi or more"},
		},
		"annotation of no use": {
			spec: "podTemplate: {annotations: {seccomp.security.alpha.kubernetes.io/pod: runtime/default}}",
			want: []string{"spec.podTemplate.annotations[seccomp.security.alpha.kubernetes.io/pod]: Kubernetes ignores this annotation; remove it"},
		},
		"certificate of no use": {spec: "tls: [{secretName: a}, {secretName: b}]", want: []string{
			"spec.tls[1]: a certificate without a port has no effect without spec.config; set a port",
		}},
		"unused with a configuration": {spec: servers + "content: {configMapRef: {name: pages}}\ntls: [{secretName: shop}]", want: []string{
			"spec.content: the configuration does not reference /usr/share/nginx/html, so the content is not served; add `root " +
				"/usr/share/nginx/html;`",
			"spec.tls[0]: the configuration does not reference /etc/nginx/tls/shop, so the certificate is not served; " +
				"set ssl_certificate and ssl_certificate_key",
		}},
		"unused as far as is known": {
			spec: "config: {inline: 'server { listen 8080; include /etc/nginx/files/a.conf; }'}\n" +
				"files: [{path: a.conf, configMapRef: {name: a, key: b}}]\ncontent: {configMapRef: {name: pages}}\ntls: [{secretName: shop}]",
		},
		"connections": {spec: "nginx: {workerConnections: 1025}", want: []string{
			"spec.nginx.workerConnections: a connection is an open file, and with the usual limit of 1024 open files (ulimit -n in the " +
				"container) a worker gets at most that many; raise the limit of the container runtime on the nodes, or add workers or replicas",
		}},
		"usual connections": {spec: "nginx: {workerConnections: 1024}"},
		"configuration": {spec: "config: {inline: 'server { listen 8080 http2; }'}", want: []string{
			"spec.config.inline: line 1: listen: the parameter http2 is deprecated; remove it and write `http2 on;` in the server",
		}},
		"paused": {spec: "paused: true", want: []string{"spec.paused: changes are not applied until it is false"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Warnings(specOf(t, test.spec), nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
