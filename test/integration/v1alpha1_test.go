package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

func newFullObject(namespace string) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: harness.FullSpec()}
}

func readV1alpha2(t *testing.T, namespace, name string) *v1alpha2.NginxOperator {
	t.Helper()
	object := &v1alpha2.NginxOperator{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
	return object
}

// TestV1alpha1WritesLoseNothing verifies that a v1alpha1 client changes only the fields that it
// writes, for each kind of write.
func TestV1alpha1WritesLoseNothing(t *testing.T) {
	t.Parallel()
	patch := func(kind types.PatchType, text string) func(*testing.T, string) {
		return func(t *testing.T, namespace string) {
			must(t, suite.admin.Patch(t.Context(), newObject(namespace, "web"), client.RawPatch(kind, []byte(text))))
		}
	}
	edit := func(change func(*v1alpha1.NginxOperator)) func(*testing.T, string) {
		return func(t *testing.T, namespace string) { update(t, newObject(namespace, "web"), change) }
	}
	replace := func(spec string) func(*testing.T, string) {
		return func(t *testing.T, namespace string) {
			// Retry, because the operator writes the status at the same time.
			must(t, harness.RetryOnConflict(func() error {
				object := specManifest(t, "v1alpha1", namespace, "web", spec)
				object.SetResourceVersion(readV1alpha2(t, namespace, "web").ResourceVersion)
				return suite.admin.Update(t.Context(), object)
			}))
		}
	}
	scale := func(of client.Object) func(*testing.T, string) {
		return func(t *testing.T, namespace string) {
			of = of.DeepCopyObject().(client.Object)
			of.SetNamespace(namespace)
			of.SetName("web")
			body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
			must(t, suite.admin.SubResource("scale").Update(t.Context(), of, client.WithSubResourceBody(body)))
		}
	}
	escaped := strings.ReplaceAll(wellknown.AnnotationV1alpha2, "/", "~1")
	replicas4 := func(spec *v1alpha2.NginxOperatorSpec) { spec.Replicas = ptr.To[int32](4) }
	nothing := func(*v1alpha2.NginxOperatorSpec) {}
	for name, test := range map[string]struct {
		write func(t *testing.T, namespace string)
		want  func(*v1alpha2.NginxOperatorSpec)
	}{
		"update":         {edit(func(o *v1alpha1.NginxOperator) { o.Spec.Replicas = ptr.To[int32](4) }), replicas4},
		"update of port": {edit(func(o *v1alpha1.NginxOperator) { o.Spec.Port = ptr.To[int32](8000) }), nothing},
		"update of labels": {edit(func(o *v1alpha1.NginxOperator) {
			o.Labels = map[string]string{"a": "1"}
			o.Annotations["example.com/mine"] = "1"
		}), nothing},
		"update without annotations": {edit(func(o *v1alpha1.NginxOperator) {
			o.Annotations = nil
			o.Spec.Replicas = ptr.To[int32](4)
		}), replicas4},
		"update of the annotation": {edit(func(o *v1alpha1.NginxOperator) {
			o.Annotations[wellknown.AnnotationV1alpha2] = `{"tls":[]}`
			o.Spec.Replicas = ptr.To[int32](4)
		}), replicas4},
		"replace with a manifest":        {replace("{port: 8000, replicas: 4}"), replicas4},
		"replace with a manifest, empty": {replace("{port: 8000}"), func(spec *v1alpha2.NginxOperatorSpec) { spec.Replicas = ptr.To[int32](1) }},
		"merge patch":                    {patch(types.MergePatchType, `{"spec":{"replicas":4}}`), replicas4},
		"merge patch of all annotations": {patch(types.MergePatchType, `{"metadata":{"annotations":null},"spec":{"replicas":4}}`), replicas4},
		"JSON patch":                     {patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":4}]`), replicas4},
		"JSON patch of the annotation":   {patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/annotations/`+escaped+`"}]`), nothing},
		"apply": {func(t *testing.T, namespace string) {
			mustApply(t, "old", specManifest(t, "v1alpha1", namespace, "web", "{replicas: 4}"), client.ForceOwnership)
		}, replicas4},
		"apply twice, then less": {func(t *testing.T, namespace string) {
			mustApply(t, "old", specManifest(t, "v1alpha1", namespace, "web", "{replicas: 4, forceRedeploy: now}"), client.ForceOwnership)
			mustApply(t, "old", specManifest(t, "v1alpha1", namespace, "web", "{replicas: 4, forceRedeploy: later}"))
			mustApply(t, "old", specManifest(t, "v1alpha1", namespace, "web", "{replicas: 4}"))
		}, replicas4},
		"scale at v1alpha1": {scale(&v1alpha1.NginxOperator{}), replicas4},
		"scale at v1alpha2": {scale(&v1alpha2.NginxOperator{}), replicas4},
		"status at v1alpha1": {func(t *testing.T, namespace string) {
			body := client.RawPatch(types.MergePatchType, []byte(`{"status":{"image":"another"},"metadata":{"annotations":null}}`))
			must(t, suite.admin.Status().Patch(t.Context(), newObject(namespace, "web"), body))
		}, nothing},
		"an edit of all that v1alpha1 knows": {edit(func(o *v1alpha1.NginxOperator) {
			o.Spec = v1alpha1.NginxOperatorSpec{Port: ptr.To[int32](8002), Replicas: ptr.To[int32](0), ForceRedeploy: "now"}
			// The user's configuration has to listen on the new port as well, and v1alpha1 cannot
			// change it.
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			object := newFullObject(namespace)
			want := harness.FullSpec()
			if test.want == nil {
				object.Spec.Config, want.Config = nil, nil
				want.Ports[0].Port, want.Replicas, want.ForceRedeploy = 8002, ptr.To[int32](0), "now"
			} else {
				test.want(&want)
			}
			create(t, object)
			test.write(t, namespace)
			got := readV1alpha2(t, namespace, "web")
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if _, found := got.Annotations[wellknown.AnnotationV1alpha2]; found {
				t.Error("v1alpha2 shows the annotation")
			}
			checkManagedFields(t, got)
		})
	}
}

// checkManagedFields requires that the managed fields can be read. It applies the object as a new
// manager, for which the API server reads all of them.
func checkManagedFields(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	if len(object.ManagedFields) == 0 {
		t.Error("there are no managed fields")
	}
	for _, entry := range object.ManagedFields {
		if entry.Manager == "" || entry.FieldsV1 == nil || !json.Valid(entry.FieldsV1.GetRawBytes()) {
			t.Errorf("managed fields of %q cannot be read", entry.Manager)
		}
	}
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		visitor := specManifest(t, version, object.Namespace, object.Name, "{}")
		visitor.SetLabels(map[string]string{"visited-" + version: "yes"})
		mustApply(t, "visitor-"+version, visitor)
	}
	if diff := cmp.Diff(object.Spec, readV1alpha2(t, object.Namespace, object.Name).Spec); diff != "" {
		t.Errorf("an apply that declares a label changed the spec\n%s", diff)
	}
}

// keepElsewhere makes the API server call the webhook that preserves the v1alpha2-only fields at a
// path where nothing answers. It returns a function that undoes this. The conversion still answers.
// The effect is the same as if many requests delay a review for longer than its timeout.
func keepElsewhere(t *testing.T) (end func()) {
	t.Helper()
	ask := func(change func(url string) string) {
		changeWebhook(t, keepWebhook, func(webhook *admissionregistrationv1.MutatingWebhook) {
			webhook.ClientConfig.URL = ptr.To(change(*webhook.ClientConfig.URL))
		})
	}
	const nowhere = "/nowhere"
	ask(func(url string) string { return url + nowhere })
	end = sync.OnceFunc(func() { ask(func(url string) string { return strings.TrimSuffix(url, nowhere) }) })
	t.Cleanup(end)
	return end
}

const keepWebhook = "keep.v1alpha1.nginxoperators.operator.example.com"

// TestV1alpha1WriteFailsWithoutAdmission verifies that a v1alpha1 write fails if a tenant keeps the
// webhooks so busy that its admission is not answered. Without admission, a replace with a v1alpha1
// manifest would remove every field that v1alpha1 does not have.
func TestV1alpha1WriteFailsWithoutAdmission(t *testing.T) {
	namespace := newNamespace(t)
	create(t, newFullObject(namespace))
	replace := func() error {
		return harness.RetryOnConflict(func() error {
			object := specManifest(t, "v1alpha1", namespace, "web", "{port: 8000, replicas: 4}")
			object.SetResourceVersion(readV1alpha2(t, namespace, "web").ResourceVersion)
			return suite.admin.Update(t.Context(), object)
		})
	}
	want := harness.FullSpec()
	unchanged := func() error {
		got := readV1alpha2(t, namespace, "web").Spec
		got.Replicas = want.Replicas
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("a replace changed more than replicas\n%s", diff)
		}
		return nil
	}

	end := keepElsewhere(t)
	waitFor(t, func() error {
		err := replace()
		must(t, unchanged())
		if err == nil {
			return errors.New("the API server has not noticed yet")
		}
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), keepWebhook) {
			t.Fatalf("the replace failed otherwise: %v", err)
		}
		return nil
	})

	end()
	waitFor(t, replace)
	must(t, unchanged())
}

// TestV1alpha1Warning verifies that a client that changes the annotation gets a warning that says
// where to change these fields. A client that only removes its annotations gets none.
func TestV1alpha1Warning(t *testing.T) {
	t.Parallel()
	namespace, warned := newNamespace(t), &recordedWarnings{}
	listening := warningClient(t, warned)
	create(t, newFullObject(namespace))
	object := newObject(namespace, "web")
	must(t, listening.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))))
	if texts := warned.list(); len(texts) != 0 {
		t.Errorf("warnings %q", texts)
	}
	must(t, listening.Patch(t.Context(), object, client.RawPatch(types.MergePatchType,
		[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"{}"}}}`, wellknown.AnnotationV1alpha2)))))
	if texts := warned.list(); len(texts) != 1 ||
		!strings.Contains(texts[0], "kubectl edit nginxoperators.v1alpha2.operator.example.com web") {
		t.Errorf("warnings %q", texts)
	}
	if warned.deprecated != 2 {
		t.Errorf("%d of 2 answers say that v1alpha1 is deprecated", warned.deprecated)
	}
}

// TestRestoreAtV1alpha1 verifies that a backup taken at v1alpha1 restores all v1alpha2 fields, and
// that admission rejects a damaged backup.
func TestRestoreAtV1alpha1(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newFullObject(namespace))
	saved := newObject(namespace, "web")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(saved), saved))
	restored := newObject(namespace, "restored")
	restored.Annotations, restored.Spec = saved.Annotations, saved.Spec
	create(t, restored)
	if diff := cmp.Diff(harness.FullSpec(), readV1alpha2(t, namespace, "restored").Spec); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	damaged := newObject(namespace, "damaged")
	damaged.Annotations = map[string]string{wellknown.AnnotationV1alpha2: saved.Annotations[wellknown.AnnotationV1alpha2][:20]}
	if err := suite.admin.Create(t.Context(), damaged); err == nil || !strings.Contains(err.Error(), "set its fields at v1alpha2") {
		t.Errorf("a damaged annotation: %v", err)
	}
}

// TestWatchInBothVersions verifies that a watch at either version sees changes made at the other
// version, converted to its own version.
func TestWatchInBothVersions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	watching := must1(client.NewWithWatch(suite.config, client.Options{Scheme: scheme.New()}))(t)
	old := must1(watching.Watch(t.Context(), &v1alpha1.NginxOperatorList{}, client.InNamespace(namespace)))(t)
	defer old.Stop()
	current := must1(watching.Watch(t.Context(), &v1alpha2.NginxOperatorList{}, client.InNamespace(namespace)))(t)
	defer current.Stop()

	create(t, newFullObject(namespace))
	waitForWatched(t, old, func(o *v1alpha1.NginxOperator) bool { return *o.Spec.Port == 8000 && *o.Spec.Replicas == 2 })
	update(t, newFullObject(namespace), func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
	waitForWatched(t, old, func(o *v1alpha1.NginxOperator) bool {
		return *o.Spec.Port == 8000 && strings.Contains(o.Annotations[wellknown.AnnotationV1alpha2], `"paused":true`)
	})
	update(t, newObject(namespace, "web"), func(o *v1alpha1.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
	waitForWatched(t, current, func(o *v1alpha2.NginxOperator) bool {
		return *o.Spec.Replicas == 3 && o.Spec.Paused && len(o.Spec.Ports) == 2 && len(o.Annotations) == 0
	})
}

func waitForWatched[T client.Object](t *testing.T, watcher watch.Interface, wanted func(T) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case event, open := <-watcher.ResultChan():
			object, ok := event.Object.(T)
			if !open || !ok {
				t.Fatalf("the watch ended with %+v", event)
			}
			if wanted(object) {
				return
			}
		case <-deadline:
			t.Fatal("the watch did not show the change")
		}
	}
}
