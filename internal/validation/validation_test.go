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

// TestSpec verifies the rules that the schema does not have. For each message that the operator
// writes, see test/integration/testdata/refusals.txt.
func TestSpec(t *testing.T) {
	const (
		reserved = "Forbidden: this label is reserved for the operator"
		apart    = "has files of the operator or the image; choose another directory"
		own      = "Forbidden: the names config, tmp, content, files, and cache and the prefixes tls- and operator- are"
		absolute = "must be an absolute path without .., colons, or a trailing slash, for example /srv/files"
		relative = "must be a relative path in the volume without .., for example site/files"
		endless  = "Invalid value: must not be more than 1e36; lower it"
		letters  = "must contain only letters, digits, hyphens, dots, and underscores, and must not start with a digit"
		noVolume = "is not a volume in spec.volumes; add the volume, or correct the name"
	)
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
		"image with a scheme": {spec: "image: https://docker.io/nginx", want: []string{
			`spec.image: Invalid value: "https://docker.io/nginx": invalid reference format; write for example docker.io/`,
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
		"node port of the second certificate on a port": {
			spec: "{config: {configMapRef: {name: a}}, service: {type: NodePort}, " +
				"tls: [{secretName: a, port: 443}, {secretName: b, port: 443, nodePort: 30443}]}",
			want: []string{"spec.tls[1].nodePort: Invalid value: 30443: only the first certificate on a port can set nodePort"},
		},
		"class": {spec: "service: {type: LoadBalancer, loadBalancerClass: a/b/c}", want: []string{
			`spec.service.loadBalancerClass: Invalid value: "a/b/c": a valid label key must consist of`,
		}},
		"endless quantities": {
			spec: "{resources: {requests: {cpu: 1e1000000000}, limits: {cpu: 1e999999999}}, " +
				"volumes: [{name: a, emptyDir: {sizeLimit: 1e99}}]}",
			want: []string{
				"spec.resources.requests[cpu]: " + endless, "spec.resources.limits[cpu]: " + endless,
				"spec.volumes[0].emptyDir.sizeLimit: " + endless,
			},
		},
		"pull Secret": {spec: "podTemplate: {imagePullSecrets: [{name: A}]}", want: []string{
			`spec.podTemplate.imagePullSecrets[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of`,
		}},
		"what the API server judges": {spec: `
resources: {requests: {cpu: 2, memory: -1, disk: 1}, limits: {cpu: 1}}
podTemplate: {tolerations: [{operator: Is}], nodeSelector: {a b: c}, topologySpreadConstraints: [{}], priorityClassName: High}
service: {type: LoadBalancer, loadBalancerSourceRanges: [a], ipFamilyPolicy: All, ipFamilies: [IPv5]}
networkPolicy: {from: [{}, {ipBlock: {cidr: a}}]}
`},
		"autoscaling": {spec: "autoscaling: {minReplicas: 3, maxReplicas: 3}"},
		"autoscaling without a request": {spec: "{autoscaling: {maxReplicas: 3}, resources: {}}", want: []string{
			"spec.resources.requests[cpu]: Required value: spec.autoscaling.targetCPUUtilizationPercentage is a percentage",
		}},
		"autoscaling by a limit": {spec: "{autoscaling: {maxReplicas: 3}, resources: {limits: {cpu: 1}}}"},
		"autoscaling by a request of nothing": {
			spec: "{autoscaling: {maxReplicas: 3}, resources: {requests: {cpu: 0}, limits: {cpu: 1}}}",
			want: []string{"spec.resources.requests[cpu]: Required value"},
		},
		"autoscaling by a request of nearly nothing": {
			spec: "{autoscaling: {maxReplicas: 3}, resources: {requests: {cpu: 1e-1000000}}}",
			want: []string{"spec.resources.requests[cpu]: Required value"},
		},
		"autoscaling by memory": {
			spec: "{autoscaling: {maxReplicas: 3, targetMemoryUtilizationPercentage: 80}, resources: {requests: {memory: 1Mi}}}",
		},
		"autoscaling by memory without a request": {
			spec: "{autoscaling: {maxReplicas: 3, targetMemoryUtilizationPercentage: 80}, resources: {requests: {cpu: 1}}}",
			want: []string{"spec.resources.requests[memory]: Required value"},
		},
		"monitoring": {
			spec: "monitoring: {enabled: true, exporter: Sidecar, image: 'exporter:1', resources: {}, " +
				"podMonitor: {interval: 30s, labels: {release: prometheus}}, alerts: {}}",
		},
		"values of monitoring": {
			spec: "monitoring: {image: ':', resources: {limits: {cpu: 1e37}}, " +
				"podMonitor: {labels: {app.kubernetes.io/name: a}}, alerts: {labels: {app.kubernetes.io/name: a}}}",
			want: []string{
				`spec.monitoring.image: Invalid value: ":"`, "spec.monitoring.resources.limits[cpu]: " + endless,
				"spec.monitoring.podMonitor.labels[app.kubernetes.io/name]: " + reserved,
				"spec.monitoring.alerts.labels[app.kubernetes.io/name]: " + reserved,
			},
		},
		"an exporter of one's own": {spec: "{monitoring: {exporter: None}, sidecars: [{name: nginx-prometheus-exporter}]}"},
		"two exporters": {spec: "{monitoring: {}, sidecars: [{name: nginx-prometheus-exporter}]}", want: []string{
			`spec.sidecars[0].name: Duplicate value: "nginx-prometheus-exporter"`,
		}},
		"variables": {spec: "env: [{name: TZ, value: Europe/Berlin}, {name: a.b-c_D}]"},
		"names of variables": {spec: "env: [{name: 1A}, {name: 'A;'}, {name: NGINX}]", want: []string{
			`spec.env[0].name: Invalid value: "1A": ` + letters, `spec.env[1].name: Invalid value: "A;": ` + letters,
			"spec.env[2].name: Forbidden: nginx uses this variable internally",
		}},
		"volumes": {spec: `
volumes:
- {name: a, mountPath: /etc/nginx/snippets, configMap: {name: a}}
- {name: b, mountPath: /usr/share/nginx/html, subPath: site/pages, emptyDir: {}}
- {name: c, mountPath: /dev/shm, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
- {name: d, mountPath: /tmpfiles, emptyDir: {}}
- {name: e, emptyDir: {}}
- {name: f, emptyDir: {}}
`},
		"names of volumes": {
			spec: "volumes: [{name: config}, {name: tls-a}, {name: cache}, {name: a.b}]",
			want: []string{
				"spec.volumes[0].name: " + own,
				"spec.volumes[1].name: " + own,
				"spec.volumes[2].name: " + own,
				`spec.volumes[3].name: Invalid value: "a.b": must not contain dots`,
			},
		},
		"paths": {
			spec: `
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
			want: []string{
				`spec.volumes[0].mountPath: Invalid value: "srv": ` + absolute,
				`spec.volumes[1].mountPath: Invalid value: "/srv/../tmp": ` + absolute,
				`spec.volumes[2].mountPath: Invalid value: "/srv/": ` + absolute,
				`spec.volumes[2].subPath: Invalid value: "../a": ` + relative,
				`spec.volumes[3].subPath: Invalid value: "/a": ` + relative,
				`spec.volumes[4].mountPath: Duplicate value: "/srv/a"`,
				"spec.volumes[5].mountPath: Required value: subPath requires mountPath; set mountPath, or remove subPath",
				`spec.volumes[6].mountPath: Invalid value: "/srv:a": ` + absolute,
			},
		},
		"paths of the operator": {
			spec: `
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
			want: []string{
				"spec.volumes[0].mountPath: Forbidden: /etc/nginx-operator " + apart,
				"spec.volumes[1].mountPath: Forbidden: /etc/nginx-operator " + apart,
				"spec.volumes[2].mountPath: Forbidden: /etc/nginx/tls " + apart,
				"spec.volumes[3].mountPath: Forbidden: /etc/nginx/mime.types " + apart,
				"spec.volumes[4].mountPath: Forbidden: /tmp " + apart,
				"spec.volumes[5].mountPath: Forbidden: /dev " + apart,
				"spec.volumes[6].mountPath: Forbidden: /usr/share/nginx/html " + apart,
				"spec.volumes[7].mountPath: Forbidden: /usr/share/nginx/html " + apart,
				"spec.volumes[8].mountPath: Forbidden: /etc/nginx/files " + apart,
				"spec.volumes[9].mountPath: Forbidden: /srv/cache/nginx " + apart,
			},
		},
		"containers": {spec: `
volumes: [{name: a, emptyDir: {}}]
initContainers: [{name: make, volumeMounts: [{name: a, mountPath: /tmp}]}]
sidecars: [{name: refresh, image: 'busybox:1.37', volumeMounts: [{name: a, mountPath: /a, subPath: b}, {name: a, mountPath: /c}]}]
`},
		"names of containers": {
			spec: "{initContainers: [{name: a}, {name: nginx}, {name: a_b}], sidecars: [{name: a}, {name: b}, {name: b}]}",
			want: []string{
				`spec.initContainers[1].name: Duplicate value: "nginx"`,
				`spec.initContainers[2].name: Invalid value: "a_b": a lowercase RFC 1123 label must consist of`,
				`spec.sidecars[0].name: Duplicate value: "a"`,
				`spec.sidecars[2].name: Duplicate value: "b"`,
			},
		},
		"what containers have": {
			spec: `
volumes: [{name: a, emptyDir: {}}]
initContainers:
- {name: a, image: A, resources: {limits: {cpu: 1e99}}}
sidecars:
- {name: b, volumeMounts: [{name: b, mountPath: /b}, {name: config, mountPath: b, subPath: ../a}]}
`,
			want: []string{
				`spec.initContainers[0].image: Invalid value: "A": invalid reference format: repository name`,
				"spec.initContainers[0].resources.limits[cpu]: " + endless,
				`spec.sidecars[0].volumeMounts[0].name: Invalid value: "b": ` + noVolume,
				`spec.sidecars[0].volumeMounts[1].name: Invalid value: "config": ` + noVolume,
				`spec.sidecars[0].volumeMounts[1].mountPath: Invalid value: "b": ` + absolute,
				`spec.sidecars[0].volumeMounts[1].subPath: Invalid value: "../a": ` + relative,
			},
		},
	} {
		t.Run(name, func(t *testing.T) { wantErrors(t, Spec(specOf(t, test.spec), field.NewPath("spec")), test.want...) })
	}
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
	source := &v1alpha2.ConfigMapVolume{Items: make([]v1alpha2.KeyToPath, maxJudgedValues)}
	for want, spec := range map[string]v1alpha2.NginxOperatorSpec{
		"spec.podTemplate: Invalid value: it": {
			PodTemplate: &v1alpha2.PodTemplate{Tolerations: make([]corev1.Toleration, maxJudgedValues)},
		},
		"spec.networkPolicy: Invalid value: it": {
			NetworkPolicy: &v1alpha2.NetworkPolicy{From: make([]networkingv1.NetworkPolicyPeer, maxJudgedValues)},
		},
		"spec: Invalid value: env, volumes, initContainers, and sidecars together: it": {
			Volumes: []v1alpha2.Volume{{ConfigMap: source}},
		},
	} {
		wantErrors(t, Spec(&spec, field.NewPath("spec")), want+" has more than 1024 values")
	}
}
