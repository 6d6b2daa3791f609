package migrate

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
)

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(document + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// only returns the result of manifests with one workload.
func only(t *testing.T, text string) Result {
	t.Helper()
	results, err := From(parse(t, text), "")
	if err != nil || len(results) != 1 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	return results[0]
}

// TestSamplesOfTheDocumentation verifies that the samples of the page "Coming from ..." are true.
func TestSamplesOfTheDocumentation(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/guide/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	page, tried := string(raw), 0
	for _, example := range docs.Examples(page) {
		if example.Section == "A chart for a web server" {
			continue // the values of a chart are not manifests
		}
		tried++
		t.Run(example.Section, func(t *testing.T) {
			_, section, _ := strings.Cut(page, "\n## "+example.Section)
			before := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)[1]
			got, want := only(t, before), &v1alpha2.NginxOperator{}
			if err := yaml.UnmarshalStrict([]byte(example.Documents[len(example.Documents)-1]), want); err != nil {
				t.Fatal(err)
			}
			if len(got.Lost) > 0 || len(got.Check) != 1 || !strings.HasPrefix(got.Check[0], "the Pods have app.kubernetes.io/instance: ") {
				t.Errorf("lost: %q, check: %q", got.Lost, got.Check)
			}
			if diff := cmp.Diff(want, got.Object); !equality.Semantic.DeepEqual(want, got.Object) {
				t.Errorf("-page +got:\n%s", diff)
			}
		})
	}
	if tried != 2 {
		t.Errorf("%d samples were tried", tried)
	}
}

// TestSampleOfThePlugin verifies that the sample output on the page about the plugin is true.
func TestSampleOfThePlugin(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/guide/kubectl-nginx.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(raw), "\n$ head -5 shop-web.yaml\n")
	sample, _, _ = strings.Cut(sample, "```")
	shop := strings.NewReplacer("metadata: {name: a}", "metadata: {name: shop, labels: {app: shop}}", "template:\n",
		"selector: {matchLabels: {app: shop}}\n  template:\n    metadata: {labels: {app: shop}}\n").
		Replace(deployment("hostAliases: [{ip: 192.0.2.7, hostnames: [a]}], ", "image: nginx:1.30"))
	result := only(t, shop)
	text, err := result.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if len(sample) < 100 || !strings.HasPrefix(string(text), sample) {
		t.Errorf("the page has\n%sand the command prints\n%s", sample, text)
	}

	_, sample, _ = strings.Cut(string(raw), "\n$ head -4 nginx-web.yaml\n")
	sample, _, _ = strings.Cut(sample, "```")
	file, err := os.ReadFile("testdata/nginx.yaml") // TestFiles compares it with the output
	if err != nil || len(sample) < 100 || !strings.HasPrefix(string(file), sample) {
		t.Errorf("the page has\n%sand the command prints\n%s (%v)", sample, file, err)
	}
}

const exported = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: old
  namespace: shop
  uid: 11111111-1111-1111-1111-111111111111
  resourceVersion: "1"
  annotations: {deployment.kubernetes.io/revision: "4"}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  revisionHistoryLimit: 10
  selector: {matchLabels: {app: old}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  template:
    metadata:
      labels: {app: old, tier: web, edge: ''}
    spec:
      restartPolicy: Always
      dnsPolicy: ClusterFirst
      schedulerName: default-scheduler
      terminationGracePeriodSeconds: 30
      hostAliases: [{ip: 192.0.2.7, hostnames: [a]}]
      securityContext: {fsGroup: 1}
      enableServiceLinks: true
      serviceAccount: b
      serviceAccountName: b
      hostNetwork: false
      containers:
      - name: sidecar
        image: example.com/sidecar:1
        imagePullPolicy: Always
        stdin: true
      - name: server
        image: example.com/nginx:1
        args: [-g, daemon off;]
        imagePullPolicy: IfNotPresent
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
        resources: {}
        env:
        - {name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
        - {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: '0'}}}
        ports: [{containerPort: 80, name: web, protocol: TCP}, {containerPort: 443}]
        livenessProbe: {tcpSocket: {port: 80}}
        volumeMounts:
        - {name: config, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf}
        - {name: html, mountPath: /usr/share/nginx/html}
        - {name: key, mountPath: /etc/keys, readOnly: true}
        - {name: tmp, mountPath: /tmp}
      volumes:
      - name: config
        configMap: {name: conf, defaultMode: 420}
      - name: html
        configMap: {name: pages}
      - name: key
        secret: {secretName: key}
      - name: tmp
        emptyDir: {}
      - name: shared
        hostPath: {path: /srv}
status: {replicas: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: shop}
data:
  nginx.conf: |
    user nginx;
    worker_processes 4;
    error_log /var/log/nginx/error.log warn;
    load_module modules/ngx_http_geoip_module.so;
    events { worker_connections 2048; }
    http {
      # a comment of mine
      server { listen 80; }
    }
---
apiVersion: v1
kind: Service
metadata: {name: old, namespace: shop, finalizers: [service.kubernetes.io/load-balancer-cleanup]}
spec:
  allocateLoadBalancerNodePorts: true
  clusterIP: 192.0.2.1
  clusterIPs: [192.0.2.1]
  selector: {app: old}
  type: LoadBalancer
  loadBalancerIP: 192.0.2.9
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}
  externalTrafficPolicy: Cluster
  healthCheckNodePort: 30000
  internalTrafficPolicy: Cluster
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  ports: [{port: 8000, targetPort: web, protocol: TCP, name: http, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 192.0.2.2}]}}
`

// TestExportedDeployment converts a Deployment that was exported from a cluster. Defaults are
// omitted, a complete nginx.conf is split, and each field without an equivalent is listed.
func TestExportedDeployment(t *testing.T) {
	got := only(t, exported)
	text, err := got.YAML()
	if err != nil {
		t.Fatal(err)
	}
	const want = `# Replaces Deployment old. To migrate without downtime, see docs/guide/coming-from.md.
# Keep ConfigMap pages: the spec references it.
# Keep Secret key: the spec references it.
# Keep ServiceAccount b: the spec references it.
# Fields without an equivalent:
# - Deployment old.spec.template.spec.containers[0].imagePullPolicy: the operator sets IfNotPresent; use an image with a version or` +
		` a digest, or see spec.patches
# - Deployment old.spec.template.spec.containers[0].stdin: no field supports it; see spec.patches
# - Deployment old.spec.template.spec.volumes[4].hostPath: Pod Security restricted forbids it; for alternatives, see spec.volumes
# - nginx.conf, line 1: user nginx: nginx runs as the user of the image, or as that of spec.securityContext.runAsUser
# - nginx.conf, line 3: error_log /var/log/nginx/error.log warn: the operator logs to the container's output, with the level in` +
		` spec.nginx.errorLogLevel
# - Service old.spec.loadBalancerIP: Kubernetes deprecated it; use an annotation of your load balancer in spec.service.annotations
# - Deployment old.spec.template.spec.containers[1].args: the operator starts nginx; move settings to spec.nginx or spec.config
# - Deployment old.spec.template.spec.hostAliases: no field supports it; see spec.patches
# Check before you apply:
# - spec.image (example.com/nginx:1), spec.sidecars[0].image (example.com/sidecar:1): the operator's Pods do not start with an image` +
		` that runs as root (runAsNonRoot). If the USER of an image is not the number of another user, set spec.securityContext.runAsUser
# - the Pods have app.kubernetes.io/instance: old-web instead of the labels app=old. If another object selects the Pods by them, for` +
		` example a NetworkPolicy, a monitor, or an affinity, change it
# - Deployment old.spec.template.spec.containers[1]: the operator's probes replace livenessProbe. They ask a server of the operator, so` +
		` a Pod is ready as soon as nginx runs
# - Service old.spec.ports[0].nodePort: 30080 is in use until the old Service is deleted. To create the new one before, remove the nodePort
# - container port 443 is not a port of Service old, and the operator's NetworkPolicy closes it; if clients use it, add it to spec.ports
# - Service old.spec.clusterIP: the new Service has another address. To keep the Service and its address, see` +
		` docs/journeys/move-a-deployment.md
apiVersion: operator.example.com/v1alpha2
kind: NginxOperator
metadata:
  name: old-web
  namespace: shop
spec:
  config:
    inline: |
      # a comment of mine
      server {
        listen 80;
      }
  content:
    configMapRef:
      name: pages
  env:
  - name: A
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: B
    valueFrom:
      resourceFieldRef:
        resource: limits.cpu
  image: example.com/nginx:1
  nginx:
    errorLogLevel: warn
    modules:
    - ngx_http_geoip_module
    workerConnections: 2048
    workerProcesses: 4
  podTemplate:
    labels:
      edge: ""
      tier: web
  ports:
  - name: http
    nodePort: 30080
    port: 8000
    targetPort: 80
  replicas: 1
  resources: {}
  securityContext:
    fsGroup: 1
  service:
    sessionAffinity: ClientIP
    type: LoadBalancer
  serviceAccountName: b
  sidecars:
  - image: example.com/sidecar:1
    name: sidecar
  volumes:
  - mountPath: /etc/keys
    name: key
    readOnly: true
    secret:
      secretName: key
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestErrors verifies that input that cannot be converted causes an error with the reason.
func TestErrors(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no workload": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", "neither a Deployment (apps/v1) nor an Nginx"},
		"a ConfigMap that is not there": {
			strings.Replace(exported, "kind: ConfigMap\nmetadata: {name: conf", "kind: ConfigMap\nmetadata: {name: other", 1),
			`it mounts ConfigMap "conf" at /etc/nginx/nginx.conf, which the manifests do not have. Add that ConfigMap with -f`,
		},
		"a nginx.conf that does not end": {
			strings.Replace(exported, "server { listen 80; }", "server { listen 80;", 1), "failed to read nginx.conf",
		},
		"no nginx":           {strings.Replace(exported, "example.com/nginx:1", "a", 1), "cannot find the nginx container"},
		"no kind from tsuru": {tsuru("config: {name: conf}"), `spec.config.kind is "", must be Inline or ConfigMap`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := From(parse(t, test.text), ""); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
