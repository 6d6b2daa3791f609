package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func patchOf(kind, text string) v1alpha2.Patch {
	return v1alpha2.Patch{Target: v1alpha2.PatchTarget{Kind: kind}, Patch: text}
}

// sidecar is a patch that adds a container with as many fields as possible. The API server has
// defaults for many of them.
const sidecar = `
metadata: {labels: {team: shop}, annotations: {example.com/why: "1e3"}}
spec:
  minReadySeconds: 1
  template:
    metadata: {annotations: {example.com/scrape: "yes"}}
    spec:
      serviceAccountName: robot
      schedulerName: other
      hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]
      initContainers:
      - {name: first, image: "busybox:1", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
      containers:
      - name: log
        image: busybox:1
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: COUNT, value: "1"}]
        ports: [{name: log, containerPort: 9000}]
        resources: {limits: {cpu: 0.5, memory: 64Mi}}
        readinessProbe: {httpGet: {port: log, path: /}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: log, mountPath: /log}]
      - {name: nginx, volumeMounts: [{name: log, mountPath: /var/log/nginx}, {name: all, mountPath: /srv/all}]}
      volumes:
      - {name: log, emptyDir: {sizeLimit: 1Gi}}
      - {name: all, projected: {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}, {secret: {name: a}}]}}
`

// allPatches are patches of each kind, as merge patches and as operations.
func allPatches() []v1alpha2.Patch {
	return []v1alpha2.Patch{
		patchOf("Deployment", sidecar),
		patchOf("Deployment", `[{op: add, path: /spec/template/spec/dnsConfig, value: {options: [{name: ndots, value: "1"}]}}]`),
		patchOf("Service", `{metadata: {annotations: {example.com/a: b}}, spec: {allocateLoadBalancerNodePorts: null}}`),
		patchOf("NetworkPolicy", `[{op: add, path: /metadata/labels/team, value: shop}]`),
		patchOf("PodDisruptionBudget", "spec: {maxUnavailable: null, minAvailable: 50%}"),
	}
}

// TestPatches verifies that patches reach the children, and that the operator corrects drift in the
// patched fields. The status lists the patched kinds. Nothing remains after the patches are
// removed.
func TestPatches(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) })
	waitFor(t, func() error { return hasBudget(t, namespace, nil) })
	before := must1(childrenOf(t.Context(), namespace, "web"))(t)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Patches = allPatches() })
	patched := func() error {
		got, err := childrenOf(t.Context(), namespace, "web")
		if err != nil {
			return err
		}
		pod := podOf(got)
		var names []string
		for _, container := range slices.Concat(pod.Containers, pod.InitContainers) {
			names = append(names, container.Name)
		}
		switch {
		case !slices.Equal(names, []string{"nginx", "log", "first"}):
			return fmt.Errorf("containers %v", names)
		case !cmp.Equal(pod.HostAliases, []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"db"}}}), pod.DNSConfig == nil,
			pod.ServiceAccountName != "robot":
			return fmt.Errorf("Pods %+v", pod)
		case got.deployment.Labels["team"] != "shop" || got.deployment.Annotations["example.com/why"] != "1e3":
			return fmt.Errorf("Deployment %+v", got.deployment.ObjectMeta)
		case got.service.Annotations["example.com/a"] != "b":
			return fmt.Errorf("annotations of the Service %v", got.service.Annotations)
		case got.policy.Labels["team"] != "shop":
			return fmt.Errorf("NetworkPolicy %+v", got.policy.ObjectMeta)
		}
		return hasBudget(t, namespace, func(c children) bool { return c.budget.Spec.MinAvailable != nil && c.budget.Spec.MaxUnavailable == nil })
	}
	waitFor(t, patched)
	waitFor(t, func() error {
		return arePatched(t, namespace, "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service")
	})

	got := must1(childrenOf(t.Context(), namespace, "web"))(t)
	update(t, got.deployment, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.HostAliases[0].Hostnames = []string{"other"}
		d.Spec.Template.Spec.Containers = d.Spec.Template.Spec.Containers[:1]
		d.Spec.Template.Spec.ServiceAccountName = "other"
		delete(d.Labels, "team")
	})
	update(t, got.policy, func(p *networkingv1.NetworkPolicy) { delete(p.Labels, "team") })
	update(t, got.service, func(s *corev1.Service) { s.Annotations["example.com/a"] = "c" })
	waitFor(t, patched)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Patches = nil })
	waitForWeb(t, namespace, func(after children) error {
		for _, diff := range []string{
			cmp.Diff(before.deployment.Spec, after.deployment.Spec), cmp.Diff(before.deployment.Labels, after.deployment.Labels),
			cmp.Diff(before.service.Spec, after.service.Spec), cmp.Diff(before.policy.Spec, after.policy.Spec),
			cmp.Diff(before.budget.Spec, after.budget.Spec),
		} {
			if diff != "" {
				return fmt.Errorf("something is left (-before +after):\n%s", diff)
			}
		}
		return nil
	})
	waitFor(t, func() error { return arePatched(t, namespace) })
}

func hasBudget(t *testing.T, namespace string, holds func(children) bool) error {
	t.Helper()
	got, err := childrenOf(t.Context(), namespace, "web")
	if err == nil && (got.budget == nil || holds != nil && !holds(got)) {
		err = fmt.Errorf("PodDisruptionBudget %+v", got.budget)
	}
	return err
}

// arePatched returns an error if the status lists other patched kinds.
func arePatched(t *testing.T, namespace string, kinds ...string) error {
	t.Helper()
	object, err := waitForStatusOnce(t.Context(), namespace, "web")
	if err == nil && !slices.Equal(object.Status.PatchedKinds, kinds) {
		err = fmt.Errorf("patched kinds %v, want %v", object.Status.PatchedKinds, kinds)
	}
	return err
}

// TestAdmissionRefusesPatches verifies that admission rejects invalid patches, and that the message
// names the patch and the remedy.
func TestAdmissionRefusesPatches(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	one := func(kind, text string) string {
		return fmt.Sprintf("patches: [{target: {kind: %s}, patch: %q}]", kind, text)
	}
	for title, test := range map[string]struct{ spec, want string }{
		"too many": {
			"patches: [" + strings.TrimSuffix(strings.Repeat("{target: {kind: Service}, patch: '{}'},", 9), ",") + "]",
			"spec.patches: Too many: 9: must have at most 8 items",
		},
		"no kind":     {"patches: [{target: {}, patch: '{}'}]", "spec.patches[0].target.kind: Required value"},
		"no target":   {"patches: [{patch: '{}'}]", "spec.patches[0].target: Required value"},
		"no patch":    {"patches: [{target: {kind: Service}}]", "spec.patches[0].patch: Required value"},
		"empty patch": {one("Service", ""), "spec.patches[0].patch: Invalid value"},
		"long patch":  {one("Service", strings.Repeat("x", 8193)), "spec.patches[0].patch: Too long: may not be more than 8192"},
		"a kind":      {one("ConfigMap", "{}"), `spec.patches[0].target.kind: Unsupported value: "ConfigMap"`},
		"a name": {
			"patches: [{target: {kind: Service, name: A}, patch: '{}'}]",
			`spec.patches[0].target.name: Invalid value: "A": name must consist of lower-case`,
		},
		"no YAML":  {one("Service", "a: ["), "spec.patches[0].patch: Invalid value: not valid YAML"},
		"replicas": {one("Deployment", "spec: {replicas: 3}"), "a patch cannot change spec.replicas; set spec.replicas"},
		"selector": {one("Service", "spec: {selector: {a: b}}"), "a patch cannot change spec.selector"},
		"owner":    {one("Deployment", "metadata: {ownerReferences: [{name: a, uid: b}]}"), "cannot change metadata.ownerReferences"},
		"a label":  {one("NetworkPolicy", "metadata: {labels: {app.kubernetes.io/name: a}}"), "metadata.labels[app.kubernetes.io/name]"},
		"privileged": {
			one("Deployment", "spec: {template: {spec: {hostPID: true}}}"), `violates PodSecurity "restricted:latest": host namespaces`,
		},
		"unknown field": {one("Deployment", "spec: {template: {spec: {hostAlias: a}}}"), `unknown field "spec.template.spec.hostAlias"`},
		// Rejected by the API server in its dry run.
		"an address": {
			one("Deployment", "spec: {template: {spec: {hostAliases: [{ip: none}]}}}"),
			"spec.patches[0].patch: Invalid value: Deployment: spec.template.spec.hostAliases",
		},
		"one of two": {
			"patches: [{target: {kind: NetworkPolicy}, patch: '{}'}, {target: {kind: NetworkPolicy}, patch: 'spec: {policyTypes: [Ingress, Up]}'}]",
			"spec.patches[1].patch: Invalid value: NetworkPolicy: a patch cannot change spec.policyTypes",
		},
	} {
		t.Run(title, func(t *testing.T) {
			refused(t, namespace, v1alpha2.GroupVersion.Version, test.spec, test.want)
		})
	}
}

// TestAdmissionWarnsOfPatchesThatHitNothing verifies that a patch without a matching child is
// accepted with a warning that lists the existing children.
func TestAdmissionWarnsOfPatchesThatHitNothing(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	warnings := &recordedWarnings{}
	object := newInstance(namespace, "web")
	object.Spec.Patches = []v1alpha2.Patch{
		patchOf("Deployment", "spec: {minReadySeconds: 1}"),
		{Target: v1alpha2.PatchTarget{Kind: "Service", Name: "wbe"}, Patch: "{}"},
	}
	must(t, warningClient(t, warnings).Create(t.Context(), object))
	want := []string{`spec.patches[1].target: Service wbe does not exist, so the patch changes nothing; ` +
		`the children are Service "web", NetworkPolicy "web", Deployment "web"`}
	if diff := cmp.Diff(want, warnings.list()); diff != "" {
		t.Error(diff)
	}
	waitForChildren(t, namespace, "web")
	waitFor(t, func() error { return arePatched(t, namespace, "Deployment") })
}

// TestFailedPatchIsTakenBack verifies that the operator rolls back a patch with which Pods do not
// start. The status then lists no patched kinds.
func TestFailedPatchIsTakenBack(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, nil)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Patches = allPatches()[:1] })
	waitForWeb(t, namespace, func(got children) error {
		if len(podOf(got).Containers) != 2 {
			return errors.New("the Deployment is not patched yet")
		}
		return nil
	})
	waitFor(t, func() error { return arePatched(t, namespace, "Deployment") })
	newestFails(t, namespace, "2", waitingPod("ErrImagePull", noSuchImage+": not found"))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	waitForWeb(t, namespace, func(got children) error {
		if diff := cmp.Diff(before.deployment.Spec.Template.Spec, got.deployment.Spec.Template.Spec); diff != "" {
			return fmt.Errorf("something of the patch is left (-before +now):\n%s", diff)
		}
		return nil
	})
	waitFor(t, func() error { return arePatched(t, namespace) })
}

// TestPatchesWhileAdmissionIsAway verifies that the status reports invalid patches that were
// written while the operator was down. The running Pods keep the last good patches.
func TestPatchesWhileAdmissionIsAway(t *testing.T) {
	namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) {
		s.Patches = []v1alpha2.Patch{patchOf("Deployment", "spec: {minReadySeconds: 7}")}
	})

	suite.operator.Stop()
	away := true
	comeBack := func() {
		if away {
			away = false
			startNextOperator(t)
		}
	}
	t.Cleanup(comeBack)
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Patches = append(o.Spec.Patches, patchOf("Deployment", "spec: {replicas: 3}"), patchOf("Service", "a: [*b]"))
	})
	comeBack()
	condition := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonInvalidConfiguration)
	if want := "spec.patches[2].patch: Invalid value: not valid YAML"; !strings.HasPrefix(condition.Message, want) {
		t.Errorf("want %q, got %q", want, condition.Message)
	}
	got := must1(childrenOf(t.Context(), namespace, "web"))(t)
	update(t, got.deployment, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 0 })
	isPatched := func() error {
		got, err := childrenOf(t.Context(), namespace, "web")
		if err == nil && (got.deployment.Spec.MinReadySeconds != 7 || *got.deployment.Spec.Replicas != 1) {
			err = fmt.Errorf("Deployment %+v", got.deployment.Spec)
		}
		return err
	}
	waitFor(t, isPatched)
	waitFor(t, func() error { return arePatched(t, namespace, "Deployment") })

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Patches = o.Spec.Patches[:1] })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	must(t, isPatched())
}
