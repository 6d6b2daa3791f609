package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestVerdictOfTheAPIServer verifies that admission rejects Pod fields that only the API server can
// validate. The message contains the API server's error and the field that the user wrote.
func TestVerdictOfTheAPIServer(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const (
		nodeAffinity = "spec.podTemplate.affinity.nodeAffinity."
		required     = nodeAffinity + "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
		podAffinity  = "spec.podTemplate.affinity.podAffinity."
		podRequired  = podAffinity + "requiredDuringSchedulingIgnoredDuringExecution[0]."
		spread       = "spec.podTemplate.topologySpreadConstraints"
	)
	for title, test := range map[string]struct {
		spec string
		want []string
	}{
		"resources": {"resources: {requests: {cpu: 2, memory: -1, disk: 1, example.com/nic: 1}, limits: {cpu: 1, example.com/nic: 2}}", []string{
			"spec.resources.requests",
			"spec.resources.requests[disk]",
			"spec.resources.requests[memory]",
		}},
		"tolerations": {`
podTemplate:
  tolerations:
  - {value: a}
  - {key: a, operator: Exists, value: b}
  - {key: a, operator: Is}
  - {key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 3}
  - {key: a b}
`, []string{
			"spec.podTemplate.tolerations[0].operator",
			"spec.podTemplate.tolerations[1].operator",
			"spec.podTemplate.tolerations[2].operator",
			"spec.podTemplate.tolerations[3].effect",
			"spec.podTemplate.tolerations[4].key",
		}},
		"node affinity": {`
podTemplate:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: a, operator: In}
          - {key: a, operator: Exists, values: [b]}
          - {key: a, operator: Lt}
          - {key: a, operator: Is}
          matchFields:
          - {key: metadata.namespace, operator: In, values: [a]}
          - {key: metadata.name, operator: Exists}
          - {key: metadata.name, operator: In}
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {}}]
`, []string{
			required + "[0].matchExpressions[0].values",
			required + "[0].matchExpressions[1].values",
			required + "[0].matchExpressions[2].values",
			required + "[0].matchExpressions[3].operator",
			required + "[0].matchFields[0].key",
			required + "[0].matchFields[1].operator",
			required + "[0].matchFields[2].values",
			nodeAffinity + "preferredDuringSchedulingIgnoredDuringExecution[0].weight",
		}},
		"no node term": {
			"podTemplate: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}", []string{required},
		},
		"pod affinity": {`
podTemplate:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "", namespaces: [A]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 101, podAffinityTerm: {topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: In}]}}}
`, []string{
			podRequired + "topologyKey",
			podRequired + "namespace",
			podAffinity + "preferredDuringSchedulingIgnoredDuringExecution[0].weight",
			podAffinity + "preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector.matchExpressions[0].values",
		}},
		"spread": {`
podTemplate:
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, nodeTaintsPolicy: Obey}
  - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, minDomains: 0}
`, []string{
			spread + "[0].minDomains",
			spread + "[0].{topologyKey, whenUnsatisfiable}",
			spread + "[1].nodeTaintsPolicy",
			spread + "[2].minDomains",
		}},
		"node selector": {"podTemplate: {nodeSelector: {a b: c}}", []string{"spec.podTemplate.nodeSelector"}},
		"what only the API server knows": {
			"podTemplate: {annotations: {kubernetes.io/config.mirror: a, container.apparmor.security.beta.kubernetes.io/nginx: none}}",
			[]string{"spec.podTemplate.annotations[container.apparmor.security.beta.kubernetes.io/nginx]"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			err := suite.admin.Create(t.Context(), specManifest(t, v1alpha2.GroupVersion.Version, namespace, "web", test.spec))
			var status apierrors.APIStatus
			if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
				t.Fatalf("want a refusal, got %v", err)
			}
			told := map[string]bool{}
			for _, cause := range status.Status().Details.Causes {
				told[cause.Field] = true
			}
			for _, field := range test.want {
				if !told[field] {
					t.Errorf("%s is not told of: %v", field, err)
				}
			}
			if strings.Contains(err.Error(), "spec.template") {
				t.Errorf("tells of a field of a child: %v", err)
			}
		})
	}
	object := specManifest(t, "v1alpha1", namespace, "web", "{}")
	object.SetAnnotations(map[string]string{"operator.example.com/v1alpha2": `{"podTemplate":{"tolerations":[{"key":"a","operator":"Is"}]}}`})
	want := `spec.podTemplate.tolerations[0].operator: Unsupported value: "Is"`
	// On a busy machine, the admission of a v1alpha1 write may exceed its timeout, and then the
	// write fails.
	var got error
	waitFor(t, func() error {
		if got = suite.admin.Create(t.Context(), object.DeepCopy()); got != nil && strings.Contains(got.Error(), "failed calling webhook") {
			return got
		}
		return nil
	})
	if got == nil || !strings.Contains(got.Error(), want) {
		t.Errorf("at v1alpha1: want %q, got %v", want, got)
	}
}

// TestStatusOfRefusedChildren verifies that the status reports other children that the API server
// rejects, with the field of the spec. Admission asks the API server only about the Pods. The
// running Pods stay, and a corrected spec resolves the condition.
func TestStatusOfRefusedChildren(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	i := 0
	for title, test := range map[string]struct {
		spec string
		want []string
	}{
		"networks of the Service": {
			"service: {type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.1/33]}", []string{"spec.service.loadBalancerSourceRanges"},
		},
		"peers of the NetworkPolicy": {`
networkPolicy:
  from:
  - {}
  - {podSelector: {}, ipBlock: {cidr: 192.0.2.0/24}}
  - {ipBlock: {cidr: 192.0.2.0/24, except: [198.51.100.0/24]}}
  - {namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}
  - {ipBlock: {cidr: 192.0.2.7}}
`, []string{
			`spec.networkPolicy.from[4].ipBlock.cidr: Invalid value: "192.0.2.7": must be a valid CIDR value`,
			"spec.networkPolicy.from[0]",
			"spec.networkPolicy.from[1]",
			"spec.networkPolicy.from[2].ipBlock.except[0]",
			"spec.networkPolicy.from[3].namespaceSelector.matchExpressions[0].values",
		}},
		"hosts of the Ingress": {`
expose:
  ingress:
    hosts:
    - {host: A.example.com}
    - {host: a.*.example.com}
    - {host: 192.0.2.1}
    - {host: a.example.com, paths: [a, /a/../b, /ok]}
`, []string{
			"spec.expose.ingress.hosts[0].host",
			"spec.expose.ingress.hosts[1].host",
			"spec.expose.ingress.hosts[2].host",
			"spec.expose.ingress.hosts[3].paths[0]",
			"spec.expose.ingress.hosts[3].paths[1]",
		}},
		"names of the HTTPRoute": {
			"expose: {httpRoute: {parentRefs: [{name: public}], hostnames: [A.example.com]}}",
			[]string{"spec.expose.httpRoute.hostnames[0]: Invalid value"},
		},
		"Gateways of the HTTPRoute": {
			"expose: {httpRoute: {parentRefs: [{name: public}, {name: public}]}}",
			[]string{"spec.expose.httpRoute.parentRefs: Invalid value"},
		},
		"a patch of the Service": {
			"patches: [{target: {kind: Service}, patch: 'spec: {healthCheckNodePort: 30000}'}]",
			[]string{"spec.patches[0].patch: Invalid value: Service: spec.healthCheckNodePort: "},
		},
		"a patch of the PodDisruptionBudget": {
			"{replicas: 2, patches: [{target: {kind: PodDisruptionBudget}, patch: 'spec: {minAvailable: 1}'}]}",
			[]string{"spec.patches[0].patch: Invalid value: PodDisruptionBudget: spec: "},
		},
	} {
		name := fmt.Sprintf("web-%d", i)
		i++
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			create(t, newInstance(namespace, name))
			waitForChildren(t, namespace, name)
			makeReady(t, namespace, name)
			before := must1(childrenOf(t.Context(), namespace, name))(t)
			object := newInstance(namespace, name)
			change := func(spec string) {
				t.Helper()
				manifest := specManifest(t, v1alpha2.GroupVersion.Version, namespace, name, spec)
				update(t, object, func(o *v1alpha2.NginxOperator) {
					o.Spec = v1alpha2.NginxOperatorSpec{}
					must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object["spec"].(map[string]any), &o.Spec))
				})
			}

			change(test.spec)
			told := waitForCondition(t, namespace, name, v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonInvalidConfiguration)
			for _, want := range test.want {
				if !strings.Contains(told.Message, want) {
					t.Errorf("%s is not in %s", want, told.Message)
				}
			}
			now := must1(childrenOf(t.Context(), namespace, name))(t)
			if diff := cmp.Diff(before.deployment.Spec.Template, now.deployment.Spec.Template); diff != "" {
				t.Errorf("the Pod template changed (-before +after):\n%s", diff)
			}
			if now.service.UID != before.service.UID || now.policy.UID != before.policy.UID {
				t.Error("the children are others")
			}

			change("{}")
			waitForCondition(t, namespace, name, v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
		})
	}
}

// TestRequestsForTheVerdict verifies that admission sends one dry run, in the operator's namespace,
// if a spec changes Pod fields that the API server has to validate. Other changes cause no dry run.
// No change causes a dry run in the object's namespace.
func TestRequestsForTheVerdict(t *testing.T) {
	namespace := newNamespace(t)
	audited := len(audit(t))
	object := createWeb(t, namespace, nil)
	waitForChildren(t, namespace, "web")
	dryRuns := func() int {
		n := 0
		for _, entry := range audit(t)[audited:] {
			if !entry.IsDryRun() {
				continue
			}
			if ref := entry.ObjectRef; ref.Namespace != operatorNamespace || ref.Resource != "deployments" {
				t.Errorf("a dry run in namespace %s: %s", ref.Namespace, entry.RequestURI)
			}
			n++
		}
		return n
	}
	for i, step := range []struct {
		change func(*v1alpha2.NginxOperatorSpec)
		want   int
	}{
		{func(spec *v1alpha2.NginxOperatorSpec) { spec.ForceRedeploy = "now" }, 0},
		{func(spec *v1alpha2.NginxOperatorSpec) {
			spec.PodTemplate = &v1alpha2.PodTemplate{PriorityClassName: "high"}
		}, 1},
		{func(spec *v1alpha2.NginxOperatorSpec) { spec.ForceRedeploy = "again" }, 1},
		{func(spec *v1alpha2.NginxOperatorSpec) { spec.PodTemplate.PriorityClassName = "low" }, 2},
		{func(spec *v1alpha2.NginxOperatorSpec) { spec.PodTemplate = nil }, 2},
		{func(spec *v1alpha2.NginxOperatorSpec) {
			spec.Service = &v1alpha2.Service{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack)}
			spec.NetworkPolicy = &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}
			spec.Expose = exposedAs("shop.example.com")
			spec.Patches = []v1alpha2.Patch{patchOf("Service", "metadata: {annotations: {a: b}}")}
		}, 2},
		{func(spec *v1alpha2.NginxOperatorSpec) {
			spec.Patches = append(spec.Patches, patchOf("Deployment", "metadata: {annotations: {a: b}}"))
		}, 3},
	} {
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		before := object.DeepCopy()
		step.change(&object.Spec)
		must(t, suite.admin.Patch(t.Context(), object, client.MergeFrom(before)))
		waitFor(t, func() error {
			if _, err := waitForStatusOnce(t.Context(), namespace, "web"); err != nil {
				return err
			}
			if got := dryRuns(); got != step.want {
				return fmt.Errorf("%d dry runs after change %d, want %d", got, i, step.want)
			}
			return nil
		})
	}
}
