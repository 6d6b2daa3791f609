package integration

import "strings"

// The messages of these refusals are in testdata/refusals.txt.

// refusedByRules are refused by the rules of the schema.
var refusedByRules = map[string]refusal{
	"file outside":         {"files: [{path: ../a, secretRef: {name: a, key: b}}]", "spec.files[0].path", invalid},
	"file with two dots":   {"files: [{path: a..b, secretRef: {name: a, key: b}}]", "spec.files[0].path", invalid},
	"file from nowhere":    {"files: [{path: a}]", "spec.files[0]", invalid},
	"file from two places": {"files: [{path: a, secretRef: {name: a, key: b}, configMapRef: {name: a, key: b}}]", "spec.files[0]", invalid},
	"file in the place of a directory": {
		"files: [{path: a, secretRef: {name: a, key: b}}, {path: a/b, secretRef: {name: a, key: b}}]",
		"spec.files", invalid,
	},
	"name of a file's ConfigMap": {
		"files: [{path: a, configMapRef: {name: A, key: b}}]",
		"spec.files[0].configMapRef.name", invalid,
	},
	"name of a file's Secret": {"files: [{path: a, secretRef: {name: A, key: b}}]", "spec.files[0].secretRef.name", invalid},
	"key of a file": {
		"files: [{path: a, configMapRef: {name: a, key: ../b}}]",
		"spec.files[0].configMapRef.key", invalid,
	},
	"path of the cache":               {"cache: {size: 1Gi, path: /etc/nginx}", "spec.cache.path", invalid},
	"size of the cache":               {"cache: {size: '1e9'}", "spec.cache.size", invalid},
	"port twice":                      {"ports: [{name: a, port: 80}, {name: b, port: 80}]", "spec.ports", invalid},
	"port of two certificates":        {"tls: [{secretName: a, port: 443}, {secretName: b, port: 443}]", "spec.tls", invalid},
	"port that is plain and TLS":      {"{ports: [{name: a, port: 443}], tls: [{secretName: a, port: 443}]}", "spec.tls", invalid},
	"port that is both by default":    {"tls: [{secretName: a, port: 8080}]", "spec.tls", invalid},
	"default port of the certificate": {"{ports: [{name: a, port: 8443}], tls: [{secretName: a}]}", "spec.tls", invalid},
	"name of a port":                  {"ports: [{name: HTTP, port: 80}]", "spec.ports[0].name", invalid},
	"name of the operator's port":     {"ports: [{name: health, port: 80}]", "spec.ports[0].name", invalid},
	"autoscaling bounds that cross":   {"autoscaling: {minReplicas: 3, maxReplicas: 2}", "spec.autoscaling.minReplicas", invalid},
	"value and a source": {
		value("value: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}"), "spec.config.values[0]", invalid,
	},
	"value without a source": {"config: {inline: a;, values: [{name: A}]}", "spec.config.values[0]", invalid},
	"name of a value":        {"config: {inline: a;, values: [{name: a, value: a}]}", "spec.config.values[0].name", invalid},
	"value of two lines":     {value(`value: "a\nb"`), "spec.config.values[0].value", invalid},
	"two sources of a value": {
		value("valueFrom: {configMapKeyRef: {name: a, key: a}, fieldRef: {fieldPath: metadata.name}}"),
		"spec.config.values[0].valueFrom", invalid,
	},
	"source of a value without a field": {value("valueFrom: {}"), "spec.config.values[0].valueFrom", invalid},
	"address of a resolver":             {`nginx: {resolver: {addresses: ["a;b"]}}`, "spec.nginx.resolver.addresses[0]", invalid},
	"time of a resolver":                {"nginx: {resolver: {valid: 5w}}", "spec.nginx.resolver.valid", invalid},
	"path of a module":                  {"nginx: {modules: [../evil]}", "spec.nginx.modules[0]", invalid},
	"file name of a module":             {"nginx: {modules: [a.so]}", "spec.nginx.modules[0]", invalid},
	"rollout that cannot begin":         {"rollout: {maxSurge: 0, maxUnavailable: 0%}", "spec.rollout", invalid},
	"rollout without a surge":           {"rollout: {maxSurge: 0%}", "spec.rollout.maxSurge", invalid},
	"surge of words":                    {"rollout: {maxSurge: some}", "spec.rollout.maxSurge", invalid},
	"unavailable Pods below zero":       {"rollout: {maxUnavailable: -1}", "spec.rollout.maxUnavailable", invalid},
	"image with a blank":                {`image: "a b"`, "spec.image", invalid},
	"no source of the configuration":    {"config: {}", "spec.config", invalid},
	"two sources of the configuration":  {"config: {inline: a, configMapRef: {name: b}}", "spec.config", invalid},
	"name of the ConfigMap":             {"config: {configMapRef: {name: Servers}}", "spec.config.configMapRef.name", invalid},
	"key of the ConfigMap":              {"config: {configMapRef: {name: a, key: a/b}}", "spec.config.configMapRef.key", invalid},
	"name of the content":               {"content: {configMapRef: {name: a..b}}", "spec.content.configMapRef.name", invalid},
	"key of an item": {
		"content: {configMapRef: {name: a, items: [{key: a/b, path: a}]}}",
		"spec.content.configMapRef.items[0].key", invalid,
	},
	"item outside": {
		"content: {configMapRef: {name: a, items: [{key: a, path: b/../c}]}}",
		"spec.content.configMapRef.items[0].path", invalid,
	},
	"item with a dot": {
		"content: {configMapRef: {name: a, items: [{key: a, path: b/.}]}}",
		"spec.content.configMapRef.items[0].path", invalid,
	},
	"item with an absolute path": {
		"content: {configMapRef: {name: a, items: [{key: a, path: /b}]}}",
		"spec.content.configMapRef.items[0].path", invalid,
	},
	"name of a Secret":               {"tls: [{secretName: Shop}]", "spec.tls[0].secretName", invalid},
	"class without a load balancer":  {"service: {loadBalancerClass: example.com/lb}", "spec.service.loadBalancerClass", invalid},
	"policy without outside traffic": {"service: {externalTrafficPolicy: Local}", "spec.service.externalTrafficPolicy", invalid},
	"networks without a load balancer": {
		"service: {loadBalancerSourceRanges: [192.0.2.0/24]}",
		"spec.service.loadBalancerSourceRanges", invalid,
	},
	"address in place of a network": {
		"service: {type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.7]}",
		"spec.service.loadBalancerSourceRanges", invalid,
	},
	"family twice": {
		"service: {ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv4]}",
		"spec.service.ipFamilies", invalid,
	},
	"two families in a single stack": {"service: {ipFamilies: [IPv4, IPv6]}", "spec.service.ipFamilies", invalid},
	"one family in a dual stack":     {"service: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv4]}", "spec.service.ipFamilies", invalid},
	"peers of no NetworkPolicy":      {"networkPolicy: {mode: None, from: [{podSelector: {}}]}", "spec.networkPolicy.from", invalid},
	"two ways in": {
		"expose: {ingress: {hosts: [{host: a}]}, httpRoute: {parentRefs: [{name: a}]}}",
		"spec.expose", invalid,
	},
	"Gateway": {
		"expose: {httpRoute: {parentRefs: [{name: A}]}}",
		"spec.expose.httpRoute.parentRefs[0].name", invalid,
	},
	"namespace of a Gateway": {
		"expose: {httpRoute: {parentRefs: [{name: a, namespace: a.b}]}}",
		"spec.expose.httpRoute.parentRefs[0].namespace", invalid,
	},
	"listener": {
		"expose: {httpRoute: {parentRefs: [{name: a, sectionName: A}]}}",
		"spec.expose.httpRoute.parentRefs[0].sectionName", invalid,
	},
	"class":            {"expose: {ingress: {className: Nginx, hosts: [{host: a}]}}", "spec.expose.ingress.className", invalid},
	"Secret of a host": {"expose: {ingress: {hosts: [{host: a, tlsSecretName: A}]}}", "spec.expose.ingress.hosts[0].tlsSecretName", invalid},
	"annotation of the Ingress": {
		"expose: {ingress: {annotations: {operator.example.com/last-declared: a}, hosts: [{host: a}]}}",
		"spec.expose.ingress.annotations", invalid,
	},
	"claims":               {"resources: {claims: [{name: gpu}]}", "spec.resources", invalid},
	"label of the Service": {"service: {labels: {app.kubernetes.io/managed-by: me}}", "spec.service.labels", invalid},
	"label of the Pods":    {"podTemplate: {labels: {app.kubernetes.io/instance: me}}", "spec.podTemplate.labels", invalid},
	"annotation of the Pods": {
		"podTemplate: {annotations: {operator.example.com/force-redeploy: now}}",
		"spec.podTemplate.annotations", invalid,
	},
	"effect": {"podTemplate: {tolerations: [{key: a, effect: Never}]}", "spec.podTemplate.tolerations", invalid},
	"skew": {
		"podTemplate: {topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}",
		"spec.podTemplate.topologySpreadConstraints", invalid,
	},
	"priority class": {"podTemplate: {priorityClassName: High}", "spec.podTemplate.priorityClassName", invalid},
	"two targets of one port of certificates": {
		"tls: [{secretName: a, port: 443}, {secretName: b, port: 443, targetPort: 8443}]\n" + inline("listen 443 ssl;"),
		"spec.tls", invalid,
	},
	"target port of two certificates": {
		"tls: [{secretName: a, port: 443, targetPort: 8443}, {secretName: b, port: 8443}]",
		"spec.tls", invalid,
	},
	"target port twice": {
		"ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 8080}]",
		"spec.ports", invalid,
	},
	"target port that is plain and TLS": {"tls: [{secretName: a, port: 443, targetPort: 8080}]", "spec.tls", invalid},
	"target port without a port":        {"tls: [{secretName: a, targetPort: 8443}]", "spec.tls[0]", invalid},
	"neither plain HTTP nor TLS":        {"ports: []", "spec.ports", invalid},
	"no plain HTTP and a certificate that is only mounted": {
		"ports: []\ntls: [{secretName: a}]\n" + inline("return 204;"),
		"spec.ports", invalid,
	},
	"node port of a ClusterIP": {"ports: [{name: a, port: 80, nodePort: 30090}]", "spec.ports", invalid},
	"node port of a certificate and a ClusterIP": {
		"{tls: [{secretName: a, port: 443, nodePort: 30090}], service: {type: ClusterIP}}",
		"spec.tls", invalid,
	},
	"effects of no exporter": {"monitoring: {exporter: None, alerts: {}}", "spec.monitoring", invalid},
	"hourly interval":        {"monitoring: {podMonitor: {interval: 1h}}", "spec.monitoring.podMonitor.interval", invalid},
	"short interval":         {"monitoring: {podMonitor: {interval: 4s}}", "spec.monitoring.podMonitor.interval", invalid},
	"spread that never happens": {
		"podTemplate: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never}]}",
		"spec.podTemplate.topologySpreadConstraints", invalid,
	},
	"host with a semicolon": {"expose: {ingress: {hosts: [{host: a;b}]}}", "spec.expose.ingress.hosts[0].host", invalid},
	"path with a blank": {
		"expose: {ingress: {hosts: [{host: a, paths: [/a b]}]}}",
		"spec.expose.ingress.hosts[0].paths", invalid,
	},
	"hostname with a brace": {
		"expose: {httpRoute: {parentRefs: [{name: a}], hostnames: ['a}']}}",
		"spec.expose.httpRoute.hostnames", invalid,
	},
	"target of a patch":          {"patches: [{target: {kind: Deployment, name: A}, patch: '{}'}]", "spec.patches[0].target.name", invalid},
	"volume of two things":       {"volumes: [{name: a, emptyDir: {}, configMap: {name: a}}]", "spec.volumes[0]", invalid},
	"two masks of the ConfigMap": {"config: {configMapRef: {name: a, key: '*a*'}}", "spec.config.configMapRef.key", invalid},
	"two masks of a file":        {"files: [{path: a, configMapRef: {name: a, key: '*a*'}}]", "spec.files[0].configMapRef.key", invalid},
	"mask of a Secret":           {"files: [{path: a, secretRef: {name: a, key: 'a*'}}]", "spec.files[0].secretRef.key", invalid},
	"appProtocol":                {"ports: [{name: a, port: 80, appProtocol: 'web socket'}]", "spec.ports[0].appProtocol", invalid},
}

// refusedByWebhook are refused by the webhook.
var refusedByWebhook = map[string]refusal{
	"no way in":         {"expose: {}", "spec.expose", invalid},
	"volume of nothing": {"volumes: [{name: a}]", "spec.volumes[0]", required},
	"file next to the directory of a mask": {
		"files: [{path: a/b, configMapRef: {name: a, key: '*'}}, {path: a/c, secretRef: {name: a, key: b}}]",
		"spec.files[1].path", invalid,
	},
	"item below a file": {
		"content: {configMapRef: {name: a, items: [{key: a, path: css}, {key: a, path: css/a}]}}",
		"spec.content.configMapRef.items[0].path", invalid,
	},
	"file that is not declared": {inline("include /etc/nginx/files/a.conf;"), "spec.config.inline", invalid},
	"autoscaling without a request": {
		"{autoscaling: {maxReplicas: 2}, resources: {requests: {memory: 32Mi}}}",
		"spec.resources.requests[cpu]", required,
	},
	"much annotation of the Ingress": {
		"expose: {ingress: {annotations: {a: " + strings.Repeat("a", 66_000) + "}, hosts: [{host: a}]}}",
		"spec.expose", invalid,
	},
	"image":        {"image: docker.io/Me/nginx", "spec.image", invalid},
	"size":         {"config: {inline: '# " + strings.Repeat("\U0001F600", 60_000) + "'}", "spec", invalid},
	"daemon":       {inline("daemon on;"), "spec.config.inline", invalid},
	"typing error": {inline("location / {", "  proxy_pas http://app;", "}"), "spec.config.inline", invalid},
	"semicolon":    {inline("return 204"), "spec.config.inline", invalid},
	"log file":     {inline("access_log /var/log/shop.log;"), "spec.config.inline", invalid},
	"port nobody listens on": {
		"ports: [{name: http, port: 8080}, {name: admin, port: 8081}]\n" + inline("return 204;"),
		"spec.config.inline", invalid,
	},
	"port of the probes": {inline("listen 18080;"), "spec.config.inline", invalid},
	"certificate not mounted": {
		inline("ssl_certificate /etc/nginx/tls/shop/tls.crt;", "ssl_certificate_key /etc/nginx/tls/shop/tls.key;"),
		"spec.config.inline", invalid,
	},
	"TLS port without TLS": {"tls: [{secretName: shop, port: 8443}]\n" + inline("listen 8443;"), "spec.config.inline", invalid},
	"node port of the second certificate on a port": {
		"service: {type: NodePort}\ntls: [{secretName: a, port: 8443}, {secretName: b, port: 8443, nodePort: 30443}]\n" +
			inline("listen 8443 ssl;"),
		"spec.tls[1].nodePort", invalid,
	},
}

// value returns a configuration with a value.
func value(fields string) string { return "config: {inline: a;, values: [{name: A, " + fields + "}]}" }
