package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// tsuru returns an Nginx with fields of its spec, in the flow style of YAML.
func tsuru(spec string) string {
	return "apiVersion: nginx.tsuru.io/v1alpha1\nkind: Nginx\nmetadata: {name: a}\nspec: {" + spec + "}"
}

const everyFieldOfTsuru = `apiVersion: nginx.tsuru.io/v1alpha1
kind: Nginx
metadata: {name: blog, labels: {team: a}}
spec:
  config:
    kind: Inline
    value: |
      events { use epoll; }
      http {
        server {
          listen 8080;
          listen 8443 ssl;
          ssl_certificate /etc/nginx/certs/blog-tls/tls.crt;
          ssl_certificate_key /etc/nginx/certs/blog-tls/tls.key;
          include /etc/nginx/extra_files/headers.conf;
        }
      }
  extraFiles: {name: blog-files}
  tls: [{secretName: blog-tls, hosts: [a.example.com, b.example.com]}]
  ingress: {ingressClassName: nginx, annotations: {a: b, nginx.tsuru.io/allocate-gcp-ipv6: "true"}, labels: {c: d}}
  service: {type: ClusterIP, loadBalancerIP: 192.0.2.1, usePodSelector: false, externalTrafficPolicy: Local, labels: {e: f}}
  cache: {path: /var/cache/blog, size: 2Gi}
  healthcheckPath: /healthcheck
  lifecycle: {preStop: {exec: {command: [sleep, "5"]}}, postStart: {exec: {command: ["true"]}}}
  podTemplate:
    hostNetwork: false
    labels: {tier: edge}
    ports:
    - {name: http, containerPort: 8080, protocol: TCP}
    - {name: dns, containerPort: 5353, protocol: UDP}
    - {name: metrics, containerPort: 9113}
    toleration: [{key: a, operator: Exists}]
    serviceAccountName: blog
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    containers: [{name: ship, image: docker.io/library/busybox:1.36, volumeMounts: [{name: logs, mountPath: /logs}]}]
    podSecurityContext: {runAsUser: 101, fsGroup: 101}
    containerSecurityContext: {runAsGroup: 102, allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [SYS_TIME]}}
    volumes:
    - {name: logs, emptyDir: {}}
    - {name: pages, persistentVolumeClaim: {claimName: pages}}
    volumeMounts:
    - {name: logs, mountPath: /var/log/blog}
    - {name: pages, mountPath: /srv/a, subPath: a}
    - {name: pages, mountPath: /srv/b, subPath: b}
`

// TestEveryFieldOfTsuru converts an Nginx with all fields. Each is converted or listed.
func TestEveryFieldOfTsuru(t *testing.T) {
	result := only(t, everyFieldOfTsuru)
	text, err := result.YAML()
	if err != nil {
		t.Fatal(err)
	}
	const want = `# Replaces Nginx blog. To migrate without downtime, see docs/guide/coming-from.md.
# Keep ConfigMap blog-files: the spec references it.
# Keep PersistentVolumeClaim pages: the spec references it.
# Keep Secret blog-tls: the spec references it.
# Keep ServiceAccount blog: the spec references it.
# Fields without an equivalent:
# - Nginx blog.spec.podTemplate.containerSecurityContext.capabilities.add: the operator's Pods comply with Pod Security restricted;` +
		` set values that restricted allows with spec.patches
# - Nginx blog.spec.podTemplate.volumeMounts[2]: /srv/b: spec.volumes mounts a volume only once; add a volume with another name
# - Nginx blog.spec.podTemplate.ports[1].protocol: UDP: the operator serves HTTP over TCP only, so port 5353 is omitted
# - Nginx blog.spec.service.usePodSelector: the operator's Service always selects the Pods
# - Nginx blog.spec.ingress.annotations.nginx.tsuru.io/allocate-gcp-ipv6: the operator creates one Ingress; create the one for IPv6 yourself
# - Nginx blog.spec.ingress.labels: spec.expose.ingress has no labels
# - Nginx blog.spec.ingress: tsuru's Ingress also routes the requests for all other hosts; spec.expose.ingress.hosts has only those of` +
		` spec.tls
# - Nginx blog.spec.lifecycle.postStart: use spec.initContainers or spec.sidecars
# - Nginx blog.spec.lifecycle.preStop: the operator waits for open connections itself; see spec.drainSeconds
# - Nginx blog.spec.service.loadBalancerIP: Kubernetes deprecated it; use an annotation of your load balancer in spec.service.annotations
# Check before you apply:
# - Nginx blog.metadata.labels: they are not copied; add those that you need to the NginxOperator, or to its children with spec.patches
# - spec.image: tsuru's default is nginx:latest, and the operator's default is the image of its release
# - Nginx blog.spec.healthcheckPath: the operator's probes ask a server of the operator instead of /healthcheck, so a Pod is ready as` +
		` soon as nginx runs
# - the Pods have app.kubernetes.io/instance: blog-web instead of the labels nginx.tsuru.io/app=nginx and` +
		` nginx.tsuru.io/resource-name=blog. If another object selects the Pods by them, for example a NetworkPolicy, a monitor, or an` +
		` affinity, change it
# - Nginx blog.spec.podTemplate.containers[0]: it gets runAsGroup 102 of the nginx container, because spec.securityContext applies to` +
		` all containers; check that it works with it
# - container port 9113 is not a port of Service blog-service, and the operator's NetworkPolicy closes it; if clients use it, add it to` +
		` spec.ports
apiVersion: operator.example.com/v1alpha2
kind: NginxOperator
metadata:
  name: blog-web
spec:
  cache:
    path: /var/cache/blog
    size: 2151Mi
  config:
    inline: |
      server {
        listen 8080;
        listen 8443 ssl;
        ssl_certificate /etc/nginx/tls/blog-tls/tls.crt;
        ssl_certificate_key /etc/nginx/tls/blog-tls/tls.key;
        include /etc/nginx/extra_files/headers.conf;
      }
  expose:
    ingress:
      annotations:
        a: b
      className: nginx
      hosts:
      - host: a.example.com
        tlsSecretName: blog-tls
      - host: b.example.com
        tlsSecretName: blog-tls
  nginx:
    events: |
      use epoll;
  podTemplate:
    labels:
      tier: edge
    tolerations:
    - key: a
      operator: Exists
    topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: zone
      whenUnsatisfiable: ScheduleAnyway
  ports:
  - name: http
    port: 80
    targetPort: 8080
  rollout:
    maxSurge: 1
    maxUnavailable: 0
  securityContext:
    fsGroup: 101
    runAsGroup: 102
    runAsUser: 101
  service:
    labels:
      e: f
  serviceAccountName: blog
  sidecars:
  - image: docker.io/library/busybox:1.36
    name: ship
    volumeMounts:
    - mountPath: /logs
      name: logs
  tls:
  - port: 443
    secretName: blog-tls
    targetPort: 8443
  volumes:
  - emptyDir: {}
    mountPath: /var/log/blog
    name: logs
  - mountPath: /srv/a
    name: pages
    persistentVolumeClaim:
      claimName: pages
    subPath: a
  - configMap:
      name: blog-files
    mountPath: /etc/nginx/extra_files
    name: extra-files
    readOnly: true
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPortsOfTsuru verifies the ports of the Service. tsuru's Service has ports 80 and 443 in every
// case (pkg/k8s/k8s.go:255 to 301 at commit 77f209d1101e).
func TestPortsOfTsuru(t *testing.T) {
	inline := func(servers string) string { return "config: {kind: Inline, value: 'http { " + servers + " }'}" }
	const (
		both, tls = "server { listen 8080; } server { listen 8443 ssl; }", ", tls: [{secretName: a}, {secretName: b}]"
		omitted   = "port 443 of tsuru's Service is omitted"
		noPlain   = "port 80 of tsuru's Service is omitted"
	)
	port := func(name string, number, target int32) v1alpha2.Port {
		return v1alpha2.Port{Name: name, Port: number, TargetPort: ptr.To(target)}
	}
	secure := port("https", 443, 8443)
	secure.AppProtocol = "https"
	plain := []v1alpha2.Port{port("http", 80, 8080)}
	certificates := []v1alpha2.TLS{
		{SecretName: "a", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)},
		{SecretName: "b", Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)},
	}
	for name, test := range map[string]struct {
		spec  string
		ports []v1alpha2.Port
		tls   []v1alpha2.TLS
		says  string
	}{
		"nothing":         {"replicas: 1", plain, nil, omitted},
		"plain HTTP only": {inline("server { listen 8080; }"), plain, nil, omitted},
		"certificates":    {inline(both) + tls, plain, certificates, ""},
		"a certificate without a configuration": {
			"replicas: 1" + tls, plain, []v1alpha2.TLS{certificates[0], {SecretName: "b"}}, "",
		},
		"certificates that are only mounted": {
			inline("server { listen 8080; }") + tls, plain, []v1alpha2.TLS{{SecretName: "a"}, {SecretName: "b"}}, omitted,
		},
		"a certificate from elsewhere": {inline(both), append(plain, secure), nil, ""},
		"a load balancer that ends TLS": {
			inline("server { listen 8080; listen 8443; }"), append(plain, port("https", 443, 8443)), nil, "",
		},
		"a certificate and TLS only": {
			inline("server { listen 8443 ssl; }") + tls, []v1alpha2.Port{}, certificates, noPlain,
		},
		"TLS only": {
			spec: inline("server { listen 8443 ssl; }"), ports: []v1alpha2.Port{secure},
			says: noPlain + ", because no server in the text of the configuration listens on " +
				"its targetPort 8080; if an included file has one, set the port in spec.tls or spec.ports",
		},
		"the host's network": {
			spec:  inline("server { listen 80; listen 443; }") + ", podTemplate: {hostNetwork: true}",
			ports: []v1alpha2.Port{{Name: "http", Port: 80}, {Name: "https", Port: 443}},
			says:  "podTemplate.hostNetwork: Pod Security restricted",
		},
		"other numbers": {
			spec: inline("server { listen 81; listen 8443; }") +
				", podTemplate: {ports: [{name: http, containerPort: 81}, {name: a, containerPort: 9000}]}",
			ports: []v1alpha2.Port{port("http", 80, 81), port("https", 443, 8443)},
			says:  "container port 9000 is not a port of Service a-service",
		},
		"the PROXY protocol": {
			spec: inline("server { listen 8080; listen 9080 proxy_protocol; }") +
				", service: {type: LoadBalancer}, podTemplate: {ports: [{name: proxy-http, containerPort: 9080}]}",
			ports: []v1alpha2.Port{port("proxy-http", 80, 9080)},
		},
		"HTTPS over HTTP": {
			spec:  inline(both) + `, service: {annotations: {nginx.tsuru.io/https-over-http: "true"}}`,
			ports: plain,
			says:  "two ports of the Service cannot have the same targetPort, so port 443 is omitted",
		},
		"UDP": {
			spec:  inline("server { listen 8080; }") + ", podTemplate: {ports: [{name: q, containerPort: 8443, protocol: UDP}]}",
			ports: plain,
			says:  "podTemplate.ports[0].protocol: UDP: the operator serves HTTP over TCP only, so port 8443 is omitted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := only(t, tsuru(test.spec))
			if diff := cmp.Diff(test.ports, result.Object.Spec.Ports); diff != "" {
				t.Errorf("ports: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(test.tls, result.Object.Spec.TLS); diff != "" {
				t.Errorf("tls: -want +got:\n%s", diff)
			}
			said := strings.Join(append(result.Lost, result.Check...), "\n")
			isOmitted := strings.Contains(test.says, "is omitted")
			if !strings.Contains(said, test.says) || strings.Contains(said, "is omitted") != isOmitted {
				t.Errorf("want %q:\n%s", test.says, said)
			}
			if strings.Contains(said, "not valid") {
				t.Errorf("the result is not valid:\n%s", said)
			}
		})
	}
}

// TestConfigMapOfTsuru verifies that servers in a ConfigMap of the manifests determine the ports.
func TestConfigMapOfTsuru(t *testing.T) {
	nginx := tsuru("config: {kind: ConfigMap, name: conf}")
	const configMap = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\n" +
		"data: {nginx.conf: 'http { include /etc/nginx/conf.d/*.conf; server { listen 8080; listen 8443; } }'}"
	for manifests, ports := range map[string]int{nginx: 1, nginx + configMap: 2} {
		result := only(t, manifests)
		if len(result.Object.Spec.Ports) != ports || result.Object.Spec.Config.ConfigMapRef.Name != "conf" {
			t.Errorf("spec %+v, want %d ports", result.Object.Spec, ports)
		}
		const want = "key nginx.conf of ConfigMap conf must have only the content of the http block; move the rest to spec.nginx. " +
			"Its paths below /etc/nginx/extra_files change to /etc/nginx/files, and below /etc/nginx/certs to /etc/nginx/tls"
		if !strings.Contains(strings.Join(result.Check, "\n"), want) {
			t.Errorf("no comment says %q: %q", want, result.Check)
		}
	}
}

// TestCacheOfTsuru verifies that the volume has at least the size of tsuru's, which is 5 percent
// larger than the declared size (pkg/k8s/k8s.go:587 at commit 77f209d1101e).
func TestCacheOfTsuru(t *testing.T) {
	for declared, want := range map[string]string{
		"256Mi": "269Mi", "1Gi": "1076Mi", "100Gi": "105Gi", "1G": "1002Mi", "1073741824": "1076Mi", "1500M": "1503Mi", "1": "1Mi",
	} {
		result := only(t, tsuru("cache: {path: /var/cache/a, inMemory: true, size: "+declared+"}"))
		if diff := cmp.Diff(&v1alpha2.Cache{Path: "/var/cache/a", Size: want, InMemory: true}, result.Object.Spec.Cache); diff != "" {
			t.Errorf("%s: -want +got:\n%s", declared, diff)
		}
	}
	result := only(t, tsuru("cache: {path: /var/cache/a}"))
	if result.Object.Spec.Cache != nil || !strings.Contains(strings.Join(result.Lost, "\n"), "a cache requires a size") {
		t.Errorf("cache %+v, lost %q", result.Object.Spec.Cache, result.Lost)
	}
}
