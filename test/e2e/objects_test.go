package e2e

// Helpers that create, change, and inspect NginxOperators and their children.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

// Pod Security levels of namespaces. Careful administrators set restricted, and all Pods of the
// operator and its instances comply with it. baseline is for the Pods of operator-sdk.
const (
	restricted = "restricted"
	baseline   = "baseline"
)

// newNamespace creates a namespace with a Pod Security level, and deletes it after the test.
func newNamespace(t *testing.T, level string) string {
	t.Helper()
	return newNamespaceOf(t, level, madeByTests)
}

func newNamespaceOf(t *testing.T, level, madeBy string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{
		testLabel:                            madeBy,
		"pod-security.kubernetes.io/enforce": level,
	}}}
	must(t, suite.admin.Create(t.Context(), namespace))
	t.Cleanup(func() {
		// The content is deleted in the background. The cleanup at the end of the run waits for
		// that.
		if err := deleteNamespace(context.Background(), namespace.Name); err != nil {
			t.Errorf("failed to delete namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

func newObject(namespace, name string, replicas int32) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{{Name: "http", Port: 8080}}, Replicas: ptr.To(replicas)},
	}
}

// newInstance creates an object on port 8080 and waits until it is ready.
func newInstance(t *testing.T, namespace, name string, replicas int32) *v1alpha2.NginxOperator {
	t.Helper()
	object := newObject(namespace, name, replicas)
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	return object
}

// update changes an object as kubectl edit does, and writes the result to the object.
func update[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	must(t, harness.RetryOnConflict(func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return suite.admin.Update(t.Context(), object)
	}))
}

// ready returns an error unless an object's condition Ready is True for its current generation.
func ready(ctx context.Context, object *v1alpha2.NginxOperator) error {
	return hasCondition(ctx, object, v1alpha2.ConditionReady, metav1.ConditionTrue, "")
}

// hasCondition returns an error unless a condition has this status and this reason for the object's
// current generation. An empty reason matches any reason.
func hasCondition(
	ctx context.Context, object *v1alpha2.NginxOperator, conditionType string, status metav1.ConditionStatus, reason string,
) error {
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(object.Status.Conditions, conditionType)
	if condition == nil {
		return fmt.Errorf("%s has no condition %s yet", object.Name, conditionType)
	}
	if condition.ObservedGeneration != object.Generation || condition.Status != status || reason != "" && condition.Reason != reason {
		return fmt.Errorf("%s (generation %d) has %s=%s of generation %d, %s: %s", object.Name, object.Generation,
			condition.Type, condition.Status, condition.ObservedGeneration, condition.Reason, condition.Message)
	}
	return nil
}

func waitForReady(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	waitFor(t, object.Namespace, object.Name+" to be ready", patience, func(ctx context.Context) error { return ready(ctx, object) })
}

// waitForDegraded waits until an object reports this reason in its condition Degraded, in
// status.blockedBy, and in an Event.
func waitForDegraded(t *testing.T, object *v1alpha2.NginxOperator, reason string) time.Duration {
	t.Helper()
	took := waitFor(t, object.Namespace, object.Name+" to be degraded: "+reason, patience, func(ctx context.Context) error {
		if err := hasCondition(ctx, object, v1alpha2.ConditionDegraded, metav1.ConditionTrue, reason); err != nil {
			return err
		}
		if !slices.ContainsFunc(object.Status.BlockedBy, func(blocker v1alpha2.Blocker) bool { return blocker.Reason == reason }) {
			return fmt.Errorf("status.blockedBy does not name it: %v", object.Status.BlockedBy)
		}
		return nil
	})
	waitFor(t, object.Namespace, "an Event with reason "+reason, 10*time.Second, func(ctx context.Context) error {
		return hasEvent(ctx, object, corev1.EventTypeWarning, reason)
	})
	return took
}

func hasEvent(ctx context.Context, object *v1alpha2.NginxOperator, eventType, reason string) error {
	list := &corev1.EventList{}
	if err := suite.admin.List(ctx, list, client.InNamespace(object.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		event := &list.Items[i]
		if event.InvolvedObject.UID == object.UID && event.Type == eventType && event.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("%s has no %s Event %s", object.Name, eventType, reason)
}

// podsOf returns the Pods of an object that are not being deleted, ordered by name.
func podsOf(ctx context.Context, object *v1alpha2.NginxOperator) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := suite.admin.List(ctx, list, client.InNamespace(object.Namespace), client.MatchingLabels(wellknown.Selector(object.Name)))
	if err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// uidsOf returns the UIDs of an object's Pods, ordered by Pod name.
func uidsOf(t *testing.T, object *v1alpha2.NginxOperator) []types.UID {
	t.Helper()
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	uids := make([]types.UID, len(pods))
	for i := range pods {
		uids[i] = pods[i].UID
	}
	return uids
}

// waitForNewPods waits until the object is ready and all Pods in before are deleted or terminating.
func waitForNewPods(t *testing.T, object *v1alpha2.NginxOperator, before []types.UID) {
	t.Helper()
	waitFor(t, object.Namespace, "other Pods", patience, func(ctx context.Context) error {
		pods, err := podsOf(ctx, object)
		if err != nil {
			return err
		}
		for i := range pods {
			if slices.Contains(before, pods[i].UID) {
				return fmt.Errorf("%s is still there", pods[i].Name)
			}
		}
		return ready(ctx, object)
	})
}

// waitForOnly waits until an object has exactly count Pods, including Pods that drain.
func waitForOnly(t *testing.T, object *v1alpha2.NginxOperator, count int) {
	t.Helper()
	waitFor(t, object.Namespace, "the old Pods to be gone", patience, func(ctx context.Context) error {
		list := &corev1.PodList{}
		err := suite.admin.List(ctx, list, client.InNamespace(object.Namespace), client.MatchingLabels(wellknown.Selector(object.Name)))
		if err == nil && len(list.Items) != count {
			err = fmt.Errorf("there are %d Pods", len(list.Items))
		}
		return err
	})
}

// childrenOf returns the existing child objects by kind. With one replica, there is no
// PodDisruptionBudget.
func childrenOf(ctx context.Context, object *v1alpha2.NginxOperator) (map[string]client.Object, error) {
	out := map[string]client.Object{}
	var errs []error
	for kind, child := range map[string]client.Object{
		"Deployment":          &appsv1.Deployment{},
		"Service":             &corev1.Service{},
		"NetworkPolicy":       &networkingv1.NetworkPolicy{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
	} {
		err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), child)
		errs = append(errs, client.IgnoreNotFound(err))
		if err == nil {
			out[kind] = child
		}
	}
	list := &corev1.ConfigMapList{}
	errs = append(errs, suite.admin.List(ctx, list, client.InNamespace(object.Namespace),
		client.MatchingLabels(wellknown.Selector(object.Name))))
	// Each revision has its own ConfigMap. The newest belongs to the current revision.
	for i := range list.Items {
		current, found := out["ConfigMap"]
		if !found || list.Items[i].CreationTimestamp.After(current.GetCreationTimestamp().Time) {
			out["ConfigMap"] = &list.Items[i]
		}
	}
	return out, errors.Join(errs...)
}

func deploymentOf(t *testing.T, object *v1alpha2.NginxOperator) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), deployment))
	return deployment
}
