package objectcache

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestCacheIsNarrow verifies that the cache of every kind of child selects the operator's label,
// which children and Pods have.
func TestCacheIsNarrow(t *testing.T) {
	options := CacheOptions()
	if !options.ReaderFailOnMissingInformer {
		t.Error("a read may start an informer for a whole kind")
	}
	for object, by := range options.ByObject {
		if _, isOwn := object.(*v1alpha2.NginxOperator); isOwn {
			continue
		}
		if _, isCRD := object.(*apiextensionsv1.CustomResourceDefinition); isCRD {
			if by.Field == nil || by.Field.Matches(fields.Set{"metadata.name": "foreign.example.com"}) ||
				!by.Field.Matches(fields.Set{"metadata.name": wellknown.CRDName}) {
				t.Errorf("of the CRDs the cache has %v", by.Field)
			}
			continue
		}
		if by.Label == nil || by.Label.Matches(labels.Set{"app": "foreign"}) {
			t.Errorf("%T is cached for the whole cluster", object)
			continue
		}
		if _, isSlice := object.(*discoveryv1.EndpointSlice); isSlice {
			if !by.Label.Matches(labels.Set{discoveryv1.LabelManagedBy: wellknown.OperatorName}) ||
				by.Label.Matches(labels.Set(wellknown.PodLabels("web"))) {
				t.Errorf("of the EndpointSlices the cache has %s", by.Label)
			}
			continue
		}
		for _, ours := range []map[string]string{wellknown.ChildLabels("web", "nginx:1"), wellknown.PodLabels("web")} {
			if !by.Label.Matches(labels.Set(ours)) {
				t.Errorf("%T: the cache does not show what is labelled %v", object, ours)
			}
		}
	}
}

// TestTransforms verifies that the cache has the fields that are read, and the fingerprint of a
// child. A second call of a transform changes nothing.
func TestTransforms(t *testing.T) {
	uncontrolled := metav1.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "other", UID: "x"}
	controller := metav1.OwnerReference{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator", Name: "web", UID: "o",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
	foreign := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "NginxOperator", Name: "web", UID: "o", Controller: ptr.To(true)}
	meta := func(owner metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", Generation: 2, Labels: wellknown.ChildLabels("web", "nginx:1"),
			OwnerReferences: []metav1.OwnerReference{uncontrolled, owner}, Finalizers: []string{"example.com/theirs"},
			Annotations: map[string]string{
				wellknown.AnnotationLastDeclared: `{"metadata":{"finalizers":[null]}}`, wellknown.AnnotationReplicas: "2", "theirs": "{}",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}},
		}
	}
	cachedMeta := func(owner metav1.OwnerReference, change ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
		owner.BlockOwnerDeletion = nil
		out := metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", Generation: 2, OwnerReferences: []metav1.OwnerReference{owner},
		}
		for _, f := range change {
			f(&out)
		}
		return out
	}
	replicas := func(m *metav1.ObjectMeta) {
		m.Annotations = map[string]string{wellknown.AnnotationReplicas: "2"}
	}
	configMapVolume := func(name, configMap string) corev1.Volume {
		named := corev1.LocalObjectReference{Name: configMap}
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named}}}
	}
	projectedVolume := func(configMap string, others ...corev1.VolumeProjection) corev1.Volume {
		projected := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}
		sources := append(slices.Clone(others), corev1.VolumeProjection{ConfigMap: projected})
		return corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
	}
	secret := corev1.VolumeProjection{Secret: &corev1.SecretProjection{}}
	progressing := func(length int) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: "Progressing", Message: strings.Repeat("x", length)}}
	}
	waiting := func(length int) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: strings.Repeat("x", length)}}
	}
	numbered := metav1.ObjectMeta{Annotations: map[string]string{wellknown.AnnotationServicePorts: "http=80"}}
	podLabels := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "h", wellknown.LabelInstance: "web"}
	for name, test := range map[string]struct {
		in, want client.Object
		stamped  bool
	}{
		"NginxOperator": {
			&v1alpha2.NginxOperator{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web", UID: "u", Generation: 2, ResourceVersion: "7",
					Annotations: map[string]string{"theirs": "{}", wellknown.AnnotationV1alpha2Unreadable: "{"},
					Labels:      map[string]string{"theirs": "1"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}},
				},
				Spec: v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](2)},
				Status: v1alpha2.NginxOperatorStatus{
					Replicas: 2, Image: "nginx:1", Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "r", Message: "m"}},
					RelatedObjects: []v1alpha2.RelatedObject{{APIVersion: "v1", Kind: "Service", Name: "web"}},
				},
			},
			&v1alpha2.NginxOperator{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web", UID: "u", Generation: 2, ResourceVersion: "7",
					Annotations: map[string]string{wellknown.AnnotationV1alpha2Unreadable: ""},
				},
				Spec: v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](2)},
				Status: v1alpha2.NginxOperatorStatus{
					Replicas: 2, Image: "nginx:1", Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "r", Message: "m"}},
					RelatedObjects: []v1alpha2.RelatedObject{{APIVersion: "v1", Kind: "Service", Name: "web"}},
				},
			}, false,
		},
		"canary": {
			&v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wellknown.LabelCanary: "true", "theirs": "1"}}},
			&v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wellknown.LabelCanary: "true"}}}, false,
		},
		"no canary": {
			&v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wellknown.LabelCanary: "yes"}}},
			&v1alpha2.NginxOperator{}, false,
		},
		"Service": {
			&corev1.Service{ObjectMeta: meta(controller), Spec: corev1.ServiceSpec{Type: "ClusterIP"}},
			&corev1.Service{ObjectMeta: cachedMeta(controller)}, true,
		},
		"ConfigMap": {
			&corev1.ConfigMap{ObjectMeta: meta(controller), Data: map[string]string{"k": "v"}},
			&corev1.ConfigMap{ObjectMeta: cachedMeta(controller)}, true,
		},
		"PodMonitor": {
			&monitoringv1.PodMonitor{
				TypeMeta: metav1.TypeMeta{Kind: "PodMonitor"}, ObjectMeta: meta(controller),
				Spec:   monitoringv1.PodMonitorSpec{JobLabel: "a"},
				Status: monitoringv1.ConfigResourceStatus{Bindings: make([]monitoringv1.WorkloadBinding, 1)},
			},
			&monitoringv1.PodMonitor{ObjectMeta: cachedMeta(controller)}, true,
		},
		"Service of another's": {
			&corev1.Service{ObjectMeta: meta(foreign), Spec: corev1.ServiceSpec{Type: "ClusterIP"}},
			&corev1.Service{ObjectMeta: cachedMeta(foreign)}, false,
		},
		"Service of nobody's": {
			&corev1.Service{ObjectMeta: meta(uncontrolled)},
			&corev1.Service{ObjectMeta: cachedMeta(uncontrolled, func(m *metav1.ObjectMeta) { m.OwnerReferences = nil })}, false,
		},
		"ControllerRevision": {
			&appsv1.ControllerRevision{
				ObjectMeta: meta(controller), Revision: 3, Data: apiruntime.RawExtension{Raw: []byte(`{"spec":{}}`)},
			},
			&appsv1.ControllerRevision{ObjectMeta: cachedMeta(controller), Revision: 3}, true,
		},
		"Ingress": {
			&networkingv1.Ingress{
				ObjectMeta: meta(controller), Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
					Host: "a.example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
						Paths: []networkingv1.HTTPIngressPath{{Path: "/", Backend: *backendOn(8080)}},
					}},
				}}},
				Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{
					Ingress: append([]networkingv1.IngressLoadBalancerIngress{
						{IP: "192.0.2.1", Ports: []networkingv1.IngressPortStatus{{Port: 80}}}, {Hostname: strings.Repeat("x", maxName+1)},
					}, make([]networkingv1.IngressLoadBalancerIngress, 100)...),
				}},
			},
			&networkingv1.Ingress{
				ObjectMeta: cachedMeta(controller), Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
					IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
						Paths: []networkingv1.HTTPIngressPath{{Backend: *backendOn(8080)}},
					}},
				}}},
				Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{
					Ingress: append([]networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}},
						make([]networkingv1.IngressLoadBalancerIngress, maxBalancers-2)...),
				}},
			}, true,
		},
		"HTTPRoute": {
			&gatewayv1.HTTPRoute{
				ObjectMeta: meta(controller), Spec: gatewayv1.HTTPRouteSpec{Hostnames: []gatewayv1.Hostname{"a.example.com"}, Rules: ruleTo(8080)},
				Status: gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: slices.Concat(
					[]gatewayv1.RouteParentStatus{
						{ParentRef: gatewayv1.ParentReference{Kind: ptr.To[gatewayv1.Kind]("Service"), Name: "mesh"}},
						{ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(strings.Repeat("x", maxName+1))}},
					},
					slices.Repeat([]gatewayv1.RouteParentStatus{{
						ParentRef:      gatewayv1.ParentReference{Kind: ptr.To[gatewayv1.Kind]("Gateway"), Name: "public"},
						ControllerName: "example.com/controller",
						Conditions: []metav1.Condition{
							{Type: "Programmed", Status: "True"},
							{
								Type: "Accepted", Status: "False", Reason: "No", Message: strings.Repeat("x", maxMessage+1), ObservedGeneration: 3,
								LastTransitionTime: metav1.Now(),
							},
						},
					}}, 100))}},
			},
			&gatewayv1.HTTPRoute{
				ObjectMeta: cachedMeta(controller), Spec: gatewayv1.HTTPRouteSpec{Rules: ruleTo(8080)},
				Status: gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: slices.Repeat([]gatewayv1.RouteParentStatus{{
					ParentRef: gatewayv1.ParentReference{Name: "public"},
					Conditions: []metav1.Condition{
						{Type: "Accepted", Status: "False", Reason: "No", Message: strings.Repeat("x", maxMessage), ObservedGeneration: 3},
					},
				}}, maxParents)}},
			}, true,
		},
		"Deployment": {
			&appsv1.Deployment{
				ObjectMeta: meta(controller),
				Spec: appsv1.DeploymentSpec{
					Replicas: ptr.To[int32](2), RevisionHistoryLimit: ptr.To[int32](3),
					Template: annotated(map[string]string{wellknown.AnnotationCertificates: "hash", "a": "1"}),
				},
				Status: appsv1.DeploymentStatus{Replicas: 1, Conditions: progressing(maxText + 1)},
			},
			&appsv1.Deployment{
				ObjectMeta: cachedMeta(controller, replicas),
				Spec: appsv1.DeploymentSpec{
					Replicas: ptr.To[int32](2), Template: annotated(map[string]string{wellknown.AnnotationCertificates: "hash"}),
				},
				Status: appsv1.DeploymentStatus{Replicas: 1, Conditions: progressing(maxText)},
			}, true,
		},
		"ReplicaSet": {
			&appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Name: "web-h", Labels: podLabels, Annotations: map[string]string{"a": "1"}},
				Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Volumes:    []corev1.Volume{configMapVolume("config", "web-1"), {Name: "tmp"}, projectedVolume("web-2", secret)},
					Containers: []corev1.Container{{Name: "nginx"}},
				}}},
			},
			&appsv1.ReplicaSet{
				ObjectMeta: withMounts(metav1.ObjectMeta{Name: "web-h", Labels: podLabels},
					configMapVolume("config", "web-1"), projectedVolume("web-2")),
			}, false,
		},
		"Pod": {
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "web-h-1", Labels: map[string]string{"theirs": "1", wellknown.LabelInstance: "web"}, Finalizers: []string{"f"},
				},
				Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "nginx"}}},
				Status: corev1.PodStatus{
					PodIP: "192.0.2.1", Reason: "theirs", Message: "theirs",
					ContainerStatuses: []corev1.ContainerStatus{{
						Name: "nginx", ImageID: "i", State: waiting(2 * maxText), LastTerminationState: corev1.ContainerState{
							Terminated: &corev1.ContainerStateTerminated{
								ExitCode: 1, Reason: "Error", ContainerID: "theirs",
								Message: "first\n2026/01/01 00:00:00 [emerg] 1#1: unknown directive \"a\"\nlast",
							},
						},
					}},
					Conditions: []corev1.PodCondition{
						{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "theirs", Message: "theirs"},
						{Type: corev1.ContainersReady, Status: corev1.ConditionFalse},
						{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: strings.Repeat("x", 2*maxText)},
					},
				},
			},
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "web-h-1", Labels: map[string]string{wellknown.LabelInstance: "web"}},
				Status: corev1.PodStatus{
					ContainerStatuses: []corev1.ContainerStatus{{
						Name: "nginx", State: waiting(maxText), LastTerminationState: corev1.ContainerState{
							Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "[emerg] unknown directive \"a\""},
						},
					}},
					Conditions: []corev1.PodCondition{
						{Type: corev1.PodReady, Status: corev1.ConditionFalse},
						{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: strings.Repeat("x", maxText)},
					},
				},
			}, false,
		},
		"Pod with files of Secrets": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.AnnotationFiles: "1", "theirs": "{}"}}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cached.AnnotationSecrets: ""}}},
			false,
		},
		"ports of a Service": {
			&corev1.Service{ObjectMeta: meta(foreign), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
				{Name: "web", Port: 80, NodePort: 30080, AppProtocol: ptr.To("http"), TargetPort: intstr.FromString("http")},
			}}},
			&corev1.Service{ObjectMeta: cachedMeta(foreign), Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{Name: "web", Port: 80, NodePort: 30080, AppProtocol: ptr.To("http")}},
			}}, false,
		},
		"load balancer": {
			&corev1.Service{
				ObjectMeta: meta(foreign), Spec: corev1.ServiceSpec{Type: "LoadBalancer"},
				Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: append([]corev1.LoadBalancerIngress{
					{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}, {Hostname: strings.Repeat("x", maxName+1)},
				}, slices.Repeat([]corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}}, 100)...)}},
			},
			&corev1.Service{
				ObjectMeta: cachedMeta(foreign), Spec: corev1.ServiceSpec{Type: "LoadBalancer"},
				Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: append([]corev1.LoadBalancerIngress{
					{IP: "192.0.2.1"},
				}, slices.Repeat([]corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}}, 16-2)...)}},
			}, false,
		},
		"addresses of what is no load balancer any more": {
			&corev1.Service{
				ObjectMeta: meta(foreign), Spec: corev1.ServiceSpec{Type: "NodePort"},
				Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}},
			},
			&corev1.Service{ObjectMeta: cachedMeta(foreign)}, false,
		},
		"too many numbers of the Service on a Pod": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Labels: podLabels, Annotations: map[string]string{wellknown.AnnotationServicePorts: strings.Repeat("x", wellknown.MaxServicePorts+1)},
			}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: podLabels}}, false,
		},
		"ports of a Pod": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Labels: podLabels, Annotations: map[string]string{wellknown.AnnotationServicePorts: "http=80", "theirs": "1"},
			}, Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "exporter", Ports: manyPorts(1)}, {Name: "nginx", Image: "nginx:1", Ports: manyPorts(100)},
			}}},
			&corev1.Pod{
				ObjectMeta: withPorts(metav1.ObjectMeta{Labels: podLabels}, numbered.Annotations, manyPorts(cached.MaxPorts)...),
			}, false,
		},
		"ReplicaSet that wants Pods": {
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Labels: podLabels}, Spec: appsv1.ReplicaSetSpec{
				Replicas: ptr.To[int32](2), Template: corev1.PodTemplateSpec{ObjectMeta: numbered, Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1", Ports: manyPorts(2)}},
				}},
			}},
			&appsv1.ReplicaSet{
				ObjectMeta: withPorts(metav1.ObjectMeta{Labels: podLabels}, numbered.Annotations, manyPorts(2)...),
				Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2)},
			}, false,
		},
		"EndpointSlice": {
			&discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "web-a", Labels: map[string]string{
					discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: wellknown.OperatorName, "theirs": "1",
				}},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}}, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("web")}},
			},
			&discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "web-a", Labels: map[string]string{
					discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: wellknown.OperatorName,
				}},
				Ports: []discoveryv1.EndpointPort{{Name: ptr.To("web")}},
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stamp string
			for range 2 {
				if out, err := slim(test.in); err != nil || out != any(test.in) {
					t.Fatal(out, err)
				}
				if now := test.in.GetSelfLink(); (now != "") != test.stamped || stamp != "" && now != stamp {
					t.Errorf("fingerprint %q, before %q, want one: %t", now, stamp, test.stamped)
				}
				stamp = test.in.GetSelfLink()
				test.want.SetSelfLink(stamp)
				if diff := cmp.Diff(test.want, test.in, cmp.AllowUnexported(metav1.FieldsV1{})); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "k"}
	if out, err := slim(tombstone); err != nil || out != any(tombstone) {
		t.Errorf("of a tombstone came %v, %v", out, err)
	}
}

// hugeMeta returns metadata of the maximum size that an API server stores, with all fields that
// identify an object as the operator's.
func hugeMeta(i int) metav1.ObjectMeta {
	labels := wellknown.ChildLabels("web", "nginx:1")
	for i := range 17_000 {
		labels[fmt.Sprintf("example.com/label-%05d", i)] = "x"
	}
	owners := []metav1.OwnerReference{{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator", Name: "web", UID: "o", Controller: ptr.To(true),
	}}
	var finalizers []string
	for i := range 15_000 {
		finalizers = append(finalizers, fmt.Sprintf("example.com/%05d", i))
	}
	for i := range 5_000 {
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint("owner-", i), UID: "u"})
	}
	return metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprint("huge-", i), Labels: labels, OwnerReferences: owners, Finalizers: finalizers,
		Annotations: map[string]string{
			wellknown.AnnotationLastDeclared: strings.Repeat("x", 200_000), wellknown.AnnotationReplicas: strings.Repeat("1", 50_000),
		},
	}
}

// annotated returns a Pod template with annotations.
func annotated(annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
}

// hugeKinds returns functions that return the largest objects that the operator treats as its own.
func hugeKinds() map[string]func(i int) client.Object {
	containers := make([]corev1.ContainerStatus, 5_000)
	volumes := make([]corev1.Volume, 5_000)
	for i := range containers {
		containers[i].Name, containers[i].Image = fmt.Sprint("container-", i), "nginx"
		volumes[i].ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint("volume-", i)}}
	}
	kinds := map[string]func(i int) client.Object{
		"NginxOperator": func(i int) client.Object {
			object := &v1alpha2.NginxOperator{ObjectMeta: hugeMeta(i)}
			object.Spec.Config = &v1alpha2.Config{Inline: strings.Repeat("x", 200_000)}
			object.Status.BlockedBy = slices.Repeat([]v1alpha2.Blocker{{Reason: "InvalidReference", Message: strings.Repeat("x", 1024)}}, 64)
			return object
		},
		"ConfigMap": func(i int) client.Object {
			return &corev1.ConfigMap{ObjectMeta: hugeMeta(i), Data: map[string]string{"k": strings.Repeat("x", 1<<20)}}
		},
		"HTTPRoute": func(i int) client.Object {
			said := metav1.Condition{Type: "Accepted", Reason: strings.Repeat("x", 1024), Message: strings.Repeat("x", 32<<10)}
			route := &gatewayv1.HTTPRoute{ObjectMeta: hugeMeta(i)}
			for j := range 1_000 {
				said.Reason = fmt.Sprint(i, j, said.Reason)
				route.Status.Parents = append(route.Status.Parents, gatewayv1.RouteParentStatus{
					ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(fmt.Sprint(i, j))}, Conditions: []metav1.Condition{said, said},
				})
			}
			return route
		},
		"Deployment": func(i int) client.Object {
			template := corev1.PodTemplateSpec{ObjectMeta: hugeMeta(i)}
			return &appsv1.Deployment{ObjectMeta: hugeMeta(i), Spec: appsv1.DeploymentSpec{Template: template}}
		},
		"ReplicaSet": func(i int) client.Object {
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: volumes}}
			return &appsv1.ReplicaSet{ObjectMeta: hugeMeta(i), Spec: appsv1.ReplicaSetSpec{Template: template}}
		},
		"Pod": func(i int) client.Object {
			status := corev1.PodStatus{ContainerStatuses: slices.Clone(containers), InitContainerStatuses: slices.Clone(containers)}
			return &corev1.Pod{ObjectMeta: hugeMeta(i), Status: status}
		},
	}
	for kind := range CacheOptions().ByObject {
		name := reflect.TypeOf(kind).Elem().Name()
		if _, exists := kinds[name]; !exists && name != "CustomResourceDefinition" {
			kinds[name] = func(i int) client.Object {
				object := kind.DeepCopyObject().(client.Object)
				*metaOf(object) = hugeMeta(i)
				return object
			}
		}
	}
	return kinds
}

// TestTransformsAreBounded verifies that the cache keeps almost nothing of the largest objects that
// the operator treats as its own, and that a transform is fast.
func TestTransformsAreBounded(t *testing.T) {
	const (
		objects  = 4
		maxBytes = 4 << 10
		// The names of many ConfigMaps fit into the bound of a ReplicaSet. The rest is the key and the
		// indexes.
		maxReplicaSet = maxWithPorts + 1<<10
		// maxTime is ten times the processor time that TestCosts allows, because it is wall-clock
		// time with the race detector and next to other tests.
		maxTime = 2 * time.Second
	)
	for name, newObject := range hugeKinds() {
		t.Run(name, func(t *testing.T) {
			quickest := time.Hour
			kept := make([]any, 0, objects+1)
			var before uint64
			for i := range objects + 1 {
				if i == 1 { // encoders remember the types of the first one
					before = heap()
				}
				object := newObject(i)
				began := time.Now()
				stored, err := References(nil).bounded(slim)(object)
				if err != nil {
					t.Fatal(err)
				}
				kept = append(kept, stored)
				quickest = min(quickest, time.Since(began))
			}
			limit := maxBytes
			if name == "ReplicaSet" {
				limit = maxReplicaSet
			}
			if each := (float64(heap()) - float64(before)) / objects; each > float64(limit) || quickest > maxTime {
				t.Errorf("%.0f bytes are kept of each, at most %d may be; it took %s", each, limit, quickest)
			}
			runtime.KeepAlive(kept)
		})
	}
}

// heap returns the number of bytes in use on the heap.
func heap() uint64 {
	for range 2 { // the second collection empties each sync.Pool
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// withPorts returns the metadata of a form in the cache with the ports of a Pod or a template.
func withPorts(form metav1.ObjectMeta, annotations map[string]string, ports ...corev1.ContainerPort) metav1.ObjectMeta {
	cached.KeepPorts(&form, annotations, &corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Ports: ports}}})
	return form
}

// withMounts returns the metadata of a form in the cache with the ConfigMaps of volumes.
func withMounts(form metav1.ObjectMeta, volumes ...corev1.Volume) metav1.ObjectMeta {
	cached.KeepMounts(&form, &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: volumes}})
	return form
}

// manyPorts returns n container ports.
func manyPorts(n int32) (out []corev1.ContainerPort) {
	for i := range n {
		out = append(out, corev1.ContainerPort{Name: fmt.Sprintf("port-%d", i), ContainerPort: 8000 + i})
	}
	return out
}
