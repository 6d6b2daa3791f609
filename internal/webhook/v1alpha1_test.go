package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/wellknown"
)

// v1alpha1Object returns an object. It has the annotation if kept is not nil.
func v1alpha1Object(t *testing.T, kept *string) []byte {
	t.Helper()
	object := &v1alpha1.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NginxOperator"))
	object.Spec.Port = ptr.To[int32](80)
	if kept != nil {
		object.Annotations = map[string]string{wellknown.AnnotationV1alpha2: *kept}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestV1alpha1KeepsTheAnnotation(t *testing.T) {
	text := ptr.To[string]
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
			response := keepAnnotation(t.Context(), request)
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
			if diff := cmp.Diff(test.want, annotationAfter(t, request.Object.Raw, response)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// annotationAfter returns the annotation of an object after the patch of a response, or nil.
func annotationAfter(t *testing.T, raw []byte, response admission.Response) *string {
	t.Helper()
	operations, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	object := &v1alpha1.NginxOperator{}
	if err := json.Unmarshal(patched, object); err != nil {
		t.Fatal(err)
	}
	if annotation, isSet := object.Annotations[wellknown.AnnotationV1alpha2]; isSet {
		return &annotation
	}
	return nil
}

func TestV1alpha1RefusesWhatIsNoObject(t *testing.T) {
	for _, raw := range [][]byte{[]byte("{"), v1alpha1Object(t, nil)} {
		request := admission.Request{}
		request.Operation, request.Object.Raw = admissionv1.Update, raw
		if response := keepAnnotation(t.Context(), request); response.Allowed || response.Result.Code != 400 {
			t.Errorf("%s: %+v", raw, response)
		}
	}
}
