package operand

// withoutRecipe has the fields that no recipe of config/samples sets, by the reason. A path that
// ends with a dot has all fields below it.
var withoutRecipe = map[string][]string{
	"they are for a moment, not for a manifest that is reapplied": {
		"forceRedeploy", "paused",
	},
	"each is free on one cluster and taken on another": {
		"ports[].nodePort", "tls[].nodePort",
	},
	"the recipe's ConfigMap has the default key": {
		"config.configMapRef.key",
	},
	"all keys in one directory fit most instances": {
		"config.values[].",
		"content.configMapRef.items[].",
	},
	"the defaults fit most instances": {
		"nginx.", "rollout.", "service.internalTrafficPolicy", "service.sessionAffinity", "monitoring.exporter",
		"monitoring.image", "monitoring.resources.", "cache.path", "cache.inMemory",
	},
	"nginx is bound by CPU, and the defaults fit most instances": {
		"autoscaling.targetMemoryUtilizationPercentage", "autoscaling.behavior.",
	},
	"each cloud and cluster has its own": {
		"service.annotations", "service.loadBalancerClass", "service.loadBalancerSourceRanges",
		"service.ipFamilyPolicy", "service.ipFamilies",
	},
	"they are for tools that no recipe installs": {
		"podTemplate.labels", "podTemplate.annotations",
	},
	"they reference nodes and classes of one cluster": {
		"podTemplate.nodeSelector", "podTemplate.tolerations", "podTemplate.affinity",
		"podTemplate.priorityClassName",
	},
	"the recipes use public images": {
		"podTemplate.imagePullSecrets",
	},
	"nginx itself needs no environment variables": {
		"env[].",
	},
	"they reference objects and drivers of one cluster": {
		"volumes[].subPath", "volumes[].emptyDir.medium", "volumes[].persistentVolumeClaim.", "volumes[].configMap.",
		"volumes[].secret.", "volumes[].csi.", "volumes[].downwardAPI.", "volumes[].projected.",
	},
	"the recipe shows the fields that containers need most": {
		"initContainers[].image", "initContainers[].volumeMounts[].subPath", "initContainers[].volumeMounts[].readOnly",
		"initContainers[].env[].value", "initContainers[].env[].valueFrom.configMapKeyRef.",
		"initContainers[].env[].valueFrom.secretKeyRef.", "initContainers[].env[].valueFrom.resourceFieldRef.",
		"initContainers[].resources.", "sidecars[].image", "sidecars[].volumeMounts[].subPath",
		"sidecars[].volumeMounts[].readOnly", "sidecars[].env[].valueFrom.",
	},
	"the user of the image fits most instances": {
		"securityContext.",
	},
	"they need the Prometheus Operator, which not every cluster has": {
		"monitoring.podMonitor.", "monitoring.alerts.",
	},
	"it references a ServiceAccount of one namespace": {
		"serviceAccountName",
	},
	"each controller has its own": {
		"expose.ingress.annotations",
	},
	"the recipe serves a whole host; a Secret for it is not in the recipe": {
		"expose.ingress.hosts[].paths", "expose.ingress.hosts[].tlsSecretName",
	},
	"it needs the Gateway API and a Gateway, which not every cluster has": {
		"expose.httpRoute.",
	},
	"with `None`, your own policies are the recipe": {
		"networkPolicy.mode",
	},
	"an instance has one child of each kind": {
		"patches[].target.name",
	},
}
