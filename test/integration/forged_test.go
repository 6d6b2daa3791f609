package integration

import (
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
	"github.com/example/nginx-operator/internal/carried"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness/mutate"
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

// revisionOf returns the ControllerRevision of an instance. If the Deployment carries the record, it
// removes the annotation first, and the operator writes a ControllerRevision.
func revisionOf(t *testing.T, namespace, name string) *appsv1.ControllerRevision {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	waitFor(t, func() error {
		err := suite.admin.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels(wellknown.Selector(name)))
		if err != nil {
			return err
		}
		deployment := &appsv1.Deployment{}
		must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, deployment))
		if declared := recordOf(t, deployment); len(list.Items) == 1 {
			if _, carries := mutate.At(declared, []any{"metadata", "annotations", wellknown.AnnotationFirstDeclaration}); carries {
				return errors.New("the Deployment is not declared without the record yet")
			}
			return nil
		}
		without := deployment.DeepCopy()
		delete(without.Annotations, wellknown.AnnotationFirstDeclaration)
		must(t, suite.admin.Patch(t.Context(), without, client.MergeFrom(deployment)))
		return fmt.Errorf("%d records", len(list.Items))
	})
	return &list.Items[0]
}

// TestForgedFirstDeclaration verifies that the operator does not believe a record that a tenant
// changed in the annotation of the Deployment. It writes the record as a ControllerRevision, and
// removes the annotation. No Pod is restarted, and the forgery does not come into effect while
// changes are blocked.
func TestForgedFirstDeclaration(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newConfigMap(namespace, "pages", map[string]string{"index.html": "declared"}))
	object := newInstance(namespace, "web")
	object.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
	before := serve(t, object)
	if records := must1(revisionsOf(t.Context(), namespace))(t); len(records) != 0 {
		t.Errorf("%d records of the first declaration", len(records))
	}
	forged := before.deployment.DeepCopy()
	annotation := forged.Annotations[wellknown.AnnotationFirstDeclaration]
	forged.Annotations[wellknown.AnnotationFirstDeclaration] = strings.Replace(annotation, `"image":"`, `"image":"theirs/`, 1)
	if forged.Annotations[wellknown.AnnotationFirstDeclaration] == annotation {
		t.Fatalf("the Deployment carries no record: %q", annotation)
	}
	must(t, suite.admin.Patch(t.Context(), forged, client.MergeFrom(before.deployment)))

	waitFor(t, func() error {
		live := &appsv1.Deployment{}
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(forged), live))
		if text, found := live.Annotations[wellknown.AnnotationFirstDeclaration]; found {
			return fmt.Errorf("the Deployment still carries %.60s", text)
		}
		records, err := revisionsOf(t.Context(), namespace)
		if err != nil || len(records) != 1 || strings.Contains(string(records[0].Data.Raw), "theirs/") {
			return errors.Join(fmt.Errorf("records %v", records), err)
		}
		found, err := waitForStatusOnce(t.Context(), namespace, "web")
		if err == nil && found.Status.FirstDeclarationHash != "" {
			err = errors.New("the status still confirms the annotation")
		}
		return err
	})
	rollOut(t, namespace, "web")
	must(t, suite.admin.Delete(t.Context(), newConfigMap(namespace, "pages", nil)))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	requireSamePods(t, before, must1(childrenOf(t.Context(), namespace, "web"))(t))
	stillRuns(t)
}

// TestSecondDeclaration verifies that the record of the first declaration becomes a
// ControllerRevision before the Deployment is changed, because it is the last good one. The
// Deployment continues to carry it, so a change that does not concern the Deployment is no new
// generation of it. A spec that may need the bytes of the annotation removes it.
func TestSecondDeclaration(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, nil)
	first := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status.LastGoodRevision.Revision
	annotation := before.deployment.Annotations[wellknown.AnnotationFirstDeclaration]
	_, data, _ := strings.Cut(annotation, " ")
	recorded := func(records int) *appsv1.Deployment {
		live := &appsv1.Deployment{}
		waitFor(t, func() error {
			must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(before.deployment), live))
			found, err := revisionsOf(t.Context(), namespace)
			if name := live.Labels[wellknown.LabelRecord]; err != nil || len(found) != records || first == "web-"+name {
				return errors.Join(fmt.Errorf("%d records, and the Deployment is of the record %s", len(found), name), err)
			}
			return nil
		})
		return live
	}

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "again" })
	second := recorded(2)
	for _, record := range must1(revisionsOf(t.Context(), namespace))(t) {
		if record.Name == first && string(record.Data.Raw) != data {
			t.Errorf("the record is %s, the Deployment carried %s", record.Data.Raw, data)
		}
	}
	rollOutUntilReady(t, namespace)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Service = &v1alpha2.Service{Type: corev1.ServiceTypeNodePort} })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	if live := recorded(1); live.Generation != second.Generation || live.Annotations[wellknown.AnnotationFirstDeclaration] != annotation {
		t.Errorf("the change of a Service led to generation %d of the Deployment, which carries %.60s",
			live.Generation, live.Annotations[wellknown.AnnotationFirstDeclaration])
	}

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Service.Annotations = map[string]string{"example.com/long": strings.Repeat("x", carried.MaxBytes)}
	})
	waitFor(t, func() error {
		live := &appsv1.Deployment{}
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(before.deployment), live))
		if live.Annotations[wellknown.AnnotationFirstDeclaration] != "" {
			return errors.New("the Deployment of a large spec carries the record of its first declaration")
		}
		return nil
	})
}

// TestForgedRecordIsNotBelieved verifies that the operator replaces a record that a tenant forged
// and restarts no Pods. It does not use the forged record while changes are blocked.
func TestForgedRecordIsNotBelieved(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newConfigMap(namespace, "pages", map[string]string{"index.html": "declared"}))
	object := newInstance(namespace, "web")
	object.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
	serve(t, object)
	record := func() *appsv1.ControllerRevision { return revisionOf(t, namespace, "web") }
	theirs := func(forged *appsv1.ControllerRevision) {
		forged.Data = runtime.RawExtension{Raw: []byte(strings.Replace(string(forged.Data.Raw), `"image":"`, `"image":"theirs/`, 1))}
	}
	genuine := record()
	rollOut(t, namespace, "web") // the Deployment has lost an annotation
	before := must1(childrenOf(t.Context(), namespace, "web"))(t)
	uid := forge(t, genuine, theirs)
	waitFor(t, func() error {
		live := &appsv1.ControllerRevision{}
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(genuine), live); err != nil {
			return err
		}
		if live.UID == uid || strings.Contains(string(live.Data.Raw), "theirs/") {
			return errors.New("the forged record is still there")
		}
		return nil
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)

	must(t, suite.admin.Delete(t.Context(), newConfigMap(namespace, "pages", nil)))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	forge(t, record(), theirs)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonForgedContent)
	after := must1(childrenOf(t.Context(), namespace, "web"))(t)
	if before.deployment.Generation != after.deployment.Generation {
		t.Error("the Deployment changed")
	}
	create(t, newConfigMap(namespace, "pages", map[string]string{"index.html": "declared"}))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
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
