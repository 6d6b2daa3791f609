package integration

import "strings"

// The API server's own messages differ between its versions, so the tests compare their fields and
// reasons only.

// refusedBySchema are refused by the schema, without one of its rules.
var refusedBySchema = map[string]refusal{
	"port name twice":     {"ports: [{name: a, port: 80}, {name: a, port: 81}]", "spec.ports[1]", duplicate},
	"UDP":                 {"ports: [{name: a, port: 80, protocol: UDP}]", "spec.ports[0].protocol", unsupported},
	"port without a name": {"ports: [{port: 80}]", "spec.ports[0].name", required},
	"Secret twice":        {"tls: [{secretName: a}, {secretName: a}]", "spec.tls[1]", duplicate},
	"file twice": {
		"files: [{path: a, secretRef: {name: a, key: b}}, {path: a, secretRef: {name: c, key: d}}]",
		"spec.files[1]", duplicate,
	},
	"file without a path":  {"files: [{secretRef: {name: a, key: b}}]", "spec.files[0].path", required},
	"file without a key":   {"files: [{path: a, secretRef: {name: a}}]", "spec.files[0].secretRef.key", required},
	"cache without a size": {"cache: {path: /cache}", "spec.cache.size", required},
	"short drain":          {"drainSeconds: 4", "spec.drainSeconds", invalid},
	"type of the Service":  {"service: {type: ExternalName}", "spec.service.type", unsupported},
	"field of v1alpha1":    {"port: 80", "spec.port", unknown},
	"content without name": {"content: {configMapRef: {}}", "spec.content.configMapRef.name", required},
	"item without a key": {
		"content: {configMapRef: {name: a, items: [{path: b}]}}",
		"spec.content.configMapRef.items[0].key", required,
	},
	"item without a path": {
		"content: {configMapRef: {name: a, items: [{key: b}]}}",
		"spec.content.configMapRef.items[0].path", required,
	},
	"no items": {"content: {configMapRef: {name: a, items: []}}", "spec.content.configMapRef.items", invalid},
	"path of two items": {
		"content: {configMapRef: {name: a, items: [{key: a, path: c}, {key: b, path: c}]}}",
		"spec.content.configMapRef.items[1]", duplicate,
	},
	"257 items": {
		"content: {configMapRef: {name: a, items: [" + strings.Repeat("{key: a, path: b},", 257) + "]}}",
		"spec.content.configMapRef.items", tooMany,
	},
	"autoscaling without an upper bound": {"autoscaling: {}", "spec.autoscaling.maxReplicas", required},
	"autoscaling to nothing":             {"autoscaling: {minReplicas: 0, maxReplicas: 2}", "spec.autoscaling.minReplicas", invalid},
	"autoscaling policies of no type": {
		"autoscaling: {maxReplicas: 2, behavior: {scaleUp: {policies: [{value: 1, periodSeconds: 1}]}}}",
		"spec.autoscaling.behavior.scaleUp.policies[0].type", required,
	},
	"errors of 0 percent": {"monitoring: {alerts: {errorPercent: 0}}", "spec.monitoring.alerts.errorPercent", invalid},
	"latency beyond the buckets": {
		"monitoring: {alerts: {latencyMilliseconds: 10000}}", "spec.monitoring.alerts.latencyMilliseconds", invalid,
	},
	"short deadline":      {"rollout: {progressDeadlineSeconds: 9}", "spec.rollout.progressDeadlineSeconds", invalid},
	"too many workers":    {"nginx: {workerProcesses: 1025}", "spec.nginx.workerProcesses", invalid},
	"too few connections": {"nginx: {workerConnections: 63}", "spec.nginx.workerConnections", invalid},
	"too many modules":    {"nginx: {modules: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q]}", "spec.nginx.modules", tooMany},
	"same module twice":   {"nginx: {modules: [a, a]}", "spec.nginx.modules[1]", duplicate},
	"level of a log":      {"nginx: {errorLogLevel: loud}", "spec.nginx.errorLogLevel", unsupported},
	"empty value":         {value(`value: ""`), "spec.config.values[0].value", invalid},
	"long value":          {value("value: " + strings.Repeat("a", 1025)), "spec.config.values[0].value", tooLong},
	"field of a Pod": {
		value("valueFrom: {fieldRef: {fieldPath: status.podIP}}"), "spec.config.values[0].valueFrom.fieldRef.fieldPath", unsupported,
	},
	"same value twice": {
		"config: {inline: a;, values: [{name: A, value: a}, {name: A, value: b}]}", "spec.config.values[1]", duplicate,
	},
	"65 networks": {
		"service: {type: LoadBalancer, loadBalancerSourceRanges: [" + strings.Repeat("192.0.2.0/24,", 65) + "]}",
		"spec.service.loadBalancerSourceRanges", tooMany,
	},
	"session affinity":          {"service: {sessionAffinity: Cookie}", "spec.service.sessionAffinity", unsupported},
	"internal policy":           {"service: {internalTrafficPolicy: Near}", "spec.service.internalTrafficPolicy", unsupported},
	"family policy":             {"service: {ipFamilyPolicy: DualStack}", "spec.service.ipFamilyPolicy", unsupported},
	"family":                    {"service: {ipFamilies: [IPv5]}", "spec.service.ipFamilies[0]", unsupported},
	"mode of the NetworkPolicy": {"networkPolicy: {mode: Unmanaged}", "spec.networkPolicy.mode", unsupported},
	"no Gateway":                {"expose: {httpRoute: {parentRefs: []}}", "spec.expose.httpRoute.parentRefs", invalid},
	"9 Gateways": {
		"expose: {httpRoute: {parentRefs: [" + strings.Repeat("{name: a},", 9) + "]}}",
		"spec.expose.httpRoute.parentRefs", tooMany,
	},
	"17 hostnames": {
		"expose: {httpRoute: {parentRefs: [{name: a}], hostnames: [" + strings.Repeat("a,", 17) + "]}}",
		"spec.expose.httpRoute.hostnames", tooMany,
	},
	"long hostname": {
		"expose: {httpRoute: {parentRefs: [{name: a}], hostnames: [" + strings.Repeat("a", 254) + "]}}",
		"spec.expose.httpRoute.hostnames[0]", tooLong,
	},
	"port of listeners": {"expose: {httpRoute: {parentRefs: [{name: a, port: 0}]}}", "spec.expose.httpRoute.parentRefs[0].port", invalid},
	"no hosts":          {"expose: {ingress: {hosts: []}}", "spec.expose.ingress.hosts", invalid},
	"17 hosts":          {"expose: {ingress: {hosts: [" + strings.Repeat("{host: a},", 17) + "]}}", "spec.expose.ingress.hosts", tooMany},
	"host twice":        {"expose: {ingress: {hosts: [{host: a}, {host: a}]}}", "spec.expose.ingress.hosts[1]", duplicate},
	"path twice":        {"expose: {ingress: {hosts: [{host: a, paths: [/, /]}]}}", "spec.expose.ingress.hosts[0].paths[1]", duplicate},
	"17 paths": {
		"expose: {ingress: {hosts: [{host: a, paths: [" + strings.Repeat("/,", 17) + "]}]}}",
		"spec.expose.ingress.hosts[0].paths", tooMany,
	},
	"no peers":          {"networkPolicy: {from: []}", "spec.networkPolicy.from", invalid},
	"17 peers":          {"networkPolicy: {from: [" + strings.Repeat("{podSelector: {}},", 17) + "]}", "spec.networkPolicy.from", tooMany},
	"target port 0":     {"ports: [{name: a, port: 80, targetPort: 0}]", "spec.ports[0].targetPort", invalid},
	"large target port": {"tls: [{secretName: a, port: 80, targetPort: 65536}]", "spec.tls[0].targetPort", invalid},
	"node port 0":       {"{ports: [{name: a, port: 80, nodePort: 0}], service: {type: NodePort}}", "spec.ports[0].nodePort", invalid},
	"long appProtocol": {
		"ports: [{name: a, port: 80, appProtocol: " + strings.Repeat("a", 318) + "}]",
		"spec.ports[0].appProtocol", tooLong,
	},
}

// refusedByDryRun are refused by the API server when the webhook asks it about the Pod template.
var refusedByDryRun = map[string]refusal{
	"request over limit": {"resources: {requests: {cpu: 2}, limits: {cpu: 1}}", "spec.resources.requests", invalid},
	"unknown resource":   {"resources: {limits: {disk: 1}}", "spec.resources.limits[disk]", invalid},
	"value of a label":   {"podTemplate: {labels: {team: a b}}", "spec.podTemplate.labels", invalid},
	"operator of toleration": {
		"podTemplate: {tolerations: [{key: a, operator: Is}]}",
		"spec.podTemplate.tolerations[0].operator", unsupported,
	},
	"topology key": {
		"podTemplate: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: '', whenUnsatisfiable: DoNotSchedule}]}",
		"spec.podTemplate.topologySpreadConstraints[0].topologyKey", required,
	},
	"weight": {
		"podTemplate: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {}}]}}}",
		"spec.podTemplate.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", invalid,
	},
	"pull Secret": {"podTemplate: {imagePullSecrets: [{name: A}]}", "spec.podTemplate.imagePullSecrets[0].name", invalid},
}

// refusedAtV1alpha1 are refused by the schema of v1alpha1.
var refusedAtV1alpha1 = map[string]refusal{
	"port":               {"port: 0", "spec.port", invalid},
	"replicas":           {"replicas: 1001", "spec.replicas", invalid},
	"field of v1alpha2":  {"image: nginx", "spec.image", unknown},
	"list for the port":  {"port: [80]", "spec.port", wrongType},
	"long forceRedeploy": {"forceRedeploy: " + strings.Repeat("x", 257), "spec.forceRedeploy", tooLong},
}
