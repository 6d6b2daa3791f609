package patch

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds returns the kinds of the children that can be patched. The schema allows the same kinds.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// kind defines what a patch may change in children of a kind: it may add labels and annotations
// whose keys are not reserved, and change each field of the spec that is not listed here.
type kind struct {
	empty func() client.Object
	// kept are fields that a patch cannot change.
	kept []kept
	// added are lists to which a patch can only add elements.
	added []kept
	// ratcheted are fields that only patches of objects that 0.5.0 stored may change or add to.
	ratcheted []kept
}

type kept struct{ field, instead string }

const (
	podSpec      = "spec.template.spec."
	removeIt     = "remove this change from the patch"
	usePorts     = "set spec.ports or spec.tls of the NginxOperator"
	useRollout   = "set spec.rollout of the NginxOperator"
	useDrain     = "set spec.drainSeconds of the NginxOperator"
	useTemplate  = "set spec.podTemplate of the NginxOperator"
	useService   = "set spec.service of the NginxOperator"
	useResources = "set spec.resources of the NginxOperator"
	usePolicy    = "set spec.networkPolicy of the NginxOperator"
	ownPolicy    = "create another NetworkPolicy for the Pods"
)

var kinds = map[string]kind{
	"Deployment": {
		empty: func() client.Object { return &appsv1.Deployment{} },
		kept: []kept{
			{"spec.replicas", "set spec.replicas or spec.autoscaling of the NginxOperator"},
			{"spec.selector", removeIt},
			{"spec.strategy", useRollout},
			{"spec.progressDeadlineSeconds", useRollout},
			{"spec.paused", "set spec.paused of the NginxOperator"},
			{"spec.revisionHistoryLimit", removeIt},
			{podSpec + "terminationGracePeriodSeconds", useDrain},
			{podSpec + "nodeSelector", useTemplate},
			{podSpec + "tolerations", useTemplate},
			{podSpec + "affinity", useTemplate},
			{podSpec + "topologySpreadConstraints", useTemplate},
			{podSpec + "priorityClassName", useTemplate},
			{podSpec + "imagePullSecrets", useTemplate},
		},
		added: []kept{{podSpec + "volumes", removeIt}, {podSpec + "securityContext.sysctls", removeIt}},
		ratcheted: []kept{
			{podSpec + "automountServiceAccountToken", "add a volume with projected.serviceAccountToken to spec.volumes of the NginxOperator"},
		},
	},
	"Service": {
		empty: func() client.Object { return &corev1.Service{} },
		kept: []kept{
			{"spec.selector", removeIt},
			{"spec.ports", usePorts},
			{"spec.publishNotReadyAddresses", removeIt},
			{"spec.clusterIP", removeIt},
			{"spec.clusterIPs", removeIt},
			{"spec.externalName", removeIt},
			{"spec.externalIPs", removeIt + " (it can redirect traffic of others)"},
			{"spec.type", useService},
			{"spec.loadBalancerClass", useService},
			{"spec.externalTrafficPolicy", useService},
			{"spec.internalTrafficPolicy", useService},
			{"spec.sessionAffinity", useService},
			{"spec.loadBalancerSourceRanges", useService},
			{"spec.ipFamilyPolicy", useService},
			{"spec.ipFamilies", useService},
		},
	},
	"NetworkPolicy": {
		empty: func() client.Object { return &networkingv1.NetworkPolicy{} },
		kept:  []kept{{"spec.podSelector", removeIt}},
		added: []kept{{"spec.policyTypes", removeIt}, {"spec.ingress", usePolicy}},
		ratcheted: []kept{
			{"spec.policyTypes", ownPolicy},
			{"spec.ingress", usePolicy + ", or " + ownPolicy},
			{"spec.egress", ownPolicy},
		},
	},
	"PodDisruptionBudget": {
		empty: func() client.Object { return &policyv1.PodDisruptionBudget{} },
		kept:  []kept{{"spec.selector", removeIt}},
	},
}

var keptOfNginx = []kept{
	{"image", "set spec.image of the NginxOperator"},
	{"command", removeIt},
	{"args", removeIt},
	{"ports", usePorts},
	{"resources", useResources},
	{"startupProbe", removeIt},
	{"readinessProbe", removeIt},
	{"livenessProbe", removeIt},
	{"lifecycle", useDrain},
	{"restartPolicy", removeIt},
	{"restartPolicyRules", removeIt},
	{"terminationMessagePath", removeIt},
	{"terminationMessagePolicy", removeIt},
}
