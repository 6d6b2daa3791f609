package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// specManifest returns an object from the YAML of its spec.
func specManifest(t *testing.T, version, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(spec), &object.Object))
	object.Object = map[string]any{"spec": object.Object}
	object.SetAPIVersion(v1alpha2.GroupVersion.Group + "/" + version)
	object.SetKind("NginxOperator")
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// inline returns a spec with an inline configuration that has these lines in a server on the
// default port.
func inline(lines ...string) string {
	return "config:\n  inline: |\n    server {\n      listen 8080;\n      " + strings.Join(lines, "\n      ") + "\n    }\n"
}

// TestAdmissionRefuses verifies that the schema, one of its rules, or the webhook rejects an
// invalid object before it is stored. The message names the field and the remedy.
func TestAdmissionRefuses(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const name = "must contain only lower-case letters, digits, hyphens, and dots, and must start and end with a letter or digit"
	const families = "spec.service.ipFamilies: Invalid value: ipFamilies must have two families with ipFamilyPolicy PreferDualStack or " +
		"RequireDualStack, and one with SingleStack; correct ipFamilies or ipFamilyPolicy"
	const ownLabel = "are reserved for the operator; remove these labels, or use your own prefix"
	for title, test := range map[string]struct{ version, spec, want string }{
		// Rejected by the schema.
		"port name twice": {spec: "ports: [{name: a, port: 80}, {name: a, port: 81}]", want: `spec.ports[1]: Duplicate value: {"name":"a"}`},
		"UDP": {
			spec: "ports: [{name: a, port: 80, protocol: UDP}]",
			want: `spec.ports[0].protocol: Unsupported value: "UDP": supported values: "TCP"`,
		},
		"port without a name": {spec: "ports: [{port: 80}]", want: "spec.ports[0].name: Required value"},
		"Secret twice":        {spec: "tls: [{secretName: a}, {secretName: a}]", want: `spec.tls[1]: Duplicate value: {"secretName":"a"}`},
		"file twice": {
			spec: "files: [{path: a, secretRef: {name: a, key: b}}, {path: a, secretRef: {name: c, key: d}}]",
			want: `spec.files[1]: Duplicate value: {"path":"a"}`,
		},
		"file without a path":  {spec: "files: [{secretRef: {name: a, key: b}}]", want: "spec.files[0].path: Required value"},
		"file without a key":   {spec: "files: [{path: a, secretRef: {name: a}}]", want: "spec.files[0].secretRef.key: Required value"},
		"cache without a size": {spec: "cache: {path: /cache}", want: "spec.cache.size: Required value"},
		"file outside": {
			spec: "files: [{path: ../a, secretRef: {name: a, key: b}}]",
			want: `spec.files[0].path: Invalid value: "../a": path must be a name, or a directory and a name, of letters`,
		},
		"file with two dots": {
			spec: "files: [{path: a..b, secretRef: {name: a, key: b}}]",
			want: `spec.files[0].path: Invalid value: "a..b": path must be a name, or a directory and a name, of letters`,
		},
		"file from nowhere": {
			spec: "files: [{path: a}]", want: "spec.files[0]: Invalid value: a file takes exactly one of configMapRef and secretRef",
		},
		"file from two places": {
			spec: "files: [{path: a, secretRef: {name: a, key: b}, configMapRef: {name: a, key: b}}]",
			want: "spec.files[0]: Invalid value: a file takes exactly one of configMapRef and secretRef",
		},
		"file in the place of a directory": {
			spec: "files: [{path: a, secretRef: {name: a, key: b}}, {path: a/b, secretRef: {name: a, key: b}}]",
			want: "spec.files: Invalid value: a path cannot be both a file and a directory; rename one of them",
		},
		"name of a file's Secret": {
			spec: "files: [{path: a, secretRef: {name: A, key: b}}]", want: `spec.files[0].secretRef.name: Invalid value: "A": name ` + name,
		},
		"key of a file": {
			spec: "files: [{path: a, configMapRef: {name: a, key: ../b}}]",
			want: `spec.files[0].configMapRef.key: Invalid value: "../b": key must contain only letters, digits, hyphens, dots, and underscores`,
		},
		"file that is not declared": {
			spec: inline("include /etc/nginx/files/a.conf;"),
			want: "spec.config.inline: Invalid value: line 3: include: /etc/nginx/files/a.conf is not among spec.files; add `- path: a.conf`",
		},
		"path of the cache": {
			spec: "cache: {size: 1Gi, path: /etc/nginx}",
			want: `spec.cache.path: Invalid value: "/etc/nginx": path must be /var/cache, /cache, /data, /mnt, or /srv, or a directory below`,
		},
		"size of the cache": {
			spec: "cache: {size: '1e9'}",
			want: `spec.cache.size: Invalid value: "1e9": size must be a number of one to five digits with the unit M, G, Mi, or Gi`,
		},
		"short drain": {
			spec: "drainSeconds: 4",
			want: "spec.drainSeconds: Invalid value: 4: spec.drainSeconds in body should be greater than or equal to 5",
		},
		"type of the Service": {
			spec: "service: {type: ExternalName}",
			want: `spec.service.type: Unsupported value: "ExternalName": supported values: "ClusterIP", "NodePort", "LoadBalancer"`,
		},
		"field of v1alpha1":    {spec: "port: 80", want: `unknown field "spec.port"`},
		"content without name": {spec: "content: {configMapRef: {}}", want: "spec.content.configMapRef.name: Required value"},

		// Rejected by rules of the schema.
		"port twice": {
			spec: "ports: [{name: a, port: 80}, {name: b, port: 80}]",
			want: "spec.ports: Invalid value: ports: two ports have the same number, and a Service has each number only once; change or remove " +
				"one of them",
		},
		"port of two certificates": {
			spec: "tls: [{secretName: a, port: 443}, {secretName: b, port: 443}]",
			want: "spec.tls: Invalid value: tls: two certificates have the same port, which requires config: its server blocks select a " +
				"certificate by server_name; change or remove one port, or set config",
		},
		"port that is plain and TLS": {
			spec: "{ports: [{name: a, port: 443}], tls: [{secretName: a, port: 443}]}",
			want: "spec.tls: Invalid value: tls: the port is already in ports (plain HTTP, 8080 by default); change the certificate's port",
		},
		"port that is both by default": {
			spec: "tls: [{secretName: a, port: 8080}]",
			want: "spec.tls: Invalid value: tls: the port is already in ports (plain HTTP, 8080 by default)",
		},
		"default port of the certificate": {
			spec: "{ports: [{name: a, port: 8443}], tls: [{secretName: a}]}",
			want: "spec.tls: Invalid value: tls: the first certificate has port 8443 by default, which is already in ports",
		},
		"name of a port": {
			spec: "ports: [{name: HTTP, port: 80}]",
			want: `spec.ports[0].name: Invalid value: "HTTP": a port name must contain only lower-case letters, digits, and single hyphens, with ` +
				`at least one letter and no hyphen at either end, for example http`,
		},
		"name of the operator's port": {
			spec: "ports: [{name: health, port: 80}]",
			want: `spec.ports[0].name: Invalid value: "health": the port name health and the prefix tls- are reserved for the operator; choose ` +
				`another name`,
		},
		"autoscaling without an upper bound": {spec: "autoscaling: {}", want: "spec.autoscaling.maxReplicas: Required value"},
		"autoscaling bounds that cross": {
			spec: "autoscaling: {minReplicas: 3, maxReplicas: 2}",
			want: "spec.autoscaling.minReplicas: Invalid value: autoscaling: minReplicas is greater than maxReplicas; lower minReplicas, or " +
				"raise maxReplicas",
		},
		"autoscaling to nothing": {
			spec: "autoscaling: {minReplicas: 0, maxReplicas: 2}",
			want: "spec.autoscaling.minReplicas: Invalid value: 0: spec.autoscaling.minReplicas in body should be greater than or equal to 1",
		},
		"autoscaling without a request": {
			spec: "{autoscaling: {maxReplicas: 2}, resources: {requests: {memory: 32Mi}}}",
			want: "spec.resources.requests[cpu]: Required value: spec.autoscaling.targetCPUUtilizationPercentage is a percentage of this " +
				"request; set the request, or remove resources to use the default",
		},
		"autoscaling policies of no type": {
			spec: "autoscaling: {maxReplicas: 2, behavior: {scaleUp: {policies: [{value: 1, periodSeconds: 1}]}}}",
			want: "spec.autoscaling.behavior.scaleUp.policies[0].type: Required value",
		},
		"rollout that cannot begin": {
			spec: "rollout: {maxSurge: 0, maxUnavailable: 0%}",
			want: "spec.rollout: Invalid value: rollout: maxSurge and maxUnavailable are both 0, so no Pod can be replaced; raise one of them",
		},
		"rollout without a surge": {
			spec: "rollout: {maxSurge: 0%}",
			want: "spec.rollout.maxSurge: Invalid value: rollout: maxSurge 0 removes a Pod before its replacement is ready; set maxUnavailable " +
				"to at least 1",
		},
		"surge of words": {
			spec: "rollout: {maxSurge: some}",
			want: `spec.rollout.maxSurge: Invalid value: "some": maxSurge must be a number from 0 to 1000 or a percentage from 0% to 100%`,
		},
		"unavailable Pods below zero": {
			spec: "rollout: {maxUnavailable: -1}",
			want: "spec.rollout.maxUnavailable: Invalid value: -1: maxUnavailable must be a number from 0 to 1000 or a percentage from 0% to 100%",
		},
		"short deadline": {
			spec: "rollout: {progressDeadlineSeconds: 9}",
			want: "spec.rollout.progressDeadlineSeconds: Invalid value: 9: " +
				"spec.rollout.progressDeadlineSeconds in body should be greater than or equal to 10",
		},
		"too many workers": {
			spec: "nginx: {workerProcesses: 1025}",
			want: "spec.nginx.workerProcesses: Invalid value: 1025: spec.nginx.workerProcesses in body should be less than or equal to 1024",
		},
		"too few connections": {
			spec: "nginx: {workerConnections: 63}",
			want: "spec.nginx.workerConnections: Invalid value: 63: spec.nginx.workerConnections in body should be greater than or equal to 64",
		},
		"level of a log": {
			spec: "nginx: {errorLogLevel: loud}",
			want: `spec.nginx.errorLogLevel: Unsupported value: "loud": supported values: "debug"`,
		},
		"image with a blank": {
			spec: `image: "a b"`,
			want: `spec.image: Invalid value: "a b": image must not contain whitespace; write for example ` +
				`docker.io/nginxinc/nginx-unprivileged:1.30.7`,
		},
		"no source of the configuration": {
			spec: "config: {}",
			want: "spec.config: Invalid value: config takes exactly one of inline and configMapRef",
		},
		"two sources of the configuration": {
			spec: "config: {inline: a, configMapRef: {name: b}}",
			want: "spec.config: Invalid value: config takes exactly one of inline and configMapRef",
		},
		"name of the ConfigMap": {
			spec: "config: {configMapRef: {name: Servers}}",
			want: `spec.config.configMapRef.name: Invalid value: "Servers": name ` + name,
		},
		"key of the ConfigMap": {
			spec: "config: {configMapRef: {name: a, key: a/b}}",
			want: `spec.config.configMapRef.key: Invalid value: "a/b": key must contain only letters, digits, hyphens, dots, and underscores, ` +
				`for example nginx.conf`,
		},
		"name of the content": {
			spec: "content: {configMapRef: {name: a..b}}",
			want: `spec.content.configMapRef.name: Invalid value: "a..b": name ` + name,
		},
		"name of a Secret": {
			spec: "tls: [{secretName: Shop}]",
			want: `spec.tls[0].secretName: Invalid value: "Shop": secretName ` + name,
		},
		"class without a load balancer": {
			spec: "service: {loadBalancerClass: example.com/lb}",
			want: "spec.service.loadBalancerClass: Invalid value: loadBalancerClass requires type LoadBalancer; set the type or remove " +
				"loadBalancerClass",
		},
		"policy without outside traffic": {
			spec: "service: {externalTrafficPolicy: Local}",
			want: "spec.service.externalTrafficPolicy: Invalid value: externalTrafficPolicy requires type NodePort or LoadBalancer; set the type " +
				"or remove externalTrafficPolicy",
		},
		"networks without a load balancer": {
			spec: "service: {loadBalancerSourceRanges: [192.0.2.0/24]}",
			want: "spec.service.loadBalancerSourceRanges: Invalid value: loadBalancerSourceRanges requires type LoadBalancer; set the type or " +
				"remove loadBalancerSourceRanges",
		},
		"address in place of a network": {
			spec: "service: {type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.7]}",
			want: "spec.service.loadBalancerSourceRanges: Invalid value: each of loadBalancerSourceRanges must be a network in CIDR notation; " +
				"write for example 192.0.2.0/24, or 192.0.2.7/32 for one address",
		},
		"65 networks": {
			spec: "service: {type: LoadBalancer, loadBalancerSourceRanges: [" + strings.Repeat("192.0.2.0/24,", 65) + "]}",
			want: "spec.service.loadBalancerSourceRanges: Too many: 65: must have at most 64 items",
		},
		"session affinity": {
			spec: "service: {sessionAffinity: Cookie}",
			want: `spec.service.sessionAffinity: Unsupported value: "Cookie": supported values: "None", "ClientIP"`,
		},
		"internal policy": {
			spec: "service: {internalTrafficPolicy: Near}",
			want: `spec.service.internalTrafficPolicy: Unsupported value: "Near": supported values: "Cluster", "Local"`,
		},
		"family policy": {
			spec: "service: {ipFamilyPolicy: DualStack}",
			want: `spec.service.ipFamilyPolicy: Unsupported value: "DualStack": ` +
				`supported values: "SingleStack", "PreferDualStack", "RequireDualStack"`,
		},
		"family": {
			spec: "service: {ipFamilies: [IPv5]}",
			want: `spec.service.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"`,
		},
		"family twice": {
			spec: "service: {ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv4]}",
			want: "spec.service.ipFamilies: Invalid value: ipFamilies has the same family twice; remove one of them",
		},
		"two families in a single stack": {spec: "service: {ipFamilies: [IPv4, IPv6]}", want: families},
		"one family in a dual stack":     {spec: "service: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv4]}", want: families},
		"mode of the NetworkPolicy": {
			spec: "networkPolicy: {mode: Unmanaged}",
			want: `spec.networkPolicy.mode: Unsupported value: "Unmanaged": supported values: "Managed", "None"`,
		},
		"peers of no NetworkPolicy": {
			spec: "networkPolicy: {mode: None, from: [{podSelector: {}}]}",
			want: "spec.networkPolicy.from: Invalid value: networkPolicy.from requires mode Managed, because mode None creates no NetworkPolicy; " +
				"remove from, or set mode to Managed",
		},
		"no way in": {spec: "expose: {}", want: "spec.expose: Invalid value: expose takes exactly one of ingress and httpRoute"},
		"two ways in": {
			spec: "expose: {ingress: {hosts: [{host: a}]}, httpRoute: {parentRefs: [{name: a}]}}",
			want: "spec.expose: Invalid value: expose takes exactly one of ingress and httpRoute",
		},
		"no Gateway": {
			spec: "expose: {httpRoute: {parentRefs: []}}",
			want: "spec.expose.httpRoute.parentRefs: Invalid value: 0: spec.expose.httpRoute.parentRefs in body should have at least 1 items",
		},
		"9 Gateways": {
			spec: "expose: {httpRoute: {parentRefs: [" + strings.Repeat("{name: a},", 9) + "]}}",
			want: "spec.expose.httpRoute.parentRefs: Too many: 9: must have at most 8 items",
		},
		"17 hostnames": {
			spec: "expose: {httpRoute: {parentRefs: [{name: a}], hostnames: [" + strings.Repeat("a,", 17) + "]}}",
			want: "spec.expose.httpRoute.hostnames: Too many: 17: must have at most 16 items",
		},
		"long hostname": {
			spec: "expose: {httpRoute: {parentRefs: [{name: a}], hostnames: [" + strings.Repeat("a", 254) + "]}}",
			want: "spec.expose.httpRoute.hostnames[0]: Too long: may not be more than 253 bytes",
		},
		"Gateway": {
			spec: "expose: {httpRoute: {parentRefs: [{name: A}]}}",
			want: `spec.expose.httpRoute.parentRefs[0].name: Invalid value: "A": name ` + name,
		},
		"namespace of a Gateway": {
			spec: "expose: {httpRoute: {parentRefs: [{name: a, namespace: a.b}]}}",
			want: `spec.expose.httpRoute.parentRefs[0].namespace: Invalid value: "a.b": namespace must contain only lower-case letters, digits, ` +
				`and hyphens`,
		},
		"listener": {
			spec: "expose: {httpRoute: {parentRefs: [{name: a, sectionName: A}]}}",
			want: `spec.expose.httpRoute.parentRefs[0].sectionName: Invalid value: "A": sectionName must contain only lower-case letters, ` +
				`digits, hyphens`,
		},
		"port of listeners": {
			spec: "expose: {httpRoute: {parentRefs: [{name: a, port: 0}]}}",
			want: "spec.expose.httpRoute.parentRefs[0].port: Invalid value: 0: spec.expose.httpRoute.parentRefs[0].port in body should be " +
				"greater than or equal to 1",
		},
		"no hosts": {
			spec: "expose: {ingress: {hosts: []}}",
			want: "spec.expose.ingress.hosts: Invalid value: 0: spec.expose.ingress.hosts in body should have at least 1 items",
		},
		"17 hosts": {
			spec: "expose: {ingress: {hosts: [" + strings.Repeat("{host: a},", 17) + "]}}",
			want: "spec.expose.ingress.hosts: Too many: 17: must have at most 16 items",
		},
		"host twice": {
			spec: "expose: {ingress: {hosts: [{host: a}, {host: a}]}}",
			want: `spec.expose.ingress.hosts[1]: Duplicate value: {"host":"a"}`,
		},
		"path twice": {
			spec: "expose: {ingress: {hosts: [{host: a, paths: [/, /]}]}}",
			want: `spec.expose.ingress.hosts[0].paths[1]: Duplicate value: "/"`,
		},
		"17 paths": {
			spec: "expose: {ingress: {hosts: [{host: a, paths: [" + strings.Repeat("/,", 17) + "]}]}}",
			want: "spec.expose.ingress.hosts[0].paths: Too many: 17: must have at most 16 items",
		},
		"class": {
			spec: "expose: {ingress: {className: Nginx, hosts: [{host: a}]}}",
			want: `spec.expose.ingress.className: Invalid value: "Nginx": className ` + name,
		},
		"Secret of a host": {
			spec: "expose: {ingress: {hosts: [{host: a, tlsSecretName: A}]}}",
			want: `spec.expose.ingress.hosts[0].tlsSecretName: Invalid value: "A": tlsSecretName ` + name,
		},
		"annotation of the Ingress": {
			spec: "expose: {ingress: {annotations: {operator.example.com/last-declared: a}, hosts: [{host: a}]}}",
			want: "spec.expose.ingress.annotations: Invalid value: annotations with the prefix operator.example.com/ are reserved for the " +
				"operator; remove them, or use your own prefix",
		},
		"much annotation of the Ingress": {
			spec: "expose: {ingress: {annotations: {a: " + strings.Repeat("a", 66_000) + "}, hosts: [{host: a}]}}",
			want: "spec.expose: Invalid value: has 66059 bytes as JSON, and the limit is 65536; shorten the annotations",
		},
		"no peers": {
			spec: "networkPolicy: {from: []}",
			want: "spec.networkPolicy.from: Invalid value: 0: spec.networkPolicy.from in body should have at least 1 items",
		},
		"17 peers": {
			spec: "networkPolicy: {from: [" + strings.Repeat("{podSelector: {}},", 17) + "]}",
			want: "spec.networkPolicy.from: Too many: 17: must have at most 16 items",
		},
		"claims": {
			spec: "resources: {claims: [{name: gpu}]}",
			want: "spec.resources: Invalid value: resources.claims is not supported; remove it",
		},
		"label of the Service": {spec: "service: {labels: {app.kubernetes.io/managed-by: me}}", want: ownLabel},
		"label of the Pods":    {spec: "podTemplate: {labels: {app.kubernetes.io/instance: me}}", want: ownLabel},
		"annotation of the Pods": {
			spec: "podTemplate: {annotations: {operator.example.com/force-redeploy: now}}",
			want: "spec.podTemplate.annotations: Invalid value: annotations with the prefix operator.example.com/ are reserved for the operator; " +
				"remove them, or use your own prefix",
		},
		"effect": {
			spec: "podTemplate: {tolerations: [{key: a, effect: Never}]}",
			want: "spec.podTemplate.tolerations: Invalid value: the effect of a toleration must be NoSchedule, PreferNoSchedule, or NoExecute; " +
				"remove it to tolerate all effects",
		},
		"skew": {
			spec: "podTemplate: {topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}",
			want: "spec.podTemplate.topologySpreadConstraints: Invalid value: maxSkew must be at least 1",
		},
		"priority class": {
			spec: "podTemplate: {priorityClassName: High}",
			want: `spec.podTemplate.priorityClassName: Invalid value: "High": priorityClassName ` + name,
		},

		// Rejected by the webhook.
		"image": {
			spec: "image: docker.io/Me/nginx",
			want: "spec.image: Invalid value: \"docker.io/Me/nginx\": invalid reference format: repository name (Me/nginx) must be lowercase; " +
				"write for example docker.io/nginxinc/nginx-unprivileged:1.30.7",
		},
		"request over limit": {
			spec: "resources: {requests: {cpu: 2}, limits: {cpu: 1}}",
			want: `spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
		},
		"unknown resource": {
			spec: "resources: {limits: {disk: 1}}",
			want: `spec.resources.limits[disk]: Invalid value: "disk": must be a standard resource type or fully qualified`,
		},
		"value of a label": {spec: "podTemplate: {labels: {team: a b}}", want: `spec.podTemplate.labels: Invalid value: "a b"`},
		"operator of toleration": {
			spec: "podTemplate: {tolerations: [{key: a, operator: Is}]}",
			want: `spec.podTemplate.tolerations[0].operator: Unsupported value: "Is": supported values: "Equal", "Exists"`,
		},
		"topology key": {
			spec: "podTemplate: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: '', whenUnsatisfiable: DoNotSchedule}]}",
			want: "spec.podTemplate.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
		},
		"weight": {
			spec: "podTemplate: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {}}]}}}",
			want: "preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
		},
		"pull Secret": {
			spec: "podTemplate: {imagePullSecrets: [{name: A}]}",
			want: `spec.podTemplate.imagePullSecrets[0].name: Invalid value: "A"`,
		},
		"size": {
			spec: "config: {inline: '# " + strings.Repeat("\U0001F600", 60_000) + "'}",
			want: "move the configuration to a ConfigMap and reference it in spec.config.configMapRef",
		},
		"daemon": {
			spec: inline("daemon on;"),
			want: "spec.config.inline: Invalid value: line 3: daemon: cannot be set here: " +
				"nginx runs in the foreground, or its container would end; remove it",
		},
		"typing error": {
			spec: inline("location / {", "  proxy_pas http://app;", "}"),
			want: "spec.config.inline: Invalid value: line 4: proxy_pas: nginx does not know it; correct the name, " +
				"or set spec.image to an image that has its module compiled in",
		},
		"semicolon": {
			spec: inline("return 204"),
			want: `spec.config.inline: Invalid value: line 3: return: there is no ";" at its end; add it before the "}"`,
		},
		"log file": {
			spec: inline("access_log /var/log/shop.log;"),
			want: "spec.config.inline: Invalid value: line 3: access_log: /var/log/shop.log is on a read-only file system; " +
				"write /dev/stdout",
		},
		"port nobody listens on": {
			spec: "ports: [{name: http, port: 8080}, {name: admin, port: 8081}]\n" + inline("return 204;"),
			want: "spec.config.inline: Invalid value: listen: spec.ports[1].port 8081: no server listens on it; " +
				"add `listen 8081;` to a server, or declare the ports that the servers listen on",
		},
		"port of the probes": {
			spec: inline("listen 18080;"),
			want: "spec.config.inline: Invalid value: line 3: listen: port 18080 is used by the operator's own server for " +
				"the kubelet's probes; choose another port",
		},
		"certificate not mounted": {
			spec: inline("ssl_certificate /etc/nginx/tls/shop/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;"),
			want: "spec.config.inline: Invalid value: line 3: ssl_certificate: spec.tls has no Secret shop; add `- secretName: shop` to spec.tls",
		},
		"TLS port without TLS": {
			spec: "tls: [{secretName: shop, port: 8443}]\n" + inline("listen 8443;"),
			want: "spec.config.inline: Invalid value: line 3: listen: spec.tls[0].port 8443 is for TLS; write `listen 8443 ssl;`",
		},

		// Rejected at v1alpha1.
		"v1alpha1: port": {
			version: "v1alpha1",
			spec:    "port: 0",
			want:    "spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1",
		},
		"v1alpha1: replicas": {
			version: "v1alpha1",
			spec:    "replicas: 1001",
			want:    "spec.replicas: Invalid value: 1001: spec.replicas in body should be less than or equal to 1000",
		},
		"v1alpha1: field of v1alpha2": {version: "v1alpha1", spec: "image: nginx", want: `unknown field "spec.image"`},
		"v1alpha1: list for the port": {version: "v1alpha1", spec: "port: [80]", want: `spec.port: Invalid value: "array"`},
		"v1alpha1: long forceRedeploy": {
			version: "v1alpha1",
			spec:    "forceRedeploy: " + strings.Repeat("x", 257),
			want:    "spec.forceRedeploy: Too long: may not be more than 256",
		},
	} {
		t.Run(title, func(t *testing.T) {
			version := test.version
			if version == "" {
				version = v1alpha2.GroupVersion.Version
			}
			refused(t, namespace, version, test.spec, test.want)
		})
	}
}

// refused requires that the API server rejects an object with this message.
func refused(t *testing.T, namespace, version, spec, want string) {
	t.Helper()
	err := client.WithFieldValidation(suite.admin, "Strict").Create(t.Context(), specManifest(t, version, namespace, "web", spec))
	if !harness.Says(err, want) {
		t.Errorf("want a refusal with\n%s\ngot\n%v", want, err)
	}
}

// TestAdmissionTakes verifies that admission accepts valid objects, with the warnings that a client
// prints.
func TestAdmissionTakes(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	i := 0
	for title, test := range map[string]struct {
		spec string
		want []string
	}{
		"nothing":            {spec: "{}"},
		"certificate":        {spec: "tls: [{secretName: shop}]"},
		"ports":              {spec: "ports: [{name: http, port: 80}, {name: tls, port: 18080}]"},
		"no plain HTTP":      {spec: "{ports: [], tls: [{secretName: shop}]}"},
		"targets that cross": {spec: "ports: [{name: a, port: 80, targetPort: 81}, {name: b, port: 81, targetPort: 80}]"},
		"node port":          {spec: "{ports: [{name: a, port: 80, nodePort: 30090}], service: {type: NodePort}}"},
		"protocols": {
			spec: "ports: [{name: a, port: 80, appProtocol: kubernetes.io/h2c}, {name: b, port: 81, appProtocol: example.com/My_1.0}]",
		},
		"configuration":           {spec: inline("location / {", "  root /usr/share/nginx/html;", "}")},
		"configuration elsewhere": {spec: "config: {configMapRef: {name: shop.servers}}"},
		"where the Pods run": {
			spec: "podTemplate: {labels: {team: shop}, nodeSelector: {a: b}, tolerations: [{operator: Exists}], " +
				"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}",
		},
		"load balancer": {
			spec: "service: {type: LoadBalancer, loadBalancerClass: example.com/lb, externalTrafficPolicy: Local, " +
				"annotations: {example.com/lb: internal}}",
		},
		"networks and families": {
			spec: "service: {type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.0/24, '2001:db8::/32'], sessionAffinity: ClientIP, " +
				"internalTrafficPolicy: Local, ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6, IPv4]}",
		},
		"peers": {
			spec: "networkPolicy: {from: [{podSelector: {}}, {namespaceSelector: {matchLabels: {team: shop}}}, " +
				"{ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.7/32]}}]}",
		},
		"no NetworkPolicy": {spec: "networkPolicy: {mode: None}"},
		"files and a cache": {
			spec: "files: [{path: a.conf, configMapRef: {name: a, key: b}}, {path: b/c, secretRef: {name: a, key: b}}]\n" +
				"cache: {size: 1Gi, path: /data}\n" +
				inline("include /etc/nginx/files/a.conf;", "location / { auth_basic a; auth_basic_user_file /etc/nginx/files/b/c; }"),
		},
		"Ingress": {
			spec: "expose: {ingress: {className: nginx, annotations: {example.com/a: b}, " +
				"hosts: [{host: '*.example.com'}, {host: a.example.com, paths: [/a, /b/], tlsSecretName: a.b}]}}",
		},
		"HTTPRoute": {
			spec: "expose: {httpRoute: {parentRefs: [{name: a.b, namespace: infra, sectionName: https, port: 443}, {name: c}], " +
				"hostnames: ['*.example.com', a.example.com]}}",
		},
		"moving tag": {spec: "image: quay.io/me/nginx:latest", want: []string{
			"spec.image: the tag is latest, so the image can change at any time, and differ between Pods; use a version or a digest",
		}},
		"host name of an upstream": {spec: inline("location / {", "  proxy_pass http://app;", "}")},
		"directives of nginx 1.30": {spec: inline("max_headers 100;", "location / {", "  early_hints 1;", "  add_header_inherit merge;", "}")},
		"rewrite that exposes a vulnerability": {
			spec: "image: nginx:1.28.3\n" + inline("rewrite ^/(.*)$ /new?c=$1;", "set $old $1;"), want: []string{
				"spec.config.inline: line 3: rewrite: CVE-2026-42945 (fixed in nginx 1.30.1 and 1.31.0) lets a request overflow the heap here: " +
					"the replacement has a question mark, an unnamed capture such as $1 is used, and rewrite, if, or set follows; " +
					"set spec.image to an nginx with the fix, or use named captures",
			},
		},
		"pause": {spec: "paused: true", want: []string{"spec.paused: changes are not applied until it is false"}},
	} {
		i++
		t.Run(title, func(t *testing.T) {
			warnings := &recordedWarnings{}
			object := specManifest(t, v1alpha2.GroupVersion.Version, namespace, fmt.Sprintf("web-%d", i), test.spec)
			must(t, client.WithFieldValidation(warningClient(t, warnings), "Strict").Create(t.Context(), object))
			if diff := cmp.Diff(test.want, warnings.list()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAdmissionChangesNoNewObject verifies that the API server stores a new object as the client
// sent it, and that no mutating webhook is called for it.
func TestAdmissionChangesNoNewObject(t *testing.T) {
	t.Parallel()
	object := newInstance(newNamespace(t), "web")
	object.Spec.TLS = []v1alpha2.TLS{{SecretName: "a"}, {SecretName: "b"}}
	create(t, object)
	if object.Spec.TLS[0].Port != nil || object.Spec.TLS[1].Port != nil {
		t.Errorf("tls %+v", object.Spec.TLS)
	}

	list := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	must(t, suite.admin.List(t.Context(), list))
	for _, configuration := range list.Items {
		for _, webhook := range configuration.Webhooks {
			for _, rule := range webhook.Rules {
				if slices.Contains(rule.APIVersions, v1alpha2.GroupVersion.Version) && slices.Contains(rule.APIGroups, v1alpha2.GroupVersion.Group) &&
					slices.Contains(rule.Operations, admissionregistrationv1.Create) {
					t.Errorf("%s is called for each new object", webhook.Name)
				}
			}
		}
	}
}

// TestAdmissionOfV1alpha1KnowsTheRest verifies that the message names the v1alpha2 field if a
// v1alpha1 client changes the port of an object with a configuration.
func TestAdmissionOfV1alpha1KnowsTheRest(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; }"}
	create(t, object)
	old := newObject(namespace, "web")
	// Retry, because the operator writes the status at the same time.
	err := harness.RetryOnConflict(func() error {
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(old), old))
		old.Spec.Port = ptr.To[int32](9090)
		return suite.admin.Update(t.Context(), old)
	})
	want := "spec.config.inline: Invalid value: listen: spec.port 9090: no server listens on it; add `listen 9090;` to a server, or " +
		"declare the ports that the servers listen on (a field of v1alpha2; to change it, run kubectl edit " +
		"nginxoperators.v1alpha2.operator.example.com web)"
	if !harness.Says(err, want) {
		t.Errorf("want\n%s\ngot\n%v", want, err)
	}
}

// TestAdmissionIsAway verifies that objects at v1alpha2, the storage version, can be created,
// changed, and deleted while the operator is down. The status later reports invalid objects that
// were stored in that time. Clients can still label and delete these objects.
func TestAdmissionIsAway(t *testing.T) {
	namespace := newNamespace(t)
	create(t, newObject(namespace, "kept"))
	kept, gone := newInstance(namespace, "kept"), newInstance(namespace, "gone")
	create(t, newObject(namespace, "gone"))
	waitForChildren(t, namespace, "gone")

	suite.operator.Stop()
	away := true
	comeBack := func() {
		if away {
			away = false
			startNextOperator(t)
		}
	}
	t.Cleanup(comeBack)
	// A v1alpha1 write needs the conversion, so it fails.
	err := suite.admin.Create(t.Context(), newObject(namespace, "waits"))
	if !apierrors.IsInternalError(err) && !strings.Contains(fmt.Sprint(err), "conversion webhook") {
		t.Errorf("want an error of the conversion webhook, got %v", err)
	}

	bad := newInstance(namespace, "bad")
	bad.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; daemon on; }"}
	must(t, suite.admin.Create(t.Context(), bad))
	judged := specManifest(t, v1alpha2.GroupVersion.Version, namespace, "judged", "podTemplate: {tolerations: [{key: a, operator: Is}]}")
	must(t, suite.admin.Create(t.Context(), judged))
	update(t, kept, func(object *v1alpha2.NginxOperator) { object.Spec.ForceRedeploy = "now" })
	update(t, kept, func(object *v1alpha2.NginxOperator) { object.Labels = map[string]string{"team": "shop"} })
	must(t, suite.admin.Status().Update(t.Context(), kept))
	must(t, suite.admin.Delete(t.Context(), gone))

	comeBack()
	condition := waitForCondition(t, namespace, "bad", v1alpha2.ConditionDegraded, "True", v1alpha2.ReasonInvalidConfiguration)
	if want := "line 1: daemon: cannot be set here"; !strings.Contains(condition.Message, want) {
		t.Errorf("want %q in %q", want, condition.Message)
	}
	condition = waitForCondition(t, namespace, "judged", v1alpha2.ConditionDegraded, "True", v1alpha2.ReasonInvalidConfiguration)
	if want := `spec.podTemplate.tolerations[0].operator: Unsupported value: "Is"`; !strings.HasPrefix(condition.Message, want) {
		t.Errorf("want %q in %q", want, condition.Message)
	}
	update(t, newInstance(namespace, "judged"), func(object *v1alpha2.NginxOperator) { object.Spec.PodTemplate = nil })
	waitForChildren(t, namespace, "judged")
	stored := newInstance(namespace, "bad")
	update(t, stored, func(object *v1alpha2.NginxOperator) { object.Labels = map[string]string{"team": "shop"} })
	err = harness.RetryOnConflict(func() error {
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
		stored.Spec.DrainSeconds = ptr.To[int32](30)
		return suite.admin.Update(t.Context(), stored)
	})
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("a change that leaves the rest as wrong as it was is taken: %v", err)
	}
	must(t, suite.admin.Delete(t.Context(), stored))
}
