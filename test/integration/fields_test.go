package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/wellknown"
)

// servedBy returns the numbers of the ports of a Service, with their targets and protocols, by
// name.
func servedBy(service *corev1.Service) map[string]string {
	out := map[string]string{}
	for _, port := range service.Spec.Ports {
		out[port.Name] = strings.TrimSpace(fmt.Sprintf("%d %s %s", port.Port, port.TargetPort.String(), ptr.Deref(port.AppProtocol, "")))
	}
	return out
}

// containerPorts returns the port numbers of a Deployment's first container, by name.
func containerPorts(deployment *appsv1.Deployment) map[string]int32 {
	out := map[string]int32{}
	for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
		out[port.Name] = port.ContainerPort
	}
	return out
}

// podOf returns the Pod spec of the Deployment.
func podOf(c children) *corev1.PodSpec { return &c.deployment.Spec.Template.Spec }

// equal returns a check that compares a part of the children with the expected value.
func equal[T any](part func(children) T, want T) func(children) error {
	return func(c children) error {
		if diff := cmp.Diff(want, part(c)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	}
}

// fieldExample is an example from the field reference.
type fieldExample struct {
	name string
	spec v1alpha2.NginxOperatorSpec
	// beside are the other objects that the example declares.
	beside []*unstructured.Unstructured
}

// fieldExamples returns the examples that change a child, which are all except for the paused one.
// The controller test TestNoFieldIsForgotten verifies that they cover every field.
func fieldExamples(t *testing.T) []fieldExample {
	t.Helper()
	page := must1(docs.Fields(os.DirFS("../../docs/guide")))(t)
	var out []fieldExample
	for _, found := range docs.Examples(page) {
		object, e := &v1alpha2.NginxOperator{}, fieldExample{}
		for _, document := range decode(t, strings.Join(found.Documents, "---\n")) {
			if document.GetKind() != "NginxOperator" {
				e.beside = append(e.beside, document)
				continue
			}
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(document.Object, object, true))
		}
		if e.name, e.spec = object.Name, object.Spec; !e.spec.Paused {
			out = append(out, e)
		}
	}
	if len(out) < 10 {
		t.Fatalf("found %d examples", len(out))
	}
	return out
}

// newNamespace returns a namespace with all objects that the example references.
func (e fieldExample) newNamespace(t *testing.T) string {
	t.Helper()
	namespace := newNamespace(t)
	for _, object := range e.beside {
		object = object.DeepCopy()
		object.SetNamespace(namespace)
		create(t, object)
	}
	for _, tls := range e.spec.TLS {
		create(t, newSecret(namespace, tls.SecretName, newCertificate(t)))
	}
	return namespace
}

// TestFields verifies that each field, as in its example, reaches the children of a running object,
// and leaves no trace after it is removed. The golden file of the controller tests contains the
// exact children.
func TestFields(t *testing.T) {
	t.Parallel()
	for _, e := range fieldExamples(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			setAndRemove(t, e.newNamespace(t), func(s *v1alpha2.NginxOperatorSpec) { *s = *e.spec.DeepCopy() }, func(before, got children) error {
				if cmp.Equal(before.records(), got.records()) {
					return fmt.Errorf("the children are declared as before: %v", got.records())
				}
				return nil
			})
		})
	}
}

// setAndRemove changes a running object, waits until a check of its children passes, and empties
// its spec again.
func setAndRemove(t *testing.T, namespace string, set func(*v1alpha2.NginxOperatorSpec), check func(before, got children) error) {
	t.Helper()
	object := createWeb(t, namespace, nil)
	before := waitForChildren(t, namespace, "web")
	update(t, object, func(o *v1alpha2.NginxOperator) { set(&o.Spec) })
	waitForWeb(t, namespace, func(got children) error {
		return check(before, got)
	})
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec = v1alpha2.NginxOperatorSpec{} })
	waitForWeb(t, namespace, func(got children) error {
		if diff := cmp.Diff(before.records(), got.records()); diff != "" {
			return fmt.Errorf("records (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.deployment.Spec, got.deployment.Spec); diff != "" {
			return fmt.Errorf("Deployment (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.service.Spec, got.service.Spec); diff != "" {
			return fmt.Errorf("Service (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.policy.Spec, got.policy.Spec); diff != "" {
			return fmt.Errorf("NetworkPolicy (-before +after):\n%s", diff)
		}
		return equal(func(c children) map[string]string { return c.service.Labels }, before.service.Labels)(got)
	})
}

// records returns the record of the last declared state of each child that has the object's name,
// by type.
func (c children) records() map[string]string {
	out := map[string]string{}
	for _, child := range c.all() {
		if _, isConfigMap := child.(*corev1.ConfigMap); !isConfigMap { // an older revision may retain its ConfigMap
			out[fmt.Sprintf("%T", child)] = child.GetAnnotations()[wellknown.AnnotationLastDeclared]
		}
	}
	return out
}

// TestFormsOfFields tests fields in forms that their examples do not have.
func TestFormsOfFields(t *testing.T) {
	t.Parallel()
	zone := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway}
	ownZone, twoZones := zone, zone
	ownZone.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	twoZones.WhenUnsatisfiable = corev1.DoNotSchedule
	selecting := func(c corev1.TopologySpreadConstraint, name string) corev1.TopologySpreadConstraint {
		c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
			"app.kubernetes.io/name": "nginx", "app.kubernetes.io/instance": name, "app.kubernetes.io/managed-by": "nginx-operator",
		}}
		return c
	}
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("96Mi")}
	template := func(p v1alpha2.PodTemplate) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) { s.PodTemplate = &p }
	}
	service := func(form v1alpha2.Service) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) { s.Service = &form }
	}
	for name, test := range map[string]struct {
		set   func(*v1alpha2.NginxOperatorSpec)
		check func(children) error
	}{
		"ports of the Pods": {
			func(s *v1alpha2.NginxOperatorSpec) {
				s.Ports = []v1alpha2.Port{{Name: "web", Port: 18080}, {Name: "admin", Port: 9000}}
			},
			equal(func(c children) map[string]int32 { return containerPorts(c.deployment) },
				map[string]int32{"web": 18080, "admin": 9000, "health": 18081}),
		},
		"ports that are let in": {
			func(s *v1alpha2.NginxOperatorSpec) { s.Ports = []v1alpha2.Port{{Name: "web", Port: 80}} },
			equal(func(c children) []string {
				var out []string
				for _, port := range c.policy.Spec.Ingress[0].Ports {
					out = append(out, port.Port.String())
				}
				return out
			}, []string{"80", "18080"}),
		},
		"type of the Service": {
			service(v1alpha2.Service{Type: corev1.ServiceTypeNodePort, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal}),
			equal(func(c children) [2]string {
				return [2]string{string(c.service.Spec.Type), string(c.service.Spec.ExternalTrafficPolicy)}
			}, [2]string{"NodePort", "Local"}),
		},
		"resources": {
			func(s *v1alpha2.NginxOperatorSpec) { s.Resources = &corev1.ResourceRequirements{Limits: memory} },
			func(c children) error {
				got := podOf(c).Containers[0].Resources
				if _, left := got.Requests[corev1.ResourceCPU]; left || !got.Limits.Memory().Equal(*memory.Memory()) {
					return fmt.Errorf("resources %+v", got)
				}
				return nil
			},
		},
		"topology spread": {
			template(v1alpha2.PodTemplate{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{zone, twoZones}}),
			equal(func(c children) []corev1.TopologySpreadConstraint { return podOf(c).TopologySpreadConstraints },
				[]corev1.TopologySpreadConstraint{selecting(zone, "web"), selecting(twoZones, "web")}),
		},
		"topology spread with a selector": {
			template(v1alpha2.PodTemplate{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{ownZone}}),
			equal(func(c children) []corev1.TopologySpreadConstraint { return podOf(c).TopologySpreadConstraints },
				[]corev1.TopologySpreadConstraint{ownZone}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			setAndRemove(t, newNamespace(t), test.set, func(_, got children) error { return test.check(got) })
		})
	}
}

// mountedBy returns the configuration files that the Pods mount.
func mountedBy(c children) map[string]string {
	for _, configMap := range c.configMaps {
		if configMap.Name == podOf(c).Volumes[0].ConfigMap.Name {
			return configMap.Data
		}
	}
	return nil
}

// TestStatusOfFields verifies that the status reports the image, the address, and the children of
// the spec.
func TestStatusOfFields(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.Replicas, object.Spec.Image = ptr.To[int32](2), "registry.example.com/nginx:1.29.1"
	object.Spec.Ports = []v1alpha2.Port{{Name: "web", Port: 80}, {Name: "admin", Port: 9000}}
	serve(t, object)
	status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status
	url := fmt.Sprintf("http://web.%s.svc", namespace)
	if status.URL != url || status.Image != object.Spec.Image || status.UpdatedReplicas != 2 || status.BlockedBy != nil {
		t.Errorf("status %+v", status)
	}
	got := must1(childrenOf(t.Context(), namespace, "web"))(t)
	want := []v1alpha2.RelatedObject{
		{APIVersion: "v1", Kind: "ConfigMap", Name: got.configMaps[0].Name},
		{APIVersion: "v1", Kind: "Service", Name: "web"},
		{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Name: "web"},
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Name: "web"},
	}
	if diff := cmp.Diff(want, status.RelatedObjects); diff != "" {
		t.Errorf("related objects (-want +got):\n%s", diff)
	}
}

// TestChildrenOf010 verifies that the operator adopts children of release 0.1.0, whose owner
// references use v1alpha1. It writes each child once and restarts no Pods.
func TestChildrenOf010(t *testing.T) {
	t.Parallel()
	namespace, object, before := newWeb(t, nil)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	all := []client.Object{before.deployment, before.service, before.policy, &before.configMaps[0]}
	for _, child := range all {
		update(t, child, func(o client.Object) {
			references := o.GetOwnerReferences()
			references[0].APIVersion = "operator.example.com/v1alpha1"
			o.SetOwnerReferences(references)
		})
	}
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	audited := len(audit(t))
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = false })
	for _, child := range all {
		waitFor(t, func() error {
			must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(child), child))
			owners := child.GetOwnerReferences()
			if version := owners[0].APIVersion; version != "operator.example.com/v1alpha2" || len(owners) != 1 {
				return fmt.Errorf("%T: reference with version %s", child, version)
			}
			return nil
		})
	}
	waitFor(t, func() error {
		n := writesOf(t, audited, namespace)
		if n["configmaps/"] != 1 || n["services/"] != 1 || n["networkpolicies/"] != 1 || n["deployments/"] != 1 {
			return fmt.Errorf("writes %v", n)
		}
		return nil
	})
	after := must1(childrenOf(t.Context(), namespace, "web"))(t)
	requireSamePods(t, before, after)
}
