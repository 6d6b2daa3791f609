package operand

// withoutRecipe has the fields that no recipe of config/samples sets, by the reason.
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
	"the defaults fit most instances": {
		"nginx.workerProcesses", "nginx.workerConnections", "nginx.errorLogLevel", "nginx.accessLog",
		"rollout.maxSurge", "rollout.maxUnavailable", "rollout.progressDeadlineSeconds",
		"rollout.automaticRollback", "service.internalTrafficPolicy", "service.sessionAffinity",
		"monitoring.exporter", "monitoring.image", "monitoring.resources.limits",
		"monitoring.resources.requests", "cache.path", "cache.inMemory",
	},
	"nginx is bound by CPU, and the defaults fit most instances": {
		"autoscaling.targetMemoryUtilizationPercentage",
		"autoscaling.behavior.scaleUp.stabilizationWindowSeconds",
		"autoscaling.behavior.scaleUp.selectPolicy", "autoscaling.behavior.scaleUp.policies[].type",
		"autoscaling.behavior.scaleUp.policies[].value",
		"autoscaling.behavior.scaleUp.policies[].periodSeconds",
		"autoscaling.behavior.scaleDown.stabilizationWindowSeconds",
		"autoscaling.behavior.scaleDown.selectPolicy", "autoscaling.behavior.scaleDown.policies[].type",
		"autoscaling.behavior.scaleDown.policies[].value",
		"autoscaling.behavior.scaleDown.policies[].periodSeconds",
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
		"env[].name", "env[].value", "env[].valueFrom.configMapKeyRef.name",
		"env[].valueFrom.configMapKeyRef.key", "env[].valueFrom.configMapKeyRef.optional",
		"env[].valueFrom.secretKeyRef.name", "env[].valueFrom.secretKeyRef.key",
		"env[].valueFrom.secretKeyRef.optional", "env[].valueFrom.fieldRef.fieldPath",
		"env[].valueFrom.resourceFieldRef.resource",
	},
	"they reference objects and drivers of one cluster": {
		"volumes[].subPath", "volumes[].emptyDir.medium", "volumes[].persistentVolumeClaim.claimName",
		"volumes[].configMap.name", "volumes[].configMap.items[].key", "volumes[].configMap.items[].path",
		"volumes[].configMap.defaultMode", "volumes[].configMap.optional", "volumes[].secret.secretName",
		"volumes[].secret.items[].key", "volumes[].secret.items[].path", "volumes[].secret.defaultMode",
		"volumes[].secret.optional", "volumes[].csi.driver", "volumes[].csi.readOnly",
		"volumes[].csi.volumeAttributes", "volumes[].csi.nodePublishSecretRef.name",
		"volumes[].downwardAPI.items[].path", "volumes[].downwardAPI.items[].fieldRef.fieldPath",
		"volumes[].projected.defaultMode", "volumes[].projected.sources[].configMap.name",
		"volumes[].projected.sources[].configMap.items[].key",
		"volumes[].projected.sources[].configMap.items[].path",
		"volumes[].projected.sources[].configMap.optional", "volumes[].projected.sources[].secret.name",
		"volumes[].projected.sources[].secret.items[].key",
		"volumes[].projected.sources[].secret.items[].path",
		"volumes[].projected.sources[].secret.optional",
		"volumes[].projected.sources[].downwardAPI.items[].path",
		"volumes[].projected.sources[].downwardAPI.items[].fieldRef.fieldPath",
		"volumes[].projected.sources[].serviceAccountToken.path",
		"volumes[].projected.sources[].serviceAccountToken.audience",
		"volumes[].projected.sources[].serviceAccountToken.expirationSeconds",
	},
	"the recipe shows the fields that containers need most": {
		"initContainers[].image", "initContainers[].volumeMounts[].subPath",
		"initContainers[].volumeMounts[].readOnly", "initContainers[].env[].value",
		"initContainers[].env[].valueFrom.configMapKeyRef.name",
		"initContainers[].env[].valueFrom.configMapKeyRef.key",
		"initContainers[].env[].valueFrom.configMapKeyRef.optional",
		"initContainers[].env[].valueFrom.secretKeyRef.name",
		"initContainers[].env[].valueFrom.secretKeyRef.key",
		"initContainers[].env[].valueFrom.secretKeyRef.optional",
		"initContainers[].env[].valueFrom.resourceFieldRef.resource", "initContainers[].resources.limits",
		"initContainers[].resources.requests", "sidecars[].image", "sidecars[].volumeMounts[].subPath",
		"sidecars[].volumeMounts[].readOnly", "sidecars[].env[].valueFrom.configMapKeyRef.name",
		"sidecars[].env[].valueFrom.configMapKeyRef.key",
		"sidecars[].env[].valueFrom.configMapKeyRef.optional",
		"sidecars[].env[].valueFrom.secretKeyRef.name", "sidecars[].env[].valueFrom.secretKeyRef.key",
		"sidecars[].env[].valueFrom.secretKeyRef.optional",
		"sidecars[].env[].valueFrom.resourceFieldRef.resource",
		"sidecars[].env[].valueFrom.fieldRef.fieldPath",
	},
	"the user of the image fits most instances": {
		"securityContext.runAsUser", "securityContext.runAsGroup", "securityContext.fsGroup",
		"securityContext.fsGroupChangePolicy", "securityContext.supplementalGroups",
	},
	"they need the Prometheus Operator, which not every cluster has": {
		"monitoring.podMonitor.labels", "monitoring.podMonitor.interval", "monitoring.alerts.labels",
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
		"expose.httpRoute.parentRefs[].name", "expose.httpRoute.parentRefs[].namespace",
		"expose.httpRoute.parentRefs[].sectionName", "expose.httpRoute.parentRefs[].port",
		"expose.httpRoute.hostnames",
	},
	"with `None`, your own policies are the recipe": {
		"networkPolicy.mode",
	},
	"an instance has one child of each kind": {
		"patches[].target.name",
	},
}
