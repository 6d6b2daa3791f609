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

// Kinds returns the kinds of the children that can be patched, as the schema has them.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// kind is what a patch may do to the children of a kind. Of the metadata it may add labels and annotations that are not the
// operator's, and of the rest it may change what is not named here. Another kind is another entry here and in the schema.
type kind struct {
	empty func() client.Object
	// kept are fields that stay as the operator made them.
	kept []kept
	// added are lists to which a patch may only add.
	added []kept
	// ratcheted are fields that patches of objects which 0.5.0 stored may have changed or added to, and others may not.
	ratcheted []kept
}

// kept is a field that a patch may not change, and what there is to do in place of it.
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

// keptOfNginx are the fields of nginx's container that stay as the operator made them.
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
