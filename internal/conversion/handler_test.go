package conversion

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

func newHandler(t *testing.T) http.Handler {
	t.Helper()
	return NewHandler(func() {})
}

// review returns a ConversionReview of the objects to a version.
func review(t *testing.T, version string, objects ...any) []byte {
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

func answer(t *testing.T, handler http.Handler, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body)))
	if recorder.Code != http.StatusOK {
		t.Fatalf("status %d", recorder.Code)
	}
	return recorder
}

// fullObject returns a v1alpha2 object as a cluster stores it, with managed fields and a status.
func fullObject(i int) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", i), Namespace: "default", UID: "3f4b1f5c-6e3e-4a39-8c8e-0d9f1b1f6a10", Generation: 3,
			Labels:      map[string]string{"app.kubernetes.io/part-of": "shop"},
			Annotations: map[string]string{"example.com/unknown": "stays"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				owns("kubectl", metav1.ManagedFieldsOperationApply, "v1alpha2", `{"f:spec":{"f:config":{"f:inline":{}},`+
					`"f:replicas":{},"f:tls":{"k:{\"secretName\":\"cert\"}":{".":{},"f:secretName":{}}}}}`),
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
			ObservedGeneration: 3, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2,
			Selector: "app.kubernetes.io/instance=web", Image: "nginx:1.28.0", URL: "http://web.default.svc:80",
			RelatedObjects: []v1alpha2.RelatedObject{
				{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, {APIVersion: "v1", Kind: "Service", Name: "web"},
			},
			Conditions: []metav1.Condition{
				{Type: v1alpha2.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha2.ReasonAllReplicasReady},
				{Type: v1alpha2.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha2.ReasonAsExpected, Message: "As expected"},
			},
		},
	}
}

// TestHandlerConvertsLists verifies that a list is converted as a whole, even if one object has a
// damaged annotation and another has no spec.
func TestHandlerConvertsLists(t *testing.T) {
	full := fullObject(0)
	spoke := down(t, full)
	spoke.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NginxOperator"}
	damaged := map[string]any{
		"apiVersion": spoke.APIVersion, "kind": spoke.Kind,
		"metadata": map[string]any{"name": "damaged", "annotations": map[string]string{wellknown.AnnotationV1alpha2: "{"}},
	}
	bare := map[string]any{"apiVersion": spoke.APIVersion, "kind": spoke.Kind, "metadata": map[string]any{"name": "bare"}}
	handler := NewHandler(func() { t.Error("a failure was counted") })
	body := answer(t, handler, review(t, v1alpha2.GroupVersion.String(), spoke, damaged, bare)).Body.Bytes()
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
		{
			TypeMeta:   meta,
			ObjectMeta: metav1.ObjectMeta{Name: "damaged", Annotations: map[string]string{wellknown.AnnotationV1alpha2Unreadable: "{"}},
		},
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
			failures := 0
			if err := json.Unmarshal(answer(t, NewHandler(func() { failures++ }), body).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got.Response.Result.Status != metav1.StatusFailure || got.Response.Result.Message == "" || failures != 1 {
				t.Errorf("%d failures were counted: %+v", failures, got.Response)
			}
		})
	}
}

// TestHandlerReadsReviews verifies that invalid reviews are rejected, and that a review without
// objects succeeds.
func TestHandlerReadsReviews(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		code int
	}{
		"no JSON":                 {"hello", 400},
		"cut off":                 {`{"request":{"uid":"1"`, 400},
		"no request":              {"{}", 400},
		"no version before them":  {`{"request":{"objects":[],"desiredAPIVersion":"operator.example.com/v1alpha2"}}`, 400},
		"no objects":              {`{"request":{"desiredAPIVersion":"operator.example.com/v1alpha2","objects":[]}}`, 200},
		"null for objects":        {`{"request":{"desiredAPIVersion":"operator.example.com/v1alpha2","objects":null}}`, 200},
		"fields that nobody asks": {`{"x":[{}],"request":{"y":1,"desiredAPIVersion":"operator.example.com/v1alpha2","objects":[]}}`, 200},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			newHandler(t).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(test.body)))
			var got apiextensionsv1.ConversionReview
			if recorder.Code != test.code {
				t.Fatalf("answered %d: %s", recorder.Code, recorder.Body)
			}
			if test.code != http.StatusOK {
				return
			}
			if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil || got.Response.Result.Status != metav1.StatusSuccess {
				t.Errorf("%v: %s", err, recorder.Body)
			}
		})
	}
}

// expensiveSpecs returns specs that are expensive to decode. Each has the maximum size that the API
// server accepts for an object.
func expensiveSpecs() map[string]string {
	many := func(name, element string) string {
		return fmt.Sprintf(`{%q:[`, name) + strings.Repeat(element+",", (bounds.MaxBytes-1<<10)/(len(element)+1)) + element + "]}"
	}
	return map[string]string{
		"empty objects":       many("ports", "{}"),
		"objects with a port": many("ports", `{"port":1}`),
		"texts":               many("a", `""`),
		"numbers":             many("a", "0"),
		"deep":                `{"a":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}",
		"a long text":         `{"a":"` + strings.Repeat(`\u0000`, bounds.MaxBytes/6-1<<10) + `"}`,
	}
}

// TestHandlerBoundsEachValue verifies that a value longer than an object is not read into memory as
// a whole, because a request could use a multiple of its length. The answer has the error for any
// text before and after the value.
func TestHandlerBoundsEachValue(t *testing.T) {
	text := `"` + strings.Repeat("a", 60<<20) + `"`
	question := `"desiredAPIVersion":"operator.example.com/v1alpha2"`
	for name, body := range map[string]string{
		"an object":         `{"request":{` + question + `,"objects":[{"a":` + text + `}]}}`,
		"a field":           `{"request":{"a":` + text + `,` + question + `,"objects":[]}}`,
		"the review's UID":  `{"request":{"uid":` + text + `,` + question + `,"objects":[]}}`,
		"the name of one":   `{"request":{` + text + `:1,` + question + `,"objects":[]}}`,
		"blanks":            `{"request":{` + question + `,"objects":[` + strings.Repeat(" ", 60<<20) + `]}}`,
		"what is no object": `{"request":{` + question + `,"objects":[` + text + `]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var recorder *httptest.ResponseRecorder
			boundstest.Cheap(t, func() {
				recorder = httptest.NewRecorder()
				newHandler(t).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body)))
			})
			if !strings.Contains(recorder.Body.String(), "exceeds the limit of 3145728 bytes") {
				t.Errorf("%d: %.200s", recorder.Code, recorder.Body)
			}
		})
	}
}

// FuzzConvertRaw verifies that every object of the API can be converted, because one failing object
// would fail the list of a whole cluster. The conversion rejects only objects that the API server
// cannot have stored.
func FuzzConvertRaw(f *testing.F) {
	for _, spec := range []string{
		`{"port":"80"}`, `{"port":1.5}`, `[]`, `"x"`, `null`,
		`{"ports":[1]}`, `{"ports":{"a":1}}`, `{"ports":[{"port":"x"}]}`, `{"replicas":[{}]}`,
	} {
		for _, meta := range []string{
			`{}`, `[]`, `{"annotations":1}`, `{"annotations":{"operator.example.com/v1alpha2":1}}`,
			`{"annotations":{"operator.example.com/v1alpha2":"{\"ports\":[[]],\"resources\":{\"limits\":{\"cpu\":\"1e-1000000000\"}}}"}}`,
		} {
			f.Add(spec, meta, true)
			f.Add(spec, meta, false)
		}
	}
	for _, spec := range expensiveSpecs() {
		f.Add(spec, "{}", true)
		f.Add(spec, "{}", false)
		f.Add("{}", `{"annotations":{"operator.example.com/v1alpha2":`+strconv.Quote(spec)+"}}", true)
	}
	f.Fuzz(func(t *testing.T, spec, meta string, up bool) {
		from, to := v1alpha2.GroupVersion.String(), v1alpha1.GroupVersion.String()
		if up {
			from, to = to, from
		}
		raw := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"NginxOperator","metadata":%s,"spec":%s}`, from, meta, spec)
		var fields map[string]any
		if json.Unmarshal(raw, &fields) != nil || fields["apiVersion"] != from || fields["kind"] != "NginxOperator" {
			return
		}
		var err error
		boundstest.Cheap(t, func() {
			var converted *unstructured.Unstructured
			if converted, err = convertRaw(raw, to); err == nil {
				_ = output{bufio.NewWriter(io.Discard)}.json(converted.Object).Flush()
			}
		})
		if err != nil && bounds.Stored(raw) == nil {
			t.Error(err)
		}
	})
}
