package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chart has objects of Bitnami's chart nginx 22.1.1, as its templates render them with a
// NetworkPolicy that limits egress (bitnami/charts at commit 5165628ae066, bitnami/nginx/templates).
const chart = `apiVersion: apps/v1
kind: Deployment
metadata: {name: www, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  revisionHistoryLimit: 10
  strategy: {type: RollingUpdate, rollingUpdate: {}}
  selector: {matchLabels: {app.kubernetes.io/name: nginx, app.kubernetes.io/instance: www}}
  template:
    metadata:
      labels:
        {app.kubernetes.io/name: nginx, app.kubernetes.io/instance: www, app.kubernetes.io/managed-by: Helm, helm.sh/chart: nginx-22.1.1}
    spec:
      shareProcessNamespace: false
      automountServiceAccountToken: false
      hostNetwork: false
      hostIPC: false
      affinity: {podAffinity: null, nodeAffinity: null}
      securityContext: {fsGroup: 1001, fsGroupChangePolicy: Always, supplementalGroups: [], sysctls: []}
      containers:
      - name: nginx
        image: docker.io/bitnami/nginx:1.29.1-debian-12-r0
        imagePullPolicy: IfNotPresent
        securityContext:
          runAsUser: 1001
          runAsGroup: 1001
          runAsNonRoot: true
          privileged: false
          readOnlyRootFilesystem: true
          allowPrivilegeEscalation: false
          capabilities: {drop: [ALL]}
          seccompProfile: {type: RuntimeDefault}
          seLinuxOptions: {}
        envFrom: null
        ports: [{name: http, containerPort: 8080}, {name: https, containerPort: 8443}]
        volumeMounts:
        - {name: empty-dir, mountPath: /tmp, subPath: tmp-dir}
        - {name: empty-dir, mountPath: /opt/bitnami/nginx/conf, subPath: app-conf-dir}
        - {name: nginx-server-block, mountPath: /opt/bitnami/nginx/conf/server_blocks}
        - {name: nginx-context-http, mountPath: /opt/bitnami/nginx/conf/context.d/http}
      volumes:
      - {name: empty-dir, emptyDir: {}}
      - {name: nginx-server-block, configMap: {name: www-server-block}}
      - {name: nginx-context-http, configMap: {name: www-context-http}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: www-server-block}
data:
  server-block.conf: |
    server { listen 8080; listen 8443 ssl; ssl_certificate /certs/tls.crt; ssl_certificate_key /certs/tls.key; }
---
apiVersion: v1
kind: Service
metadata: {name: www, labels: {helm.sh/chart: nginx-22.1.1}}
spec:
  type: ClusterIP
  sessionAffinity: None
  ports: [{name: http, port: 80, targetPort: http}, {name: https, port: 443, targetPort: https}]
  selector: {app.kubernetes.io/name: nginx, app.kubernetes.io/instance: www}
---
apiVersion: v1
kind: Service
metadata: {name: www-headless}
spec: {clusterIP: None, selector: {app.kubernetes.io/instance: www}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: www}
spec:
  podSelector: {matchLabels: {app.kubernetes.io/name: nginx, app.kubernetes.io/instance: www}}
  policyTypes: [Ingress, Egress]
  egress: [{ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}]
  ingress: [{ports: [{port: 8080}, {port: 8443}], from: [{podSelector: {matchLabels: {www-client: "true"}}}]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: open}
spec:
  podSelector: {matchExpressions: [{key: app.kubernetes.io/instance, operator: In, values: [www]}]}
  egress: [{}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: all-pods-of-the-namespace}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: of-others}
spec: {podSelector: {matchLabels: {app.kubernetes.io/instance: other}}, policyTypes: [Egress]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: www}
spec: {maxUnavailable: 1, selector: {matchLabels: {app.kubernetes.io/instance: www}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: www}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: www}, maxReplicas: 8}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: of-others}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: www}, maxReplicas: 8}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: www}
spec: {rules: [{host: www.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: www, port: {name: http}}}}]}}]}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: www}
spec: {selector: {matchLabels: {helm.sh/chart: nginx-22.1.1}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: www}
`

// TestChart verifies that objects of the Deployment that are not converted are listed.
func TestChart(t *testing.T) {
	result := only(t, chart)
	wantLost := []string{
		"Deployment www.spec.template.metadata.labels: the operator sets its own instead of app.kubernetes.io/managed-by, helm.sh/chart",
		"Deployment www.spec.template.spec.containers[0].volumeMounts[3]: /opt/bitnami/nginx/conf/context.d/http: " + notIncluded,
		"Service www.metadata.labels: the operator sets its own instead of helm.sh/chart",
		"Service www-headless: it selects the Pods, too, and spec.service describes one Service; create it yourself with the selector of " +
			"the new Pods",
		"NetworkPolicy www: use spec.networkPolicy.from for the peers of its ingress rules",
		"NetworkPolicy www.spec.egress: the operator's NetworkPolicy has no egress rules; move them to a NetworkPolicy of your own that " +
			"selects app.kubernetes.io/instance: www-web",
		"NetworkPolicy open: use spec.networkPolicy.from for the peers of its ingress rules",
		"PodDisruptionBudget www: the operator creates one for two or more replicas",
		"HorizontalPodAutoscaler www: it scales the old workload; use spec.autoscaling",
		"Ingress www: it routes to the old Service; use spec.expose.ingress",
		"ServiceMonitor www: use spec.monitoring",
	}
	if diff := cmp.Diff(wantLost, result.Lost); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantCheck := []string{
		"spec.image: nginx does not start with docker.io/bitnami/nginx:1.29.1-debian-12-r0, because the operator's nginx.conf includes " +
			"/etc/nginx/mime.types, which the image does not have; use docker.io/nginxinc/nginx-unprivileged",
		"Deployment www.metadata.labels: they are not copied; add those that you need to the NginxOperator, or to its children with spec.patches",
		"the Pods have app.kubernetes.io/instance: www-web instead of the labels app.kubernetes.io/instance=www and app.kubernetes.io/name=" +
			"nginx. If another object selects the Pods by them, for example a NetworkPolicy, a monitor, or an affinity, change it",
	}
	if diff := cmp.Diff(wantCheck, result.Check); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	spec := result.Object.Spec
	if !strings.HasPrefix(spec.Config.Inline, "server { listen 8080;") || spec.PodTemplate != nil || spec.Service != nil {
		t.Errorf("the spec is %+v", spec)
	}
	if len(spec.Ports) != 2 || spec.Ports[0].AppProtocol != "" || spec.Ports[1].AppProtocol != "https" {
		t.Errorf("the ports are %+v", spec.Ports)
	}
}

// TestNames verifies that a name that cannot work is listed.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"www":          "Service www has the name of the NginxOperator, which does not take it over (NameConflict); choose another with --name",
		"Shop.example": `the name "Shop.example" is not valid, choose another with --name`,
		"":             "",
	} {
		results, err := From(parse(t, chart), name)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(results[0].Check, "\n")
		if !strings.Contains(said, want) || strings.Contains(said, "choose another") != (want != "") {
			t.Errorf("%q: no comment says %q:\n%s", name, want, said)
		}
	}
}
