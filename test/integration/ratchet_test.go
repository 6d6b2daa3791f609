package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// acceptedBefore is a spec that 0.5.0 accepted, with a value for each rule that 0.5.1 adds. The log
// level was set through the annotation of v1alpha1.
const acceptedBefore = `{
	replicas: 1,
	nginx: {errorLogLevel: "notice; load_module /x.so; env A"},
	monitoring: {podMonitor: {interval: 1s}},
	expose: {ingress: {hosts: [{host: a.example.com, paths: ["/a;b", /c]}]}},
	patches: [
	  {target: {kind: NetworkPolicy}, patch: "{spec: {policyTypes: [Ingress, Egress], egress: [{ports: [{port: 53, protocol: UDP}]}]}}"},
	  {target: {kind: Deployment}, patch: "{spec: {template: {spec: {automountServiceAccountToken: true}}}}"}
	]
}`

// withoutSource is a spec that releases before 0.5.1 accepted through the annotation of v1alpha1.
// The API server turns its volume into an emptyDir.
const withoutSource = `{"replicas":1,"volumes":[{"name":"old"}]}`

// refusedFields are the fields of acceptedBefore that 0.5.1 rejects in a new write, each with a
// word of its remedy.
var refusedFields = map[string]string{
	"spec.nginx.errorLogLevel":                   "supported values",
	"spec.monitoring.podMonitor.interval":        "at least 5s",
	"spec.expose.ingress.hosts[0].paths":         "percent-encoded",
	"cannot change spec.egress":                  "create another NetworkPolicy",
	"cannot change spec.policyTypes":             "create another NetworkPolicy",
	"template.spec.automountServiceAccountToken": "add a volume with projected.serviceAccountToken",
}

// namesRefused returns an error unless a message names every refused field with its remedy.
func namesRefused(message string) error {
	for field, remedy := range refusedFields {
		if !strings.Contains(message, field) || !strings.Contains(message, remedy) {
			return fmt.Errorf("%q is not named, or not with %q, in: %s", field, remedy, message)
		}
	}
	return nil
}

// TestStoredValuesThatNewRulesRefuse verifies the upgrade for each rule that 0.5.1 adds. A value
// that 0.5.0 accepted and stored keeps serving, and the status names it. All other fields stay
// editable through both versions. Admission rejects the same value in a new write. If admission was
// unavailable, the operator does not apply the value.
func TestStoredValuesThatNewRulesRefuse(t *testing.T) {
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.Replicas, object.Spec.Monitoring = ptr.To[int32](1), &v1alpha2.Monitoring{PodMonitor: &v1alpha2.PodMonitor{}}
	create(t, object)
	for _, name := range []string{"new", "volume"} {
		create(t, newInstance(namespace, name))
		waitForChildren(t, namespace, name)
	}
	waitForChildren(t, namespace, "web")
	stored := string(must1(yaml.YAMLToJSON([]byte(acceptedBefore)))(t))

	suite.operator.Stop()
	storeSpec(t, namespace, "volume", withoutSource)
	storeSpec(t, namespace, "web", stored)
	storeChange(t, namespace, "new", stored) // a tenant writes while admission is unavailable
	startNextOperator(t)

	t.Run("served", func(t *testing.T) { waitFor(t, func() error { return servesRefused(t, namespace) }) })
	t.Run("named", func(t *testing.T) {
		found := waitForCondition(t, namespace, "web", v1alpha2.ConditionOutdated, metav1.ConditionTrue, v1alpha2.ReasonValueRefused)
		must(t, namesRefused(found.Message))
		if blocked := readV1alpha2(t, namespace, "web").Status.BlockedBy; len(blocked) > 0 {
			t.Errorf("changes are blocked: %v", blocked)
		}
	})
	t.Run("not injected", func(t *testing.T) {
		for _, configMap := range must1(childrenOf(t.Context(), namespace, "web"))(t).configMaps {
			if conf := configMap.Data["nginx.conf"]; strings.Contains(conf, "load_module") {
				t.Errorf("the main context has a directive of the annotation:\n%s", conf)
			}
		}
	})
	t.Run("editable", func(t *testing.T) { staysEditable(t, namespace) })
	t.Run("written without admission", func(t *testing.T) {
		waitForCondition(t, namespace, "new", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonInvalidConfiguration)
		text := string(must1(json.Marshal(readV1alpha2(t, namespace, "new").Status.BlockedBy))(t))
		must(t, namesRefused(text))
		if got := must1(childrenOf(t.Context(), namespace, "new"))(t); len(got.policy.Spec.PolicyTypes) != 1 || got.ingress != nil {
			t.Errorf("it was applied: %+v", got.policy.Spec)
		}
	})
	t.Run("a volume without a source", func(t *testing.T) { servesVolumeWithoutSource(t, namespace) })
	t.Run("refused in a new write", func(t *testing.T) { refusesNew(t, namespace, stored) })
	t.Run("corrected", func(t *testing.T) {
		update(t, newInstance(namespace, "web"), func(o *v1alpha2.NginxOperator) {
			o.Spec.Patches, o.Spec.Nginx, o.Spec.Expose, o.Spec.Monitoring = nil, nil, nil, nil
		})
		waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
			if slices.ContainsFunc(object.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha2.ConditionOutdated }) {
				return fmt.Errorf("conditions %+v", object.Status.Conditions)
			}
			if policy := must1(childrenOf(t.Context(), namespace, "web"))(t).policy; len(policy.Spec.PolicyTypes) != 1 {
				return fmt.Errorf("NetworkPolicy %+v", policy.Spec)
			}
			return nil
		})
	})
}

// servesVolumeWithoutSource verifies that the object "volume" keeps its volume, and that the status
// names it. The object stays editable, but gets no other such volume.
func servesVolumeWithoutSource(t *testing.T, namespace string) {
	found := waitForCondition(t, namespace, "volume", v1alpha2.ConditionOutdated, metav1.ConditionTrue, v1alpha2.ReasonValueRefused)
	if !strings.Contains(found.Message, "spec.volumes[0]: Required value: a volume requires a source") {
		t.Error(found.Message)
	}
	update(t, newInstance(namespace, "volume"), func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "now" })
	waitFor(t, func() error {
		got, err := childrenOf(t.Context(), namespace, "volume")
		if err != nil {
			return err
		}
		volumes := got.deployment.Spec.Template.Spec.Volumes
		isEmpty := slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == "old" && v.EmptyDir != nil })
		if !isEmpty || got.deployment.Spec.Template.Annotations[wellknown.AnnotationForceRedeploy] != "now" {
			return fmt.Errorf("Pods %+v", got.deployment.Spec.Template)
		}
		return nil
	})
	err := tryUpdate(t, newInstance(namespace, "volume"), func(o *v1alpha2.NginxOperator) {
		o.Spec.Volumes = append(o.Spec.Volumes, v1alpha2.Volume{Name: "new"})
	}, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "spec.volumes[1]: Required value: a volume requires a source") {
		t.Errorf("another volume without a source: %v", err)
	}
}

// servesRefused returns an error unless the children match acceptedBefore.
func servesRefused(t *testing.T, namespace string) error {
	got, err := childrenOf(t.Context(), namespace, "web")
	switch {
	case err != nil:
		return err
	case got.ingress == nil || got.monitor == nil || got.policy == nil || got.deployment == nil:
		return fmt.Errorf("children %+v", got)
	case len(got.policy.Spec.PolicyTypes) != 2 || len(got.policy.Spec.Egress) != 1:
		return fmt.Errorf("NetworkPolicy %+v", got.policy.Spec)
	case !ptr.Deref(got.deployment.Spec.Template.Spec.AutomountServiceAccountToken, false):
		return fmt.Errorf("Pods %+v", got.deployment.Spec.Template.Spec)
	case got.monitor.Spec.PodMetricsEndpoints[0].Interval != "1s":
		return fmt.Errorf("PodMonitor %+v", got.monitor.Spec)
	case got.ingress.Spec.Rules[0].HTTP.Paths[0].Path != "/a;b":
		return fmt.Errorf("Ingress %+v", got.ingress.Spec.Rules)
	}
	return nil
}

// staysEditable changes other fields of the object through both versions, and appends to its list
// of patches.
func staysEditable(t *testing.T, namespace string) {
	update(t, newInstance(namespace, "web"), func(o *v1alpha2.NginxOperator) {
		o.Spec.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/a": "v1alpha2"}}
		o.Spec.Patches = append(o.Spec.Patches, patchOf("Service", "metadata: {labels: {team: shop}}"))
	})
	update(t, newObject(namespace, "web"), func(o *v1alpha1.NginxOperator) { o.Spec.ForceRedeploy = "v1alpha1" })
	waitForWeb(t, namespace, func(got children) error {
		if got.service.Annotations["example.com/a"] != "v1alpha2" || got.service.Labels["team"] != "shop" ||
			got.deployment.Spec.Template.Annotations[wellknown.AnnotationForceRedeploy] != "v1alpha1" {
			return fmt.Errorf("Service %+v, Pods %+v", got.service.ObjectMeta, got.deployment.Spec.Template.ObjectMeta)
		}
		return servesRefused(t, namespace)
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionOutdated, metav1.ConditionTrue, v1alpha2.ReasonValueRefused)
}

// refusesNew writes refused values into objects that lack them, through both versions, and other
// refused values into the object that has some.
func refusesNew(t *testing.T, namespace, stored string) {
	annotated := newObject(namespace, "restored")
	annotated.Annotations = map[string]string{wellknown.AnnotationV1alpha2: stored}
	err := suite.admin.Create(t.Context(), annotated)
	if err == nil || !strings.Contains(err.Error(), "spec.nginx.errorLogLevel: Unsupported value") {
		t.Errorf("through v1alpha1: %v", err)
	}
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		want   string
	}{
		"interval": {func(s *v1alpha2.NginxOperatorSpec) { s.Monitoring.PodMonitor.Interval = "2s" }, "interval must be at least 5s"},
		"path": {func(s *v1alpha2.NginxOperatorSpec) {
			s.Expose.Ingress.Hosts[0].Paths = append(s.Expose.Ingress.Hosts[0].Paths, `/"quoted"`)
		}, "percent-encoded"},
		"host": {func(s *v1alpha2.NginxOperatorSpec) {
			s.Expose.Ingress.Hosts = append(s.Expose.Ingress.Hosts, v1alpha2.IngressHost{Host: "b{}.example.com"})
		}, "write a DNS name"},
		"rule": {func(s *v1alpha2.NginxOperatorSpec) {
			s.Patches = append(s.Patches, patchOf("NetworkPolicy", "[{op: add, path: /spec/ingress/-, value: {}}]"))
		}, "spec.patches[3].patch: Invalid value: NetworkPolicy: a patch cannot change spec.ingress; set spec.networkPolicy"},
		"wider egress": {func(s *v1alpha2.NginxOperatorSpec) {
			s.Patches = append(s.Patches, patchOf("NetworkPolicy", "[{op: replace, path: /spec/egress, value: [{}]}]"))
		}, "a patch cannot change spec.egress"},
	} {
		err := tryUpdate(t, newInstance(namespace, "web"), func(o *v1alpha2.NginxOperator) { test.change(&o.Spec) }, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want %q, got: %v", name, test.want, err)
		}
	}
	fresh := newInstance(namespace, "fresh")
	fresh.Spec.Patches = []v1alpha2.Patch{patchOf("Deployment", "spec: {template: {spec: {automountServiceAccountToken: true}}}")}
	err = suite.admin.Create(t.Context(), fresh)
	if err == nil || !strings.Contains(err.Error(), "automountServiceAccountToken; add a volume") {
		t.Errorf("automount: %v", err)
	}
}
