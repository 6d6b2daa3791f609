package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/wellknown"
)

// v1alpha1Object returns an object. It has the annotation if kept is not nil.
func v1alpha1Object(t *testing.T, kept *string) []byte {
	t.Helper()
	annotations := map[string]any{}
	if kept != nil {
		annotations[wellknown.AnnotationV1alpha2] = *kept
	}
	meta := map[string]any{"name": "web", "namespace": "default"}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "NginxOperator", "metadata": meta, "spec": map[string]any{"port": 80},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestV1alpha1KeepsTheAnnotation(t *testing.T) {
	text := func(s string) *string { return &s }
	tls, paused, damaged := text(`{"tls":[{"secretName":"a"}]}`), text(`{"paused":true}`), text(`{"tls"`)
	for name, test := range map[string]struct {
		operation           admissionv1.Operation
		stored, given, want *string
		warning, denied     bool
	}{
		"created without":            {operation: admissionv1.Create},
		"created with (a backup)":    {operation: admissionv1.Create, given: tls, want: tls},
		"created with a damaged one": {operation: admissionv1.Create, given: damaged, denied: true},
		"created with a level of the log that ends the directive": {
			operation: admissionv1.Create, given: text(`{"nginx":{"errorLogLevel":"notice; load_module /x.so; env A"}}`), denied: true,
		},
		"created with a number out of its bounds": {
			operation: admissionv1.Create, given: text(`{"nginx":{"workerConnections":70000}}`), denied: true,
		},
		"created with a path that a rule refuses": {
			operation: admissionv1.Create, denied: true,
			given: text(`{"expose":{"ingress":{"hosts":[{"host":"a.example.com","paths":["/a{}"]}]}}}`),
		},
		"stored damaged, restored with an enum that has no such value": {
			operation: admissionv1.Update, stored: damaged, given: text(`{"service":{"type":"Other"}}`), denied: true,
		},
		"updated without, none stored":      {operation: admissionv1.Update},
		"updated as stored":                 {operation: admissionv1.Update, stored: tls, given: tls, want: tls},
		"updated without (kubectl replace)": {operation: admissionv1.Update, stored: tls, want: tls},
		"changed":                           {operation: admissionv1.Update, stored: tls, given: paused, want: tls, warning: true},
		"emptied":                           {operation: admissionv1.Update, stored: tls, given: text(""), want: tls, warning: true},
		"damaged":                           {operation: admissionv1.Update, stored: tls, given: damaged, want: tls, warning: true},
		"written in another way": {
			operation: admissionv1.Update, stored: tls, given: text(`{"tls": [{"secretName": "a"}]}`), want: tls,
		},
		"added":                                 {operation: admissionv1.Update, given: tls, warning: true},
		"stored damaged, left":                  {operation: admissionv1.Update, stored: damaged, given: damaged, want: damaged},
		"stored damaged, updated without":       {operation: admissionv1.Update, stored: damaged, want: damaged},
		"stored damaged, restored":              {operation: admissionv1.Update, stored: damaged, given: tls, want: tls},
		"stored damaged, damaged in other ways": {operation: admissionv1.Update, stored: damaged, given: text("["), denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{}
			request.Operation, request.Name = test.operation, "web"
			request.Object = runtime.RawExtension{Raw: v1alpha1Object(t, test.given)}
			if test.operation == admissionv1.Update {
				request.OldObject = runtime.RawExtension{Raw: v1alpha1Object(t, test.stored)}
			}
			response := V1alpha1{}.Handle(t.Context(), request)
			if response.Allowed == test.denied {
				t.Fatalf("allowed %t: %+v", response.Allowed, response.Result)
			}
			if test.denied {
				return
			}
			told := slices.ContainsFunc(response.Warnings, func(s string) bool { return strings.Contains(s, "v1alpha2.operator.example.com web") })
			if told != test.warning {
				t.Errorf("warnings %q, want one: %t", response.Warnings, test.warning)
			}
			got := patched(t, request.Object.Raw, response)
			if want := v1alpha1Object(t, test.want); !jsonpatch.Equal(withoutEmptyAnnotations(t, got), want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func patched(t *testing.T, raw []byte, response admission.Response) []byte {
	t.Helper()
	operations, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutEmptyAnnotations removes an empty map of annotations. The API server does not distinguish
// it from no annotations.
func withoutEmptyAnnotations(t *testing.T, raw []byte) []byte {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	meta := object["metadata"].(map[string]any)
	if annotations, found := meta["annotations"].(map[string]any); found && len(annotations) == 0 {
		delete(meta, "annotations")
	}
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestV1alpha1RefusesWhatIsNoObject(t *testing.T) {
	request := admission.Request{}
	request.Operation = admissionv1.Update
	request.Object = runtime.RawExtension{Raw: []byte("{")}
	if response := (V1alpha1{}).Handle(t.Context(), request); response.Allowed || response.Result.Code != 400 {
		t.Errorf("%+v", response)
	}
	request.Object.Raw = v1alpha1Object(t, nil)
	if response := (V1alpha1{}).Handle(t.Context(), request); response.Allowed || response.Result.Code != 400 {
		t.Errorf("%+v", response)
	}
}
