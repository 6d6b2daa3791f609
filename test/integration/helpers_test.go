package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/test/harness"
)

// patience bounds every wait. It is long because a busy machine may be slow at any moment.
// Durations are measured elsewhere, on an idle machine.
const patience = 2 * time.Minute

var must = harness.Must

func must1[T any](value T, err error) func(testing.TB) T { return harness.Must1(value, err) }

// eventually repeats a check until it passes or the context ends, and then returns the check's last
// error.
func eventually(ctx context.Context, check func() error) error {
	return harness.Eventually(ctx, 200*time.Millisecond, func(context.Context) error { return check() })
}

func waitFor(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, eventually(ctx, check))
}

func newInstance(namespace, name string) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// newObject returns a v1alpha1 object.
func newObject(namespace, name string) *v1alpha1.NginxOperator {
	return &v1alpha1.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// onPort returns the ports of an instance that listens only on this port.
func onPort(port int32) []v1alpha2.Port {
	return []v1alpha2.Port{{Name: "http", Port: port, Protocol: corev1.ProtocolTCP}}
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	must(t, suite.admin.Create(t.Context(), object))
}

// update changes an object like kubectl edit, and retries on a conflict.
func update[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return suite.admin.Update(t.Context(), object)
	})
}

// tryUpdate changes an object once, and returns the API server's refusal. It retries on a conflict
// only, because the operator writes the status at the same time.
func tryUpdate[T client.Object](t *testing.T, object T, change func(T), options ...client.UpdateOption) error {
	t.Helper()
	return harness.RetryOnConflict(func() error {
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		change(object)
		return suite.admin.Update(t.Context(), object, options...)
	})
}

// children are the child objects of one NginxOperator. A field is nil if the object does not exist.
type children struct {
	deployment *appsv1.Deployment
	service    *corev1.Service
	policy     *networkingv1.NetworkPolicy
	budget     *policyv1.PodDisruptionBudget
	autoscaler *autoscalingv2.HorizontalPodAutoscaler
	ingress    *networkingv1.Ingress
	route      *gatewayv1.HTTPRoute
	monitor    *monitoringv1.PodMonitor
	rule       *monitoringv1.PrometheusRule
	configMaps []corev1.ConfigMap
}

func childrenOf(ctx context.Context, namespace, name string) (children, error) {
	out := children{
		deployment: &appsv1.Deployment{}, service: &corev1.Service{}, policy: &networkingv1.NetworkPolicy{},
		budget: &policyv1.PodDisruptionBudget{}, autoscaler: &autoscalingv2.HorizontalPodAutoscaler{}, ingress: &networkingv1.Ingress{},
		route: &gatewayv1.HTTPRoute{}, monitor: &monitoringv1.PodMonitor{}, rule: &monitoringv1.PrometheusRule{},
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	errs := []error{
		readChild(ctx, key, &out.deployment), readChild(ctx, key, &out.service), readChild(ctx, key, &out.policy),
		readChild(ctx, key, &out.budget), readChild(ctx, key, &out.autoscaler), readChild(ctx, key, &out.ingress),
		readChild(ctx, key, &out.route), readChild(ctx, key, &out.monitor), readChild(ctx, key, &out.rule),
	}
	list := &corev1.ConfigMapList{}
	errs = append(errs, suite.admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/instance": name}))
	out.configMaps = list.Items
	return out, errors.Join(errs...)
}

// readChild reads a child. The pointer becomes nil if the child does not exist.
func readChild[T client.Object](ctx context.Context, key client.ObjectKey, child *T) error {
	err := suite.admin.Get(ctx, key, *child)
	if err != nil {
		*child = *new(T)
	}
	return client.IgnoreNotFound(err)
}

// waitForWeb waits until a check of the children of the object web passes.
func waitForWeb(t *testing.T, namespace string, check func(children) error) {
	t.Helper()
	waitFor(t, func() error {
		found, err := childrenOf(t.Context(), namespace, "web")
		if err != nil {
			return err
		}
		return check(found)
	})
}

// newWeb is createWeb in a new namespace, and waits for the children.
func newWeb(t *testing.T, set func(*v1alpha2.NginxOperatorSpec)) (namespace string, object *v1alpha2.NginxOperator, first children) {
	t.Helper()
	namespace = newNamespace(t)
	object = createWeb(t, namespace, set)
	return namespace, object, waitForChildren(t, namespace, "web")
}

// createWeb creates the object web. Its spec is empty, unless set is not nil.
func createWeb(t *testing.T, namespace string, set func(*v1alpha2.NginxOperatorSpec)) *v1alpha2.NginxOperator {
	t.Helper()
	object := newInstance(namespace, "web")
	if set != nil {
		set(&object.Spec)
	}
	create(t, object)
	return object
}

// newReadyWeb is newWeb, and completes the rollout.
func newReadyWeb(t *testing.T, set func(*v1alpha2.NginxOperatorSpec)) (namespace string, object *v1alpha2.NginxOperator, first children) {
	t.Helper()
	namespace, object, first = newWeb(t, set)
	makeReady(t, namespace, "web")
	return namespace, object, first
}

// deleteWhileBlocked deletes a child of the object web, whose changes are blocked, and waits for a
// new child with the same spec.
func deleteWhileBlocked[T client.Object](t *testing.T, namespace string, child T, live func(children) (T, bool), spec func(T) any) {
	t.Helper()
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	must(t, suite.admin.Delete(t.Context(), child))
	waitFor(t, func() error {
		got, found := live(must1(childrenOf(t.Context(), namespace, "web"))(t))
		if !found || got.GetUID() == child.GetUID() {
			return fmt.Errorf("no new %T", child)
		}
		if diff := cmp.Diff(spec(child), spec(got)); diff != "" {
			return fmt.Errorf("(-before +now):\n%s", diff)
		}
		return nil
	})
}

// waitForChildren waits until an object with one replica has all its children and a status.
func waitForChildren(t *testing.T, namespace, name string) children {
	t.Helper()
	var out children
	waitFor(t, func() error {
		// Children that are read after the status are at least as new as the generation that it
		// reports.
		object, err := waitForStatusOnce(t.Context(), namespace, name)
		if err != nil {
			return err
		}
		if out, err = childrenOf(t.Context(), namespace, name); err != nil {
			return err
		}
		expose := ptr.Deref(object.Spec.Expose, v1alpha2.Expose{})
		monitoring := ptr.Deref(object.Spec.Monitoring, v1alpha2.Monitoring{Enabled: ptr.To(false)})
		isMonitored := ptr.Deref(monitoring.Enabled, true)
		if out.deployment == nil || out.service == nil || len(out.configMaps) == 0 ||
			(out.policy == nil) == defaults.HasNetworkPolicy(&object.Spec) ||
			(out.ingress == nil) == (expose.Ingress != nil) || (out.route == nil) == (expose.HTTPRoute != nil) ||
			(out.monitor == nil) == (isMonitored && monitoring.PodMonitor != nil) ||
			(out.rule == nil) == (isMonitored && monitoring.Alerts != nil) {
			return fmt.Errorf("children are missing: %+v", out)
		}
		return nil
	})
	return out
}

func waitForStatusOnce(ctx context.Context, namespace, name string) (*v1alpha2.NginxOperator, error) {
	object := newInstance(namespace, name)
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	if object.Status.ObservedGeneration != object.Generation {
		return nil, fmt.Errorf("status.observedGeneration is %d, want %d", object.Status.ObservedGeneration, object.Generation)
	}
	return object, nil
}

// waitForStatus waits until the status is of the current generation and a check of the object
// passes.
func waitForStatus(t *testing.T, namespace, name string, check func(*v1alpha2.NginxOperator) error) {
	t.Helper()
	waitFor(t, func() error {
		object, err := waitForStatusOnce(t.Context(), namespace, name)
		if err != nil {
			return err
		}
		return check(object)
	})
}

// waitForCondition waits for a condition of the current generation and returns it.
func waitForCondition(t *testing.T, namespace, name, conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	waitForStatus(t, namespace, name, func(object *v1alpha2.NginxOperator) error {
		found = meta.FindStatusCondition(object.Status.Conditions, conditionType)
		if found == nil || found.Status != status || found.Reason != reason {
			return fmt.Errorf("want %s=%s %s, got %+v", conditionType, status, reason, found)
		}
		return nil
	})
	return *found
}

// serve creates an object, completes its rollout, and waits until it is Ready. It returns the
// children.
func serve(t *testing.T, object client.Object) children {
	t.Helper()
	create(t, object)
	namespace, name := object.GetNamespace(), object.GetName()
	out := waitForChildren(t, namespace, name)
	makeReady(t, namespace, name)
	return out
}

// makeReady completes the rollout of an object and waits until the object is Ready.
func makeReady(t *testing.T, namespace, name string) {
	t.Helper()
	rollOut(t, namespace, name)
	waitForCondition(t, namespace, name, v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
}

// rollOut writes the status that the Deployment controller writes when all replicas of the newest
// revision are ready.
func rollOut(t *testing.T, namespace, name string) {
	t.Helper()
	setDeploymentStatus(t, namespace, name, func(deployment *appsv1.Deployment) {
		n := ptr.Deref(deployment.Spec.Replicas, 1)
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
	})
}

func setDeploymentStatus(t *testing.T, namespace, name string, change func(*appsv1.Deployment)) {
	t.Helper()
	waitFor(t, func() error {
		deployment := &appsv1.Deployment{}
		if err := suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
			return err
		}
		change(deployment)
		return suite.admin.Status().Update(t.Context(), deployment)
	})
}
