package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// forge replaces an object with a forged one that has the same name, labels, and owner. It retries
// if the operator recreates the object first.
func forge[T client.Object](t *testing.T, live T, change func(T)) types.UID {
	t.Helper()
	var uid types.UID
	waitFor(t, func() error {
		must(t, client.IgnoreNotFound(suite.admin.Delete(t.Context(), live.DeepCopyObject().(client.Object))))
		forged := live.DeepCopyObject().(T)
		forged.SetUID("")
		forged.SetResourceVersion("")
		change(forged)
		err := suite.admin.Create(t.Context(), forged)
		uid = forged.GetUID()
		return err
	})
	return uid
}

// mounted returns the names of the ConfigMaps that the Pods of an instance mount as volumes.
func mounted(deployment *appsv1.Deployment) []string {
	var out []string
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			out = append(out, volume.ConfigMap.Name)
		}
	}
	return out
}

// TestForgedConfigMapIsReplaced verifies that the operator deletes a ConfigMap with which a tenant
// replaced the operator's own. The operator replaces all Pods by Pods that mount a ConfigMap of
// another name with the declared content. The object is not Ready until then.
func TestForgedConfigMapIsReplaced(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newConfigMap(namespace, "pages", map[string]string{"index.html": "declared"}))
	object := newInstance(namespace, "web")
	object.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
	object.Spec.Config = &v1alpha2.Config{Inline: servers}
	before := serve(t, object)

	for _, victim := range before.configMaps {
		t.Run(victim.Name, func(t *testing.T) {
			// The previous round has renamed the ConfigMap.
			deployment := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment
			if suffix := deployment.Annotations[wellknown.AnnotationContent]; suffix != "" {
				victim.Name += "-" + suffix
			}
			must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(&victim), &victim))
			declared := maps.Clone(victim.Data)
			names := mounted(deployment)
			uid := forge(t, &victim, func(forged *corev1.ConfigMap) {
				for key := range forged.Data {
					forged.Data[key] = "forged"
				}
			})
			waitFor(t, func() error {
				live := &corev1.ConfigMap{}
				err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(&victim), live)
				if err == nil && live.UID == uid {
					return errors.New("the forged ConfigMap is still there")
				}
				if err != nil && !apierrors.IsNotFound(err) {
					return err
				}
				now := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment
				for i, name := range mounted(now) {
					if name == names[i] {
						return fmt.Errorf("the Pods still mount %s", name)
					}
				}
				return nil
			})
			waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonForgedContent)
			makeReady(t, namespace, "web")

			found := false
			for _, name := range mounted(must1(childrenOf(t.Context(), namespace, "web"))(t).deployment) {
				live := &corev1.ConfigMap{}
				must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, live))
				found = found || maps.Equal(live.Data, declared)
				for key, text := range live.Data {
					if strings.Contains(text, "forged") {
						t.Errorf("ConfigMap %s has forged content under %s", name, key)
					}
				}
			}
			if !found {
				t.Error("no ConfigMap that Pods mount has the declared content")
			}
		})
	}
	waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonForgedContent, len(before.configMaps))
	stillRuns(t)
}

// TestForgedRevisionIsNotBelieved verifies that what is in effect is stored while changes are
// blocked, that the operator does not use a ControllerRevision that a tenant forged, and stores it
// again. No Pod is restarted, and nothing is left once the spec is applied again.
func TestForgedRevisionIsNotBelieved(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newConfigMap(namespace, "pages", map[string]string{"index.html": "declared"}))
	object := newInstance(namespace, "web")
	object.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
	before := serve(t, object)
	if stored := must1(revisionsOf(t.Context(), namespace))(t); len(stored) != 0 {
		t.Errorf("%d ControllerRevisions of an instance whose spec is applied", len(stored))
	}
	genuine := func(other types.UID) (out *appsv1.ControllerRevision) {
		waitFor(t, func() error {
			found, err := waitForStatusOnce(t.Context(), namespace, "web")
			if err != nil || found.Status.StoredRevision == nil {
				return errors.Join(errors.New("nothing is stored"), err)
			}
			out = &appsv1.ControllerRevision{}
			key := client.ObjectKey{Namespace: namespace, Name: found.Status.StoredRevision.Name}
			if err := suite.admin.Get(t.Context(), key, out); err != nil {
				return err
			}
			sum := sha256.Sum256(out.Data.Raw)
			if out.UID == other || hex.EncodeToString(sum[:]) != found.Status.StoredRevision.Hash {
				return fmt.Errorf("%s has other data than the status", out.Name)
			}
			return nil
		})
		return out
	}

	must(t, suite.admin.Delete(t.Context(), newConfigMap(namespace, "pages", nil)))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	uid := forge(t, genuine(""), func(forged *appsv1.ControllerRevision) {
		forged.Data = runtime.RawExtension{Raw: []byte(strings.Replace(string(forged.Data.Raw), `"image":"`, `"image":"theirs/`, 1))}
	})
	must(t, suite.admin.Delete(t.Context(), before.service.DeepCopy()))
	if again := genuine(uid); strings.Contains(string(again.Data.Raw), "theirs/") {
		t.Errorf("stored %s", again.Data.Raw)
	}
	requireSamePods(t, before, must1(childrenOf(t.Context(), namespace, "web"))(t))
	create(t, newConfigMap(namespace, "pages", map[string]string{"index.html": "declared"}))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	waitFor(t, func() error {
		left, err := revisionsOf(t.Context(), namespace)
		if err != nil || len(left) > 0 {
			return errors.Join(fmt.Errorf("%d ControllerRevisions are left", len(left)), err)
		}
		return nil
	})
	stillRuns(t)
}

// TestForgedConfigMapWhilePaused verifies that a paused object reports a forged ConfigMap and does
// not replace it, like any other drift.
func TestForgedConfigMapWhilePaused(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, nil)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	victim := before.configMaps[0]
	uid := forge(t, &victim, func(forged *corev1.ConfigMap) { forged.Data = map[string]string{"nginx.conf": "forged"} })
	ready := waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	if !strings.Contains(ready.Message, victim.Name) {
		t.Errorf("the message does not name %s: %s", victim.Name, ready.Message)
	}
	live := &corev1.ConfigMap{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(&victim), live))
	if live.UID != uid {
		t.Error("the operator changed it while it is paused")
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = false })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonForgedContent)
}
