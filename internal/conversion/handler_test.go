package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/metadata"
)

func newHandler(t testing.TB) http.Handler {
	t.Helper()
	handler, err := NewHandler()
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// review is a request to convert the objects.
func review(t testing.TB, version string, objects ...any) []byte {
	t.Helper()
	request := &apiextensionsv1.ConversionRequest{UID: "1", DesiredAPIVersion: version}
	for _, object := range objects {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: raw})
	}
	body, err := json.Marshal(&apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func answer(t testing.TB, handler http.Handler, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body)))
	if recorder.Code != http.StatusOK {
		t.Fatalf("status %d", recorder.Code)
	}
	return recorder
}

// fullObject is a v1alpha2 object as it is stored in a cluster, with managed fields and a status.
func fullObject(i int) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", i), Namespace: "default", UID: "3f4b1f5c-6e3e-4a39-8c8e-0d9f1b1f6a10", Generation: 3,
			Labels:      map[string]string{"app.kubernetes.io/part-of": "shop"},
			Annotations: map[string]string{"example.com/unknown": "stays"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kubectl", Operation: "Apply", APIVersion: v1alpha2.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:config":{"f:inline":{}},"f:replicas":{},"f:tls":{"k:{\"secretName\":\"cert\"}":{".":{},"f:secretName":{}}}}}`)}},
				{Manager: "nginx-operator", Operation: "Update", Subresource: "status", APIVersion: v1alpha2.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:conditions":{},"f:image":{},"f:observedGeneration":{},"f:readyReplicas":{},"f:relatedObjects":{},"f:replicas":{},"f:selector":{},"f:url":{}}}`)}},
			},
		},
		Spec: v1alpha2.NginxOperatorSpec{
			Replicas:  ptr.To[int32](2),
			Ports:     []v1alpha2.Port{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}},
			Config:    &v1alpha2.Config{Inline: "server {\n  listen 80;\n  location / { return 200 ok; }\n}\n"},
			TLS:       []v1alpha2.TLS{{SecretName: "cert"}},
			Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		},
		Status: v1alpha2.NginxOperatorStatus{
			ObservedGeneration: 3, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, Selector: "app.kubernetes.io/instance=web", Image: "nginx:1.28.0",
			URL:            "http://web.default.svc:80",
			RelatedObjects: []v1alpha2.RelatedObject{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, {APIVersion: "v1", Kind: "Service", Name: "web"}},
			Conditions: []metav1.Condition{
				{Type: v1alpha2.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha2.ReasonAllReplicasReady, Message: "2 of 2 replicas serve"},
				{Type: v1alpha2.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha2.ReasonRolloutComplete, Message: "The rollout is complete"},
				{Type: v1alpha2.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha2.ReasonAsExpected, Message: "As expected"},
			},
		},
	}
}

// A list in which one object's annotation is damaged, and one has no spec at all, converts as a whole.
func TestHandlerConvertsLists(t *testing.T) {
	full := fullObject(0)
	spoke := down(t, full)
	spoke.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NginxOperator"}
	damaged := map[string]any{
		"apiVersion": spoke.APIVersion, "kind": spoke.Kind,
		"metadata": map[string]any{"name": "damaged", "annotations": map[string]string{metadata.AnnotationV1alpha2: "{"}},
	}
	bare := map[string]any{"apiVersion": spoke.APIVersion, "kind": spoke.Kind, "metadata": map[string]any{"name": "bare"}}
	body := answer(t, newHandler(t), review(t, v1alpha2.GroupVersion.String(), spoke, damaged, bare)).Body.Bytes()
	var got struct {
		Response struct {
			UID              string
			Result           metav1.Status
			ConvertedObjects []v1alpha2.NginxOperator
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Response.Result.Status != metav1.StatusSuccess || got.Response.UID != "1" {
		t.Fatalf("%s", body)
	}
	meta := metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator"}
	want := []v1alpha2.NginxOperator{
		*full,
		{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: "damaged", Annotations: map[string]string{metadata.AnnotationV1alpha2Unreadable: "{"}}},
		{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: "bare"}},
	}
	if diff := cmp.Diff(want, got.Response.ConvertedObjects); diff != "" {
		t.Error(diff)
	}
}

func TestHandlerRefusesWhatIsNotOurs(t *testing.T) {
	object := func(apiVersion, kind string) any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a"}}
	}
	ours, v1, v2 := v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.String(), v1alpha2.GroupVersion.String()
	for name, body := range map[string][]byte{
		"another kind":           review(t, v2, object(v1, "Other")),
		"another version":        review(t, v2, object(ours+"/v1", "NginxOperator")),
		"a version to come":      review(t, ours+"/v1", object(v1, "NginxOperator")),
		"the same version":       review(t, v1, object(v1, "NginxOperator")),
		"one bad among good":     review(t, v2, object(v1, "NginxOperator"), object(v1, "Other")),
		"an object without kind": review(t, v2, object(v1, "")),
	} {
		t.Run(name, func(t *testing.T) {
			var got apiextensionsv1.ConversionReview
			if err := json.Unmarshal(answer(t, newHandler(t), body).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got.Response.Result.Status != metav1.StatusFailure || got.Response.Result.Message == "" || len(got.Response.ConvertedObjects) > 0 {
				t.Errorf("%+v", got.Response)
			}
		})
	}
}

// BenchmarkHandler converts lists of 1, 100 and 10,000 objects as the API server asks for it, decoding and encoding
// included.
func BenchmarkHandler(b *testing.B) {
	handler := newHandler(b)
	for _, size := range []int{1, 100, 10_000} {
		var spokes, hubs []any
		for i := range size {
			hub := fullObject(i)
			spoke := down(b, hub)
			spoke.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NginxOperator"}
			spokes, hubs = append(spokes, spoke), append(hubs, hub)
		}
		for version, objects := range map[string][]any{v1alpha2.GroupVersion.String(): spokes, v1alpha1.GroupVersion.String(): hubs} {
			body := review(b, version, objects...)
			b.Run(fmt.Sprintf("%d objects to %s", size, strings.TrimPrefix(version, "operator.example.com/")), func(b *testing.B) {
				for b.Loop() {
					answer(b, handler, body)
				}
				b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "conversions/s")
			})
		}
	}
}
