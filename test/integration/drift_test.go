package integration

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/mutate"
)

// TestDriftInEveryField changes and removes every field that the operator declares, in every child.
// The operator must restore each change that the API server accepts. The fields come from the
// records on the children, for an object with only v1alpha1 fields and for each example of the
// field reference.
func TestDriftInEveryField(t *testing.T) {
	plain := v1alpha2.NginxOperatorSpec{Ports: onPort(80), Replicas: ptr.To[int32](2), ForceRedeploy: "now"}
	known := driftOf(t, newNamespace(t), plain, nil)
	t.Run("examples", func(t *testing.T) {
		for _, e := range fieldExamples(t) {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				driftOf(t, e.newNamespace(t), e.spec, known)
			})
		}
	})
}

// driftOf creates an object and changes all declared values of its children that are not in known.
// It returns the declared values.
func driftOf(t *testing.T, namespace string, spec v1alpha2.NginxOperatorSpec, known sets.Set[string]) sets.Set[string] {
	object := newInstance(namespace, "web")
	object.Spec = spec
	create(t, object)
	got := waitForChildren(t, namespace, "web")
	if ptr.Deref(spec.Replicas, 1) > 1 {
		waitFor(t, func() (err error) {
			if got, err = childrenOf(t.Context(), namespace, "web"); err != nil || got.budget == nil {
				return fmt.Errorf("no PodDisruptionBudget: %w", err)
			}
			return nil
		})
	}
	if spec.Autoscaling != nil {
		// Within its bounds, the autoscaler sets the number of Pods.
		number := int64(*got.deployment.Spec.Replicas)
		known = known.Union(sets.New(fmt.Sprint("Deployment", []any{"spec", "replicas"}, number)))
	}
	declared, restored := sets.New[string](), 0
	for _, child := range got.all() {
		gvk := must1(apiutil.GVKForObject(child, suite.admin.Scheme()))(t)
		t.Run(gvk.Kind, func(t *testing.T) {
			found, n := driftIn(t, gvk, client.ObjectKeyFromObject(child), known)
			t.Logf("%d drifts restored", n)
			if n == 0 && known == nil {
				t.Error("no field could be changed, so nothing was shown")
			}
			declared, restored = declared.Union(found), restored+n
		})
	}
	if restored == 0 {
		t.Error("no field of the example could be changed, so nothing was shown")
	}
	return declared
}

// driftIn changes the declared values of one child that are not in known, and waits until the
// operator restores each of them. It returns the declared values and the number of restored
// changes.
func driftIn(
	t *testing.T, gvk schema.GroupVersionKind, key client.ObjectKey, known sets.Set[string],
) (found sets.Set[string], restored int) {
	read := func() *unstructured.Unstructured {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(gvk)
		must(t, suite.admin.Get(t.Context(), key, live))
		return live
	}
	original := read()
	found = sets.New[string]()
	declared := recordOf(t, original)
	for _, path := range leaves(declared, nil) {
		want, isStored := mutate.At(original.Object, path)
		if !isStored {
			t.Fatalf("declared field %v is not stored", path)
		}
		if declared, _ := mutate.At(declared, path); fmt.Sprint(declared) != fmt.Sprint(want) {
			t.Errorf("declared field %v is %v, and stored as %v", path, declared, want)
		}
		leaf := fmt.Sprint(gvk.Kind, path, want)
		if found.Insert(leaf); known.Has(leaf) {
			continue
		}
		for _, drift := range []func(any) any{another, func(any) any { return nil }} {
			live, err := drifted(t, read, path, drift(want))
			if err != nil {
				continue
			}
			if now, _ := mutate.At(live.Object, path); reflect.DeepEqual(now, want) {
				continue // the API server's default equals the declared value
			}
			restored++
			if isListKey(path) {
				// With another key, this is an element of another client. The operator must add its
				// own element again.
				list, before := path[:len(path)-2], must1(elements(live.Object, path))(t)
				waitFor(t, func() error {
					if now, err := elements(read().Object, path); err != nil || !slices.Contains(now, want) {
						return fmt.Errorf("%s %v has %v, want also %v (after %v)", gvk.Kind, list, now, want, before)
					}
					return nil
				})
				live = read()
				original, _ := mutate.At(original.Object, list)
				set(live.Object, list, original)
				must(t, suite.admin.Update(t.Context(), live))
				continue
			}
			waitFor(t, func() error {
				if now, _ := mutate.At(read().Object, path); !reflect.DeepEqual(now, want) {
					return fmt.Errorf("%s %v is %v, want %v", gvk.Kind, path, now, want)
				}
				return nil
			})
		}
	}
	return found, restored
}

// drifted writes a value at a path of a child and returns the object. If the API server rejects the
// value because the field is immutable or the value is invalid, drifted returns the error in
// rejected. Any other error fails the test.
func drifted(
	t *testing.T, read func() *unstructured.Unstructured, path []any, value any,
) (live *unstructured.Unstructured, rejected error) {
	t.Helper()
	must(t, harness.RetryOnConflict(func() error {
		live = read()
		set(live.Object, path, value)
		err := suite.admin.Update(t.Context(), live)
		if rejected = nil; apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			rejected, err = err, nil
		}
		return err
	}))
	return live, rejected
}

// TestForeignFieldsStay verifies that fields that other clients add to the children stay when the
// operator writes.
func TestForeignFieldsStay(t *testing.T) {
	namespace, object, got := newWeb(t, nil)
	update(t, got.deployment, func(d *appsv1.Deployment) {
		d.Annotations["example.com/injected"] = "yes"
		// Like kubectl rollout restart.
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar"})
		d.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	})
	update(t, got.service, func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.com/injected", "yes") })

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Ports, o.Spec.ForceRedeploy = onPort(9090), "again"
	})
	waitForWeb(t, namespace, func(now children) error {
		if now.service.Spec.Ports[0].Port != 9090 || now.deployment.Spec.Template.Annotations[wellknown.AnnotationForceRedeploy] != "again" {
			return fmt.Errorf("not applied yet")
		}
		template := now.deployment.Spec.Template
		if now.deployment.Annotations["example.com/injected"] != "yes" || now.service.Annotations["example.com/injected"] != "yes" ||
			template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" ||
			len(template.Spec.Containers) != 2 || template.Spec.NodeSelector["disk"] != "ssd" {
			t.Errorf("a foreign field was lost: %+v", template)
		}
		return nil
	})
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "" })
	waitForWeb(t, namespace, func(now children) error {
		if _, left := now.deployment.Spec.Template.Annotations[wellknown.AnnotationForceRedeploy]; left {
			return fmt.Errorf("a field that is no longer declared stays")
		}
		if now.deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
			t.Error("a foreign annotation went with ours")
		}
		return nil
	})
}

// TestFieldsTakenOutWhileTheOperatorIsAway verifies that fields that are removed from the spec
// while no operator runs are removed from the children. This works even if another manager applied
// the same fields, and if a client emptied managedFields. Fields of other clients stay.
func TestFieldsTakenOutWhileTheOperatorIsAway(t *testing.T) {
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.PodTemplate = &v1alpha2.PodTemplate{
		NodeSelector: map[string]string{"disk": "ssd", "zone": "a"},
		Annotations:  map[string]string{"example.com/scrape": "true"},
	}
	object.Spec.Service = &v1alpha2.Service{Labels: map[string]string{"team": "shop"}}
	create(t, object)
	got := waitForChildren(t, namespace, "web")
	must(t, suite.operator.KillLeader(suite.admin))

	update(t, got.deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector["rack"] = "7" })
	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	theirs.SetNamespace(namespace)
	theirs.SetName("web")
	annotations := map[string]any{"example.com/scrape": "true", "example.com/theirs": "1"}
	must(t, unstructured.SetNestedMap(theirs.Object, annotations, "spec", "template", "metadata", "annotations"))
	mustApply(t, "theirs", theirs)
	must(t, suite.admin.Patch(t.Context(), got.service, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]`))))

	update(t, object, func(o *v1alpha2.NginxOperator) {
		delete(o.Spec.PodTemplate.NodeSelector, "disk")
		o.Spec.PodTemplate.Annotations, o.Spec.Service = nil, nil
	})
	startNextOperator(t)
	waitForWeb(t, namespace, func(now children) error {
		template := now.deployment.Spec.Template
		if diff := cmp.Diff(map[string]string{"zone": "a", "rack": "7"}, template.Spec.NodeSelector); diff != "" {
			return fmt.Errorf("the node selector (-want +got):\n%s", diff)
		}
		if _, left := template.Annotations["example.com/scrape"]; left || template.Annotations["example.com/theirs"] != "1" {
			return fmt.Errorf("the annotations are %v", template.Annotations)
		}
		if team, left := now.service.Labels["team"]; left {
			return fmt.Errorf("the Service has the label team=%s", team)
		}
		return nil
	})
}

// TestScaleOfTheDeploymentIsDrift verifies that the operator corrects replicas that a client sets
// on the Deployment, also through the scale subresource. Only spec.replicas counts, unless
// spec.autoscaling is set.
func TestScaleOfTheDeploymentIsDrift(t *testing.T) {
	namespace, object, first := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) })
	deployment := first.deployment
	replicasBecome := func(want int32) {
		t.Helper()
		waitFor(t, func() error {
			must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))
			if *deployment.Spec.Replicas != want {
				return fmt.Errorf("Deployment has %d replicas, want %d", *deployment.Spec.Replicas, want)
			}
			return nil
		})
	}
	update(t, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	replicasBecome(2)

	scaleAs(t, deployment, 5)
	replicasBecome(2)
	rollOut(t, namespace, "web")
	ready := waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	if !strings.Contains(ready.Message, "2 of 2") {
		t.Errorf("Ready says %q", ready.Message)
	}

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
	replicasBecome(3)
}
