package validation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// refused is what the API server answers to a Deployment with these faults.
func refused(errs ...*field.Error) error {
	return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", errs)
}

func TestVerdict(t *testing.T) {
	pod := field.NewPath("spec", "template", "spec")
	nginx := pod.Child("containers").Index(0)
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"no error":      {},
		"unreachable":   {err: errors.New("connection refused")},
		"quota":         {err: apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("exceeded quota"))},
		"name is taken": {err: apierrors.NewAlreadyExists(appsv1.Resource("deployments"), "web")},
		"no details":    {err: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422}}},
		"the operator's own fields": {err: refused(
			field.Invalid(field.NewPath("metadata", "name"), "A", "is no name"),
			field.Required(pod.Child("containers").Index(1).Child("resources"), ""),
			field.Forbidden(pod.Child("tolerationsOfOthers"), "no"),
		)},
		"every kind of error": {
			err: fmt.Errorf("failed to create Deployment: %w", refused(
				field.NotSupported(pod.Child("tolerations").Index(0).Child("operator"), "Is", []string{"Equal", "Exists"}),
				field.Required(pod.Child("affinity", "nodeAffinity"), "must have a term"),
				field.Duplicate(pod.Child("topologySpreadConstraints").Index(1), "zone"),
				field.Invalid(nginx.Child("resources", "requests"), "2", "must be less than or equal to cpu limit of 1"),
				field.Invalid(nginx.Child("resources", "limits").Key("disk"), field.OmitValueType{}, "is no resource"),
				field.TypeInvalid(nginx.Child("image"), "a", "is no image"),
				field.TooLong(pod.Child("priorityClassName"), "", 253),
				field.Forbidden(pod.Child("nodeSelector"), "not here"),
				field.Required(pod.Child("imagePullSecrets").Index(0).Child("name"), ""),
				field.Invalid(field.NewPath("spec", "template", "labels"), "a b", "is no label"),
				field.Invalid(field.NewPath("spec", "template", "metadata", "annotations").Key("a"), "b", "is no profile"),
			)),
			want: []string{
				`spec.podTemplate.tolerations[0].operator: Unsupported value: "Is": supported values: "Equal", "Exists"`,
				"spec.podTemplate.affinity.nodeAffinity: Required value: must have a term",
				`spec.podTemplate.topologySpreadConstraints[1]: Duplicate value: "zone"`,
				`spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
				"spec.resources.limits[disk]: Invalid value: is no resource",
				`spec.image: Invalid value: "a": is no image`,
				"spec.podTemplate.priorityClassName: Too long: may not be more than 253 bytes",
				"spec.podTemplate.nodeSelector: Forbidden: not here",
				"spec.podTemplate.imagePullSecrets[0].name: Required value",
				`spec.podTemplate.labels: Invalid value: "a b": is no label`,
				`spec.podTemplate.annotations[a]: Invalid value: "b": is no profile`,
			},
		},
		"of a Service": {
			err: refused(
				field.Invalid(field.NewPath("spec", "LoadBalancerSourceRanges").Index(0), "a", "is no network"),
				field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), "RequireDualStack", "this cluster has one family"),
				field.Invalid(field.NewPath("spec", "ipFamilies").Index(0), "IPv6", "may not change once set"),
				field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), "10.0.0.1", "expected an IPv6 value"),
				field.Invalid(field.NewPath("spec", "ports").Index(1).Child("nodePort"), 443, "is not in the valid range"),
				field.Invalid(field.NewPath("spec", "ports").Index(1).Child("name"), "a", "is the operator's"),
				field.Forbidden(field.NewPath("spec", "clusterIP"), "no"),
			),
			want: []string{
				`spec.service.loadBalancerSourceRanges[0]: Invalid value: "a": is no network`,
				`spec.service.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster has one family`,
				`spec.service.ipFamilies[0]: Invalid value: "IPv6": may not change once set`,
				`spec.service.ipFamilies[0]: Invalid value: "10.0.0.1": expected an IPv6 value`,
				"spec.service: Invalid value: nodePort 443: is not in the valid range",
			},
		},
		"of a NetworkPolicy": {
			err: refused(
				field.Required(field.NewPath("spec", "ingress").Index(0).Child("from").Index(1), "must specify a peer"),
				field.Required(field.NewPath("spec", "ingress").Index(0).Child("ports").Index(1), ""),
			),
			want: []string{"spec.networkPolicy.from[1]: Required value: must specify a peer"},
		},
		"what is the user's beside what is not": {
			err: refused(
				field.Required(field.NewPath("spec", "selector"), ""),
				field.Invalid(pod.Child("nodeSelector"), strings.Repeat("ü", 400), "is no label"),
				field.Required(pod.Child("nodeSelector").Key(strings.Repeat("a", 600)), ""),
			),
			want: []string{
				"spec.podTemplate.nodeSelector: Invalid value: \"" + strings.Repeat("ü", 255) + "…",
				"spec.podTemplate.nodeSelector[" + strings.Repeat("a", 482) + "…: Required value",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Verdict(test.err, &v1alpha2.NginxOperatorSpec{}, field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The API server tells of everything that it finds.
func TestVerdictTellsOfTheFirstErrors(t *testing.T) {
	var errs []*field.Error
	for i := range 100 {
		errs = append(errs, field.Required(field.NewPath("spec", "template", "spec", "tolerations").Index(i), ""))
	}
	got := Verdict(refused(errs...), &v1alpha2.NginxOperatorSpec{}, field.NewPath("spec"))
	if len(got) != maxErrors+1 || got[maxErrors].Error() != "spec: Forbidden: and 68 more problems; correct these first" {
		t.Error(got)
	}
}

func TestNeedsVerdict(t *testing.T) {
	resources := &corev1.ResourceRequirements{}
	template := func(class string) *v1alpha2.PodTemplate { return &v1alpha2.PodTemplate{PriorityClassName: class} }
	type spec = v1alpha2.NginxOperatorSpec
	ranges := func(affinity corev1.ServiceAffinity, list ...string) *v1alpha2.Service {
		return &v1alpha2.Service{SessionAffinity: affinity, LoadBalancerSourceRanges: list}
	}
	nodePort := func(n int32) []v1alpha2.Port { return []v1alpha2.Port{{Name: "http", Port: 80, NodePort: &n}} }
	peers := func(n int) *v1alpha2.NetworkPolicy {
		return &v1alpha2.NetworkPolicy{From: make([]networkingv1.NetworkPolicyPeer, n)}
	}
	patches := func(kinds ...string) []v1alpha2.Patch {
		var out []v1alpha2.Patch
		for _, kind := range kinds {
			out = append(out, v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: kind}, Patch: "{}"})
		}
		return out
	}
	deployment, service, policy := []string{"Deployment"}, []string{"Service"}, []string{"NetworkPolicy"}
	for name, test := range map[string]struct {
		before, now spec
		want        []string
	}{
		"nothing of it":    {now: spec{Image: "nginx", ForceRedeploy: "now"}},
		"resources":        {now: spec{Resources: resources}, want: deployment},
		"a template":       {now: spec{PodTemplate: template("high")}, want: deployment},
		"said before":      {before: spec{Resources: resources, PodTemplate: template("high")}, now: spec{PodTemplate: template("high")}},
		"no longer said":   {before: spec{Resources: resources, PodTemplate: template("high")}},
		"another template": {before: spec{PodTemplate: template("high")}, now: spec{PodTemplate: template("low")}, want: deployment},
		"resources as well now": {
			before: spec{PodTemplate: template("a")}, now: spec{PodTemplate: template("a"), Resources: resources}, want: deployment,
		},
		"nothing of a Service": {now: spec{Service: ranges(corev1.ServiceAffinityClientIP)}},
		"networks":             {now: spec{Service: ranges("", "a")}, want: service},
		"networks as before":   {before: spec{Service: ranges("", "a")}, now: spec{Service: ranges(corev1.ServiceAffinityClientIP, "a")}},
		"other networks":       {before: spec{Service: ranges("", "a")}, now: spec{Service: ranges("", "b")}, want: service},
		"families":             {now: spec{Service: &v1alpha2.Service{IPFamilies: []corev1.IPFamily{"IPv6"}}}, want: service},
		"peers":                {now: spec{NetworkPolicy: peers(1)}, want: policy},
		"peers as before":      {before: spec{NetworkPolicy: peers(1)}, now: spec{NetworkPolicy: peers(1)}},
		"one more peer":        {before: spec{NetworkPolicy: peers(1)}, now: spec{NetworkPolicy: peers(2)}, want: policy},
		"no NetworkPolicy":     {now: spec{NetworkPolicy: &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone}}},
		"patches of a kind":    {now: spec{Patches: patches("Deployment", "Deployment")}, want: deployment},
		"patches as before":    {before: spec{Patches: patches("Service")}, now: spec{Patches: patches("Service")}},
		"a patch less":         {before: spec{Patches: patches("Service", "Deployment")}, now: spec{Patches: patches("Service")}, want: service},
		"no patch any more":    {before: spec{Patches: patches("Service")}},
		"a patch and peers": {
			now:  spec{Patches: patches("NetworkPolicy", "Service"), NetworkPolicy: peers(1)},
			want: []string{"NetworkPolicy", "Service"},
		},
		"node port":           {now: spec{Ports: nodePort(30080)}, want: service},
		"node port as before": {before: spec{Ports: nodePort(30080)}, now: spec{Ports: nodePort(30080), ForceRedeploy: "now"}},
		"another node port":   {before: spec{Ports: nodePort(30080)}, now: spec{Ports: nodePort(30081)}, want: service},
		"no node port":        {before: spec{Ports: nodePort(30080)}},
		"two kinds": {
			now:  spec{Service: &v1alpha2.Service{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyRequireDualStack)}, Resources: resources},
			want: []string{"Deployment", "Service"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, NeedsVerdict(&test.before, &test.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
