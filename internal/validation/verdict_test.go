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

// refused returns the API server's validation error for a Deployment.
func refused(errs ...*field.Error) error {
	return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", errs)
}

func TestVerdict(t *testing.T) {
	pod := field.NewPath("spec", "template", "spec")
	nginx := pod.Child("containers").Index(0)
	rules, route := field.NewPath("spec", "rules"), &v1alpha2.Expose{HTTPRoute: &v1alpha2.HTTPRoute{}}
	hosts := refused(
		field.Invalid(pod.Child("hostAliases").Index(0).Child("ip"), "none", "must be an address"),
		field.Invalid(pod.Child("tolerations").Index(0).Child("key"), "a b", "must be a name"),
	)
	const tolerations = `spec.podTemplate.tolerations[0].key: Invalid value: "a b": must be a name`
	const aliases = `: Invalid value: Deployment: spec.template.spec.hostAliases[0].ip: "none": must be an address`
	for name, test := range map[string]struct {
		err  error
		spec v1alpha2.NginxOperatorSpec
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
		"of an Ingress": {
			err: refused(
				field.Invalid(rules.Index(1).Child("host"), "A", "is no name"),
				field.Invalid(rules.Index(0).Child("http", "paths").Index(2).Child("path"), "a", "must be an absolute path"),
				field.Invalid(field.NewPath("spec", "ingressClassName"), "A", "is no name"),
				field.Invalid(field.NewPath("annotations").Child("kubernetes.io/ingress.class"), "a", "can not be set"),
				field.Invalid(field.NewPath("spec", "tls").Index(0).Child("hosts").Index(0), "A", "is no name"),
			),
			want: []string{
				`spec.expose.ingress.hosts[1].host: Invalid value: "A": is no name`,
				`spec.expose.ingress.hosts[0].paths[2]: Invalid value: "a": must be an absolute path`,
				`spec.expose.ingress.className: Invalid value: "A": is no name`,
				`spec.expose.ingress.annotations.kubernetes.io/ingress.class: Invalid value: "a": can not be set`,
			},
		},
		"of an HTTPRoute": {
			spec: v1alpha2.NginxOperatorSpec{Expose: route},
			err: refused(
				field.Invalid(field.NewPath("spec", "hostnames").Index(1), "A", "spec.hostnames[1] in body should match '^a$'"),
				field.Invalid(field.NewPath("spec", "parentRefs"), field.OmitValueType{}, "sectionName must be unique"),
				field.Invalid(rules.Index(0).Child("backendRefs"), "a", "is the operator's"),
			),
			want: []string{
				`spec.expose.httpRoute.hostnames[1]: Invalid value: "A": should match '^a$'`,
				"spec.expose.httpRoute.parentRefs: Invalid value: sectionName must be unique",
			},
		},
		"a patch": {
			err: hosts, spec: patched("Service", "Deployment"), want: []string{tolerations, "spec.patches[1].patch" + aliases},
		},
		"several patches": {
			err: hosts, spec: patched("Deployment", "Deployment"), want: []string{tolerations, "spec.patches" + aliases},
		},
		"a patch of another kind":  {err: hosts, spec: patched("Service"), want: []string{tolerations}},
		"a patch, and unreachable": {err: errors.New("connection refused"), spec: patched("Deployment")},
		"a patch, and a long value": {
			err: refused(field.Invalid(pod, strings.Repeat("x", 4*maxVerdict), "wrong")), spec: patched("Deployment"),
			want: []string{
				`spec.patches[0].patch: Invalid value: Deployment: spec.template.spec: "` + strings.Repeat("x", 479) + "…",
			},
		},
	} {
		t.Run(name, func(t *testing.T) { wantTexts(t, Verdict(test.err, &test.spec, field.NewPath("spec")), test.want...) })
	}
}

func wantTexts(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// patched returns a spec with patches of these kinds.
func patched(kinds ...string) v1alpha2.NginxOperatorSpec {
	var spec v1alpha2.NginxOperatorSpec
	for _, kind := range kinds {
		spec.Patches = append(spec.Patches, v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: kind}, Patch: "{}"})
	}
	return spec
}

// TestVerdictReportsTheFirstErrors verifies that the number of errors is bounded. The API server
// returns all errors.
func TestVerdictReportsTheFirstErrors(t *testing.T) {
	var errs []*field.Error
	for i := range 100 {
		errs = append(errs, field.Required(field.NewPath("spec", "template", "spec", "tolerations").Index(i), ""))
	}
	got := Verdict(refused(errs...), &v1alpha2.NginxOperatorSpec{}, field.NewPath("spec"))
	if len(got) != maxErrors+1 || got[maxErrors].Error() != "spec: Forbidden: and 68 more errors; correct these first" {
		t.Error(got)
	}
}

// TestVerdictIsOnlyTheAPIServers verifies that the answer of an admission webhook or policy is not
// a verdict. It can have any status, causes, and fields. Only its message distinguishes it from the
// API server's own validation.
func TestVerdictIsOnlyTheAPIServers(t *testing.T) {
	err := refused(field.Required(field.NewPath("spec", "template", "spec", "nodeSelector"), "a label"))
	if got := Verdict(err, &v1alpha2.NginxOperatorSpec{}, field.NewPath("spec")); len(got) != 1 {
		t.Fatalf("the API server's own: %v", got)
	}
	for _, message := range []string{
		`admission webhook "a.example.com" denied the request: Deployment.apps "web" is invalid: spec.template: Required value`,
		`deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: Deployment.apps "web" is invalid: `,
		"",
	} {
		var denied *apierrors.StatusError
		_ = errors.As(err, &denied)
		denied.ErrStatus.Message = message
		spec := patched("Deployment")
		wantTexts(t, Verdict(denied, &spec, field.NewPath("spec")))
		wantTexts(t, PodVerdict(denied, &spec, field.NewPath("spec")))
	}
}

// TestPodVerdict verifies that admission returns only errors in the Pod template.
func TestPodVerdict(t *testing.T) {
	err, spec := refused(
		field.Required(field.NewPath("spec", "selector"), ""),
		field.Invalid(field.NewPath("spec", "ipFamilies"), "a", "wrong"),
		field.Required(field.NewPath("spec", "template", "spec", "nodeSelector"), "a label"),
		field.Required(field.NewPath("spec", "template", "spec", "hostAliases").Index(0), "an address"),
	), patched("Deployment")
	wantTexts(t, PodVerdict(err, &spec, field.NewPath("spec")), "spec.podTemplate.nodeSelector: Required value: a label",
		"spec.patches[0].patch: Invalid value: Deployment: spec.template.spec.hostAliases[0]: an address")
}

func TestNeedsPodVerdict(t *testing.T) {
	resources := &corev1.ResourceRequirements{}
	template := func(class string) *v1alpha2.PodTemplate { return &v1alpha2.PodTemplate{PriorityClassName: class} }
	type spec = v1alpha2.NginxOperatorSpec
	volumes, containers := []v1alpha2.Volume{{Name: "a"}}, []v1alpha2.Container{{Name: "a"}}
	for name, test := range map[string]struct {
		before, now spec
		want        bool
	}{
		"nothing of it":    {now: spec{Image: "nginx", ForceRedeploy: "now"}},
		"resources":        {now: spec{Resources: resources}, want: true},
		"a template":       {now: spec{PodTemplate: template("high")}, want: true},
		"said before":      {before: spec{Resources: resources, PodTemplate: template("high")}, now: spec{PodTemplate: template("high")}},
		"no longer said":   {before: spec{Resources: resources, PodTemplate: template("high")}},
		"another template": {before: spec{PodTemplate: template("high")}, now: spec{PodTemplate: template("low")}, want: true},
		"resources as well now": {
			before: spec{PodTemplate: template("a")}, now: spec{PodTemplate: template("a"), Resources: resources}, want: true,
		},
		"what is not of the Pods": {now: spec{
			Service:       &v1alpha2.Service{IPFamilies: []corev1.IPFamily{"IPv6"}, LoadBalancerSourceRanges: []string{"a"}},
			Ports:         []v1alpha2.Port{{Name: "http", Port: 80, NodePort: ptr.To[int32](30080)}},
			NetworkPolicy: &v1alpha2.NetworkPolicy{From: make([]networkingv1.NetworkPolicyPeer, 1)},
			Expose:        &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{}},
			Patches:       patched("Service", "NetworkPolicy", "PodDisruptionBudget").Patches,
		}},
		"patches":           {now: patched("Deployment", "Deployment"), want: true},
		"patches as before": {before: patched("Deployment"), now: patched("Deployment")},
		"no patch any more": {before: patched("Deployment"), now: patched("Service")},
		"a patch less": {
			before: patched("Service", "Deployment"), now: patched("Deployment"), want: true,
		},
		"variables":              {now: spec{Env: []v1alpha2.EnvVar{{Name: "A"}}}, want: true},
		"volumes":                {now: spec{Volumes: volumes}, want: true},
		"a user":                 {now: spec{SecurityContext: &v1alpha2.PodSecurityContext{}}, want: true},
		"volumes as before":      {before: spec{Volumes: volumes}, now: spec{Volumes: volumes, Image: "nginx:1.28.0"}},
		"one more list":          {before: spec{Volumes: volumes}, now: spec{Volumes: volumes, Sidecars: containers}, want: true},
		"other list":             {before: spec{InitContainers: containers}, now: spec{Sidecars: containers}, want: true},
		"no containers any more": {before: spec{InitContainers: containers, ServiceAccountName: "a"}},
	} {
		if got := NeedsPodVerdict(&test.before, &test.now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOriginOfElements verifies that the API server's error in a list element gets the index of the
// element in the spec.
func TestOriginOfElements(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{
		Volumes: make([]v1alpha2.Volume, 1), InitContainers: make([]v1alpha2.Container, 1), Sidecars: make([]v1alpha2.Container, 2),
	}
	for child, want := range map[string]string{
		"spec.template.spec.containers[0].env[3].valueFrom.fieldRef.fieldPath": "env[3].valueFrom.fieldRef.fieldPath",
		"spec.template.spec.serviceAccountName":                                "serviceAccountName",
		"spec.template.spec.volumes[2].csi.driver":                             "volumes[0].csi.driver",
		"spec.template.spec.volumes[1].emptyDir":                               "",
		"spec.template.spec.volumes[3].configMap":                              "",
		"spec.template.spec.volumes":                                           "",
		"spec.template.spec.volumes[" + strings.Repeat("9", 100) + "].name":    "",
		"spec.template.spec.initContainers[0].resources.limits[disk]":          "initContainers[0].resources.limits[disk]",
		"spec.template.spec.initContainers[2].env[0].valueFrom":                "sidecars[1].env[0].valueFrom",
		"spec.template.spec.initContainers[3].image":                           "",
	} {
		if got, _ := origin(child, spec); got != want {
			t.Errorf("%s: got %q, want %q", child, got, want)
		}
	}
}
