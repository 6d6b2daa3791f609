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

// kept is a restricted field, and the remedy that the message gives.
type kept struct{ field, instead string }

const (
	ownSelector  = "the operator needs it to find the Pods; leave it out"
	ownContract  = "the operator relies on it; leave it out"
	podSpec      = "spec.template.spec."
	usePorts     = "set spec.ports or spec.tls"
	useRollout   = "set spec.rollout"
	useDrain     = "set spec.drainSeconds"
	useTemplate  = "set spec.podTemplate"
	useService   = "set spec.service"
	useResources = "set spec.resources"
	ownPolicy    = "create a NetworkPolicy of your own for the Pods"
)

var kinds = map[string]kind{
	"Deployment": {
		empty: func() client.Object { return &appsv1.Deployment{} },
		kept: []kept{
			{"spec.replicas", "set spec.replicas, or let a HorizontalPodAutoscaler do it"},
			{"spec.selector", ownSelector},
			{"spec.strategy", useRollout},
			{"spec.progressDeadlineSeconds", useRollout},
			{"spec.paused", "set spec.paused"},
			{"spec.revisionHistoryLimit", ownContract},
			{podSpec + "terminationGracePeriodSeconds", useDrain},
			{podSpec + "nodeSelector", useTemplate},
			{podSpec + "tolerations", useTemplate},
			{podSpec + "affinity", useTemplate},
			{podSpec + "topologySpreadConstraints", useTemplate},
			{podSpec + "priorityClassName", useTemplate},
			{podSpec + "imagePullSecrets", useTemplate},
		},
		added: []kept{{podSpec + "volumes", ownContract}, {podSpec + "securityContext.sysctls", ownContract}},
		ratcheted: []kept{
			{podSpec + "automountServiceAccountToken", "declare the token in spec.volumes (projected.serviceAccountToken), with an audience"},
		},
	},
	"Service": {
		empty: func() client.Object { return &corev1.Service{} },
		kept: []kept{
			{"spec.selector", ownSelector},
			{"spec.ports", usePorts},
			{"spec.publishNotReadyAddresses", ownContract},
			{"spec.clusterIP", ownContract},
			{"spec.clusterIPs", ownContract},
			{"spec.externalName", ownContract},
			{"spec.externalIPs", "addresses of others are not an instance's to take; leave it out"},
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
		kept:  []kept{{"spec.podSelector", ownSelector}},
		added: []kept{{"spec.policyTypes", ownContract}, {"spec.ingress", "set spec.networkPolicy"}},
		ratcheted: []kept{
			{"spec.policyTypes", ownPolicy},
			{"spec.ingress", "set spec.networkPolicy, or " + ownPolicy},
			{"spec.egress", ownPolicy},
		},
	},
	"PodDisruptionBudget": {
		empty: func() client.Object { return &policyv1.PodDisruptionBudget{} },
		kept:  []kept{{"spec.selector", ownSelector}},
	},
}

// keptOfNginx are the fields of the nginx container that a patch cannot change.
var keptOfNginx = []kept{
	{"image", "set spec.image"},
	{"command", ownContract},
	{"args", ownContract},
	{"ports", usePorts},
	{"resources", useResources},
	{"startupProbe", ownContract},
	{"readinessProbe", ownContract},
	{"livenessProbe", ownContract},
	{"lifecycle", useDrain},
	{"restartPolicy", ownContract},
	{"restartPolicyRules", ownContract},
	{"terminationMessagePath", ownContract},
	{"terminationMessagePolicy", ownContract},
}
