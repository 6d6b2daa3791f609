package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness/apiserver"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// modelOperation is one request of a sequence.
type modelOperation struct {
	name string
	do   func(ctx context.Context, api client.Client, object client.Object) error
}

func toCreate() modelOperation {
	return modelOperation{"create", func(ctx context.Context, api client.Client, object client.Object) error {
		fresh := object.DeepCopyObject().(client.Object)
		fresh.SetResourceVersion("")
		fresh.SetUID("")
		return api.Create(ctx, fresh, client.FieldOwner("first"))
	}}
}

// toPatch sends a patch. It replaces UID and VERSION in the text with the object's values.
func toPatch(name string, kind types.PatchType, text string, options ...client.PatchOption) modelOperation {
	return modelOperation{name, func(ctx context.Context, api client.Client, object client.Object) error {
		live := object.DeepCopyObject().(client.Object)
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return err
		}
		text := strings.NewReplacer("UID", string(live.GetUID()), "VERSION", live.GetResourceVersion()).Replace(text)
		options := append(options, client.FieldOwner("second"))
		return api.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(kind, []byte(text)), options...)
	}}
}

// toUpdate reads an object, changes it, and updates it.
func toUpdate(name string, change func(client.Object)) modelOperation {
	return modelOperation{name, func(ctx context.Context, api client.Client, object client.Object) error {
		live := object.DeepCopyObject().(client.Object)
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return err
		}
		change(live)
		return api.Update(ctx, live, client.FieldOwner("third"))
	}}
}

func toUpdateStatus(name string, change func(client.Object)) modelOperation {
	return modelOperation{name, func(ctx context.Context, api client.Client, object client.Object) error {
		live := object.DeepCopyObject().(client.Object)
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return err
		}
		change(live)
		return api.Status().Update(ctx, live, client.FieldOwner("fourth"))
	}}
}

func toDelete(name string, options ...client.DeleteOption) modelOperation {
	return modelOperation{name, func(ctx context.Context, api client.Client, object client.Object) error {
		return api.Delete(ctx, object.DeepCopyObject().(client.Object), options...)
	}}
}

// commonOperations returns the requests that TestStorageModel sends for each kind.
func commonOperations() []modelOperation {
	label := func(object client.Object) { object.SetLabels(map[string]string{"a": "b"}) }
	annotate := func(object client.Object) { object.SetAnnotations(map[string]string{"a": "b"}) }
	otherUID := func(object client.Object) { object.SetUID("other") }
	oldVersion := func(object client.Object) { object.SetResourceVersion("1") }
	labels := `{"metadata":{"labels":{"x":"y"}}}`
	return []modelOperation{
		toCreate(), toCreate(),
		toPatch("label by a merge patch", types.MergePatchType, labels),
		toPatch("label as it is", types.MergePatchType, labels),
		toPatch("patch with UID and version", types.MergePatchType,
			`{"metadata":{"uid":"UID","resourceVersion":"VERSION","annotations":{"p":"q"}}}`),
		toPatch("patch with another UID", types.MergePatchType, `{"metadata":{"uid":"other","annotations":{"p":"r"}}}`),
		toPatch("patch with an old version", types.MergePatchType, `{"metadata":{"resourceVersion":"1","annotations":{"p":"r"}}}`),
		toPatch("dry run of a patch", types.MergePatchType,
			`{"metadata":{"resourceVersion":"VERSION","annotations":{"p":"r"}}}`, client.DryRunAll),
		toPatch("dry run with an old version", types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`, client.DryRunAll),
		toUpdate("update labels", label), toUpdate("update annotations", annotate), toUpdate("update nothing", func(client.Object) {}),
		toUpdate("update with another UID", otherUID), toUpdate("update with an old version", oldVersion),
		toDelete("delete with another UID", client.Preconditions{UID: ptr.To[types.UID]("other")}),
		toDelete("delete"), toDelete("delete again"), toCreate(),
	}
}

// TestStorageModel sends the same sequences of requests to the simulation's storage and to a real
// API server. Both must return the same status code and store the same generation. Both must set a
// new UID or resource version at the same requests.
func TestStorageModel(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	store := storage.New()
	model := must1(client.New(storage.Config(storage.Direct(store)),
		client.Options{Scheme: scheme.New(), Mapper: storage.Mapper()}))(t)
	must(t, model.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	for name, sequence := range modelSequences() {
		t.Run(name, func(t *testing.T) {
			if name == "HorizontalPodAutoscaler" {
				apiserver.Needs(t, "1.37.0", "the generation of a HorizontalPodAutoscaler")
			}
			sequence.object.SetNamespace(namespace)
			want := outcomes(t, suite.admin, sequence)
			got := outcomes(t, model, sequence)
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%s:\nmodel      %s\nAPI server %s", sequence.operations[i].name, got[i], want[i])
				}
			}
		})
	}
}

// modelSequence is a sequence of requests for one object.
type modelSequence struct {
	object     client.Object
	operations []modelOperation
}

func modelSequences() map[string]modelSequence {
	named := metav1.ObjectMeta{Name: "model"}
	selector := map[string]string{"app": "model"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	with := func(more ...modelOperation) []modelOperation { return append(commonOperations(), more...) }
	strategic := func(name, text string) modelOperation { return toPatch(name, types.StrategicMergePatchType, text) }
	return map[string]modelSequence{
		"ConfigMap": {&corev1.ConfigMap{ObjectMeta: named}, with(
			toPatch("data", types.MergePatchType, `{"data":{"a":"1"}}`),
			toPatch("test that fails", types.JSONPatchType, `[{"op":"test","path":"/data/a","value":"2"}]`),
			toPatch("make immutable", types.MergePatchType, `{"immutable":true}`),
			toPatch("change what is immutable", types.MergePatchType, `{"data":{"a":"2"}}`),
		)},
		"Deployment": {&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector}, Template: template,
		}}, with(
			strategic("replicas", `{"spec":{"replicas":2}}`),
			strategic("another image", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"j"}]}}}}`),
			strategic("another selector", `{"spec":{"selector":{"matchLabels":{"b":"c"}}}}`),
			toUpdateStatus("status", func(o client.Object) { o.(*appsv1.Deployment).Status.ObservedGeneration = 2 }),
		)},
		"Service": {&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, Selector: selector,
		}}, with(strategic("node port", `{"spec":{"type":"NodePort"}}`), strategic("no node port", `{"spec":{"type":"ClusterIP"}}`))},
		"NetworkPolicy": {&networkingv1.NetworkPolicy{ObjectMeta: named}, with(
			strategic("policy types", `{"spec":{"policyTypes":["Ingress","Egress"]}}`))},
		"Ingress": {&networkingv1.Ingress{ObjectMeta: named, Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}}}, with(strategic("class", `{"spec":{"ingressClassName":"x"}}`))},
		"PodDisruptionBudget": {&policyv1.PodDisruptionBudget{ObjectMeta: named, Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: selector},
		}}, with(strategic("maxUnavailable", `{"spec":{"maxUnavailable":2}}`))},
		"HorizontalPodAutoscaler": {&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: named, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
			},
		}, with(strategic("maxReplicas", `{"spec":{"maxReplicas":4}}`))},
		"ControllerRevision": {&appsv1.ControllerRevision{
			ObjectMeta: named, Revision: 1, Data: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)},
		}, with(
			strategic("revision", `{"revision":2}`), toPatch("other data", types.MergePatchType, `{"data":{"a":"c"}}`),
		)},
	}
}

// outcomes runs a sequence and describes the result of each request.
func outcomes(t *testing.T, api client.Client, of modelSequence) []string {
	t.Helper()
	var out []string
	var uid types.UID
	var version string
	for _, step := range of.operations {
		err := step.do(t.Context(), api, of.object)
		code := "200"
		if status := apierrors.APIStatus(nil); err != nil {
			code = err.Error()
			if known, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // the client returns it as it is
				status = known
				code = fmt.Sprint(status.Status().Code)
			}
		}
		live := of.object.DeepCopyObject().(client.Object)
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(of.object), live); err != nil {
			if !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			out = append(out, code+" gone")
			continue
		}
		out = append(out, fmt.Sprintf("%s generation %d, new UID %t, new version %t",
			code, live.GetGeneration(), live.GetUID() != uid, live.GetResourceVersion() != version))
		uid, version = live.GetUID(), live.GetResourceVersion()
	}
	return out
}
