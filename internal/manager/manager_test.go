package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metadata"
)

// Every kind of child is narrowed to our label, and the label is that of the children and of the Pods.
func TestCacheIsNarrow(t *testing.T) {
	options := CacheOptions()
	if !options.ReaderFailOnMissingInformer {
		t.Error("a read may start an informer for a whole kind")
	}
	for object, by := range options.ByObject {
		if _, isOwn := object.(*v1alpha2.NginxOperator); isOwn {
			continue
		}
		if _, isDefinition := object.(*apiextensionsv1.CustomResourceDefinition); isDefinition {
			if by.Field == nil || by.Field.Matches(fields.Set{"metadata.name": "foreign.example.com"}) || !by.Field.Matches(fields.Set{"metadata.name": metadata.DefinitionName}) {
				t.Errorf("of the definitions the cache has %v", by.Field)
			}
			continue
		}
		if by.Label == nil || by.Label.Matches(labels.Set{"app": "foreign"}) {
			t.Errorf("%T is cached for the whole cluster", object)
			continue
		}
		for _, ours := range []map[string]string{metadata.ChildLabels("web", "nginx:1"), metadata.PodLabels("web")} {
			if !by.Label.Matches(labels.Set(ours)) {
				t.Errorf("%T: the cache does not show what is labelled %v", object, ours)
			}
		}
	}
}

// The cache holds of each kind what is read, and of a child whether it still is as declared. A second pass changes nothing.
func TestTransforms(t *testing.T) {
	meta := func(record string) metav1.ObjectMeta {
		labels := metadata.ChildLabels("web", "nginx:1")
		return metav1.ObjectMeta{
			Name: "web", UID: "u", Labels: labels, OwnerReferences: []metav1.OwnerReference{{UID: "o"}},
			Annotations:   map[string]string{metadata.AnnotationLastDeclared: record, metadata.AnnotationReplicas: "2", "theirs": "{}"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}, {Manager: "b", Subresource: "scale"}},
		}
	}
	slim := func(record string, managed ...metav1.ManagedFieldsEntry) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: "web", UID: "u", Labels: metadata.Selector("web"), OwnerReferences: []metav1.OwnerReference{{UID: "o"}},
			Annotations:   map[string]string{metadata.AnnotationLastDeclared: record, metadata.AnnotationReplicas: "2"},
			ManagedFields: managed,
		}
	}
	asDeclared := &corev1.Service{ObjectMeta: meta(`{"spec":{"type":"ClusterIP"}}`), Spec: corev1.ServiceSpec{Type: "ClusterIP"}}
	whole := apply.Digest(asDeclared, metadata.AnnotationLastDeclared)
	configMap := &corev1.ConfigMap{ObjectMeta: meta("{}"), Data: map[string]string{"k": "v"}}
	empty := apply.Digest(configMap, metadata.AnnotationLastDeclared)
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: meta(`{"spec":{"podSelector":{}}}`),
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}},
	}
	volume := corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}
	if whole == "" || empty == "" || apply.Digest(policy, metadata.AnnotationLastDeclared) == "" {
		t.Fatal("the fixtures are not as declared")
	}
	for name, test := range map[string]struct {
		transform cache.TransformFunc
		in, want  any
	}{
		"NginxOperator": {
			slimNginxOperator, &v1alpha2.NginxOperator{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web", UID: "u", Generation: 2, ResourceVersion: "7",
					Annotations: map[string]string{"theirs": "{}", metadata.AnnotationV1alpha2Unreadable: "{"},
					Labels:      map[string]string{"theirs": "1"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}},
				},
				Spec: v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](2)},
				Status: v1alpha2.NginxOperatorStatus{
					Replicas: 2, Image: "nginx:1", Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "r", Message: "m"}},
					RelatedObjects: []v1alpha2.RelatedObject{{APIVersion: "v1", Kind: "Service", Name: "web"}},
				},
			},
			&v1alpha2.NginxOperator{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 2, ResourceVersion: "7", Annotations: map[string]string{metadata.AnnotationV1alpha2Unreadable: "{"}},
				Spec:       v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](2)},
				Status: v1alpha2.NginxOperatorStatus{
					Replicas: 2, Image: "nginx:1", Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "r", Message: "m"}},
					RelatedObjects: []v1alpha2.RelatedObject{{APIVersion: "v1", Kind: "Service", Name: "web"}},
				},
			},
		},
		"Service": {slimService, asDeclared, &corev1.Service{ObjectMeta: slim(whole)}},
		"Service that drifted": {
			slimService, &corev1.Service{ObjectMeta: meta(`{"spec":{"type":"ClusterIP"}}`), Spec: corev1.ServiceSpec{Type: "NodePort"}},
			&corev1.Service{ObjectMeta: slim("")},
		},
		"ConfigMap": {slimConfigMap, configMap, &corev1.ConfigMap{ObjectMeta: slim(empty)}},
		"NetworkPolicy": {
			slimNetworkPolicy, policy, &networkingv1.NetworkPolicy{ObjectMeta: slim(apply.Digest(policy, metadata.AnnotationLastDeclared))},
		},
		"PodDisruptionBudget": {
			slimPodDisruptionBudget, &policyv1.PodDisruptionBudget{ObjectMeta: meta("{}"), Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1}},
			&policyv1.PodDisruptionBudget{ObjectMeta: slim(empty)},
		},
		"Deployment": {
			slimDeployment, &appsv1.Deployment{
				ObjectMeta: meta("{}"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), RevisionHistoryLimit: ptr.To[int32](3)}, Status: appsv1.DeploymentStatus{Replicas: 1},
			},
			&appsv1.Deployment{
				ObjectMeta: slim(empty, metav1.ManagedFieldsEntry{Manager: "b", Subresource: "scale"}),
				Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}, Status: appsv1.DeploymentStatus{Replicas: 1},
			},
		},
		"ReplicaSet": {
			slimReplicaSet, &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Volumes: []corev1.Volume{volume, {Name: "tmp"}}, Containers: []corev1.Container{{Name: "nginx"}},
			}}}},
			&appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{volume}}}}},
		},
		"Pod": {
			slimPod, &corev1.Pod{
				Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "nginx"}}},
				Status: corev1.PodStatus{PodIP: "192.0.2.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "nginx"}}},
			},
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "nginx"}}}},
		},
		"tombstone": {slimPod, cache.DeletedFinalStateUnknown{Key: "k"}, cache.DeletedFinalStateUnknown{Key: "k"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := test.in
			for range 2 {
				var err error
				if out, err = test.transform(out); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, out); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Labels that somebody changed stay as they are: the record says that the child drifted.
func TestTransformKeepsOtherLabels(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}}}
	if _, err := slimService(service); err != nil || service.Labels["a"] != "1" {
		t.Errorf("labels %v, %v", service.Labels, err)
	}
}

// A reconcile that does not come back is found after the limit, and forgotten when it does.
func TestWatchdog(t *testing.T) {
	watchdog := NewWatchdog(20 * time.Millisecond)
	release, failed := make(chan struct{}), errors.New("failed")
	started, done := make(chan struct{}), make(chan error)
	watched := watchdog.Watch(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		close(started)
		<-release
		return reconcile.Result{}, failed
	}))
	if err := watchdog.Check(nil); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
	go func() {
		_, err := watched.Reconcile(context.Background(), reconcile.Request{})
		done <- err
	}()
	<-started
	time.Sleep(40 * time.Millisecond)
	if watchdog.Check(nil) == nil {
		t.Error("a stuck reconcile was not found")
	}
	close(release)
	if err := <-done; !errors.Is(err, failed) {
		t.Errorf("the error was lost: %v", err)
	}
	if err := watchdog.Check(nil); err != nil {
		t.Errorf("nothing runs any more: %v", err)
	}
}
