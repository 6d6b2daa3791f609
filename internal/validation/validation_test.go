package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/test/golden"
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

// validSpecs have no error that the schema does not have.
var validSpecs = map[string]string{
	"empty": "{}",
	"everything": servers + `
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
`,
	"values": "config: {inline: 'server { listen 8080; return 200 \"${A}${B}\"; }', values: [{name: A, value: a b}, " +
		"{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}",
	"addresses with patched name servers": "{nginx: {resolver: {addresses: [192.0.2.53]}}, patches: [{target: {kind: Deployment}, " +
		"patch: '{spec: {template: {spec: {dnsPolicy: Default}}}}'}]}",
	"main and events": "nginx: {main: pcre_jit on;, events: multi_accept on;, modules: [ngx_http_js_module]}",
	"masks of files": "files: [{path: a/b, configMapRef: {name: a, key: '*'}}, {path: a/c, configMapRef: {name: a, key: '*'}}, " +
		"{path: b, configMapRef: {name: a, key: b}}]",
	"a mask":               "config: {configMapRef: {name: a, key: '*.conf'}}",
	"items of the content": "content: {configMapRef: {name: a, items: [{key: a, path: css/a}, {key: a, path: css/b}, {key: b, path: cs}]}}",
	"target ports that cross": "ports: [{name: a, port: 80, targetPort: 81}, " +
		"{name: b, port: 81, targetPort: 80}]",
	"no plain HTTP": "{ports: [], tls: [{secretName: shop}]}",
	"TLS on several ports": "{ports: [{name: a, port: 9443, appProtocol: https}], " +
		"tls: [{secretName: shop, port: 8443}]}",
	"TLS on a port with a configuration elsewhere": "{config: {configMapRef: {name: a}}, " +
		"ports: [{name: a, port: 9443, appProtocol: https}]}",
	"port of two certificates with a configuration elsewhere": "{config: {configMapRef: {name: a}}, " +
		"tls: [{secretName: a, port: 443}, {secretName: b, port: 443}]}",
	"what the API server judges": `
resources: {requests: {cpu: 2, memory: -1, disk: 1}, limits: {cpu: 1}}
podTemplate: {tolerations: [{operator: Is}], nodeSelector: {a b: c}, topologySpreadConstraints: [{}], priorityClassName: High}
service: {type: LoadBalancer, loadBalancerSourceRanges: [a], ipFamilyPolicy: All, ipFamilies: [IPv5]}
networkPolicy: {from: [{}, {ipBlock: {cidr: a}}]}
`,
	"autoscaling":            "autoscaling: {minReplicas: 3, maxReplicas: 3}",
	"autoscaling by a limit": "{autoscaling: {maxReplicas: 3}, resources: {limits: {cpu: 1}}}",
	"autoscaling by memory":  "{autoscaling: {maxReplicas: 3, targetMemoryUtilizationPercentage: 80}, resources: {requests: {memory: 1Mi}}}",
	"monitoring": "monitoring: {enabled: true, exporter: Sidecar, image: 'exporter:1', resources: {}, " +
		"requestMetrics: {resources: {limits: {memory: 1Gi}}}, podMonitor: {interval: 30s, labels: {release: prometheus}}, " +
		"alerts: {errorPercent: 100, latencyMilliseconds: 1}}",
	"an exporter of one's own": "{monitoring: {exporter: None}, sidecars: [{name: nginx-prometheus-exporter}]}",
	"a receiver of one's own":  "{monitoring: {}, sidecars: [{name: nginx-request-metrics}]}",
	"ports of monitoring": "{monitoring: {requestMetrics: {}}, " +
		"ports: [{name: a, port: 9113}, {name: b, port: 9114}, {name: c, port: 9514}]}",
	"variables": "env: [{name: TZ, value: Europe/Berlin}, {name: a.b-c_D}]",
	"volumes": `
volumes:
- {name: a, mountPath: /etc/nginx/snippets, configMap: {name: a}}
- {name: b, mountPath: /usr/share/nginx/html, subPath: site/pages, emptyDir: {}}
- {name: c, mountPath: /dev/shm, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
- {name: d, mountPath: /tmpfiles, emptyDir: {}}
- {name: e, emptyDir: {}}
- {name: f, emptyDir: {}}
`,
	"containers": `
volumes: [{name: a, emptyDir: {}}]
initContainers: [{name: make, volumeMounts: [{name: a, mountPath: /tmp}]}]
sidecars: [{name: refresh, image: 'busybox:1.37', volumeMounts: [{name: a, mountPath: /a, subPath: b}, {name: a, mountPath: /c}]}]
`,
}

// invalidSpecs have errors that the schema does not have: testdata/messages.txt.
var invalidSpecs = map[string]string{ //nolint:gosec // no credentials
	"literal of two words": "config: {inline: 'server { listen 8080; client_max_body_size ${SIZE}; }', values: [{name: SIZE, value: 2 m}]}",
	"resolver with patched name servers": "{nginx: {resolver: {}}, patches: [{target: {kind: Deployment}, " +
		"patch: '{spec: {template: {spec: {dnsPolicy: Default}}}}'}]}",
	"files next to a mask": "files: [{path: a, configMapRef: {name: a, key: '*'}}, {path: b/c, configMapRef: {name: a, key: 'x*'}}, " +
		"{path: b/a, secretRef: {name: a, key: b}}, {path: b/d, configMapRef: {name: a, key: y}}, {path: c, configMapRef: {name: a, key: y}}]",
	"items below files": "content: {configMapRef: {name: a, items: [{key: a, path: css/a}, {key: b, path: css}, " +
		"{key: a, path: css/a/b}, {key: a, path: c}]}}",
	"empty expose":                     "expose: {}",
	"image with a scheme":              "image: https://docker.io/nginx",
	"port twice":                       "ports: [{name: a, port: 80}, {name: b, port: 80}]",
	"port of a certificate by default": "{ports: [{name: http, port: 8443}], tls: [{secretName: shop}]}",
	"port of HTTP by default":          "tls: [{secretName: shop, port: 8080}]",
	"target port twice":                "ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 8080}]",
	"target port of HTTP by default":   "tls: [{secretName: shop, port: 443, targetPort: 8080}]",
	"TLS without a certificate":        "ports: [{name: a, port: 9443, appProtocol: https}]",
	"port of two certificates":         "tls: [{secretName: a, port: 443}, {secretName: b, port: 443}]",
	"node port of the second certificate on a port": "{config: {configMapRef: {name: a}}, service: {type: NodePort}, " +
		"tls: [{secretName: a, port: 443}, {secretName: b, port: 443, nodePort: 30443}]}",
	"class": "service: {type: LoadBalancer, loadBalancerClass: a/b/c}",
	"endless quantities": "{resources: {requests: {cpu: 1e1000000000}, limits: {cpu: 1e999999999}}, " +
		"volumes: [{name: a, emptyDir: {sizeLimit: 1e99}}]}",
	"pull Secret":                                "podTemplate: {imagePullSecrets: [{name: A}]}",
	"autoscaling without a request":              "{autoscaling: {maxReplicas: 3}, resources: {}}",
	"autoscaling by a request of nothing":        "{autoscaling: {maxReplicas: 3}, resources: {requests: {cpu: 0}, limits: {cpu: 1}}}",
	"autoscaling by a request of nearly nothing": "{autoscaling: {maxReplicas: 3}, resources: {requests: {cpu: 1e-1000000}}}",
	"autoscaling by memory without a request": "{autoscaling: {maxReplicas: 3, targetMemoryUtilizationPercentage: 80}, " +
		"resources: {requests: {cpu: 1}}}",
	"requests without the exporter": "monitoring: {enabled: false, exporter: None, requestMetrics: {}}",
	"two receivers":                 "{monitoring: {requestMetrics: {}}, sidecars: [{name: nginx-request-metrics}]}",
	"values of monitoring": "monitoring: {image: ':', resources: {limits: {cpu: 1e37}}, " +
		"requestMetrics: {resources: {limits: {cpu: 1e37}}}, " +
		"podMonitor: {labels: {app.kubernetes.io/name: a}}, alerts: {labels: {app.kubernetes.io/name: a}}}",
	"two exporters":      "{monitoring: {}, sidecars: [{name: nginx-prometheus-exporter}]}",
	"names of variables": "env: [{name: 1A}, {name: 'A;'}, {name: NGINX}]",
	"names of volumes":   "volumes: [{name: config}, {name: tls-a}, {name: cache}, {name: a.b}]",
	"paths": `
content: {configMapRef: {name: pages}}
volumes:
- {name: a, mountPath: srv}
- {name: b, mountPath: /srv/../tmp}
- {name: c, mountPath: /srv/, subPath: ../a}
- {name: d, mountPath: /srv/a, subPath: /a}
- {name: e, mountPath: /srv/a}
- {name: f, subPath: a}
- {name: g, mountPath: '/srv:a'}
`,
	"paths of the operator": `
content: {configMapRef: {name: pages}}
files: [{path: a.conf, configMapRef: {name: a, key: a}}]
cache: {path: /srv/cache/nginx, size: 1Gi}
volumes:
- {name: a, mountPath: /}
- {name: b, mountPath: /etc}
- {name: c, mountPath: /etc/nginx/tls/shop}
- {name: d, mountPath: /etc/nginx/mime.types}
- {name: e, mountPath: /tmp/cache}
- {name: f, mountPath: /dev}
- {name: g, mountPath: /usr/share/nginx/html/files}
- {name: h, mountPath: /usr/share}
- {name: i, mountPath: /etc/nginx/files}
- {name: j, mountPath: /srv/cache}
`,
	"names of containers": "{initContainers: [{name: a}, {name: nginx}, {name: a_b}], sidecars: [{name: a}, {name: b}, {name: b}]}",
	"what containers have": `
volumes: [{name: a, emptyDir: {}}]
initContainers:
- {name: a, image: A, resources: {limits: {cpu: 1e99}}}
sidecars:
- {name: b, volumeMounts: [{name: b, mountPath: /b}, {name: config, mountPath: b, subPath: ../a}]}
`,
}

// TestSpec verifies the rules that the schema does not have, and their messages. Messages about a
// configuration are those of internal/nginxconf.
func TestSpec(t *testing.T) {
	for name, text := range validSpecs {
		if errs := Spec(specOf(t, text), field.NewPath("spec")); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}

	cases := map[string]fixture.Case{}
	add := func(name, input string, errs field.ErrorList) {
		entry := fixture.Case{Input: input}
		for _, err := range errs {
			entry.Messages = append(entry.Messages, err.Error())
		}
		cases[name] = entry
	}
	for name, text := range invalidSpecs {
		add(name, text, Spec(specOf(t, text), field.NewPath("spec")))
	}
	const noSource = "volumes: [{name: a}]"
	add("a volume without a source", noSource, Complete(specOf(t, noSource), field.NewPath("spec")))

	large := "image: " + strings.Repeat("a", maxSpecBytes)
	add("a large spec", large, Spec(specOf(t, large), field.NewPath("spec")))
	annotations := "expose: {ingress: {annotations: {a: " + strings.Repeat("a", maxExposeBytes) + "}}}"
	add("a large Ingress", annotations, Spec(specOf(t, annotations), field.NewPath("spec")))
	for name, format := range map[string]string{
		"many tolerations": "podTemplate: {tolerations: [%s]}", "many peers": "networkPolicy: {from: [%s]}",
		"many keys of a volume": "volumes: [{name: a, configMap: {name: a, items: [%s]}}]",
	} {
		text := fmt.Sprintf(format, strings.TrimSuffix(strings.Repeat("{}, ", maxJudgedValues), ", "))
		add(name, text, Spec(specOf(t, text), field.NewPath("spec")))
	}
	fixture.GoldenCases(t, "messages.txt", cases)
}

// TestMessages verifies that each message is in a golden file.
func TestMessages(t *testing.T) {
	golden.Messages(t, map[string]string{
		"failed to encode the spec: …":           "every spec can be encoded",
		"failed to read the spec: …":             "every spec can be decoded",
		"and … more errors; correct these first": "TestSpecReportsTheFirstErrors",
		"… in body ":                             "a part of a message of the API server",
		"… … is invalid: ":                       "the start of a message of the API server",
	}, "testdata/messages.txt", "testdata/warnings.txt")
}

// wantErrors fails the test unless the errors have these prefixes.
func wantErrors(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	var texts []string
	for i, err := range errs {
		text := err.Error()
		if i < len(want) && strings.HasPrefix(text, want[i]) {
			text = want[i]
		}
		texts = append(texts, text)
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// TestSpecReportsTheFirstErrors verifies that the number of errors is bounded, because Kubernetes
// joins errors in quadratic time.
func TestSpecReportsTheFirstErrors(t *testing.T) {
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
