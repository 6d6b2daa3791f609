package webhook

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func requestFor(version, object, old string) admission.Request {
	request := admission.Request{}
	request.Operation, request.Name = admissionv1.Create, "web"
	request.Kind = metav1.GroupVersionKind{Group: v1alpha2.GroupVersion.Group, Version: version, Kind: "NginxOperator"}
	request.RequestKind = request.Kind.DeepCopy()
	head := `{"apiVersion":"` + v1alpha2.GroupVersion.Group + "/" + version + `","kind":"NginxOperator",`
	request.Object = runtime.RawExtension{Raw: []byte(head + object + "}")}
	if old != "" {
		request.Operation = admissionv1.Update
		request.OldObject = runtime.RawExtension{Raw: []byte(head + old + "}")}
	}
	return request
}

// newHandlers returns the handlers that Setup registers.
func newHandlers(t testing.TB) map[string]admission.Handler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return handlers(scheme, Validator{})
}

// TestPatchesAreMinimal verifies that a patch has only the default port that an update would remove.
func TestPatchesAreMinimal(t *testing.T) {
	const stored = `"spec":{"resources":{"requests":{"cpu":"0.5"}},"paused":false,"tls":[{"secretName":"a"}]}`
	for object, want := range map[string][]jsonpatch.Operation{
		stored: nil,
		strings.Replace(stored, `"paused":false`, `"config":{"inline":"a;"}`, 1): {
			{Operation: "add", Path: "/spec/tls/0/port", Value: float64(v1alpha2.DefaultTLSPort)},
		},
	} {
		response := setDefaults(t.Context(), requestFor("v1alpha2", object, stored))
		if diff := cmp.Diff(want, response.Patches); diff != "" || !response.Allowed {
			t.Errorf("%s: %v\n%s", object, response.Result, diff)
		}
	}
	response := setDefaults(t.Context(), requestFor("v1alpha2", `"spec":[]`, ""))
	if response.Allowed || response.Result.Code != 400 {
		t.Errorf("%+v", response)
	}
}

// TestValidationOfV1alpha1 verifies that a write at v1alpha1 is validated together with the stored
// fields that v1alpha1 cannot express.
func TestValidationOfV1alpha1(t *testing.T) {
	handler := newHandlers(t)[PathValidate]
	kept := func(port, inline string) string {
		return `"metadata":{"name":"web","annotations":{"operator.example.com/v1alpha2":"{\"config\":{\"inline\":\"` + inline + `\"}}"}},` +
			`"spec":{"port":` + port + `}`
	}
	for name, test := range map[string]struct{ version, object, old, want string }{
		"nothing kept":   {version: "v1alpha1", object: `"spec":{"port":80}`},
		"kept and right": {version: "v1alpha1", object: kept("80", "server { listen 80; }")},
		"port that kept text lacks": {
			version: "v1alpha1",
			object:  kept("81", "server { listen 80; }"),
			old:     kept("80", "server { listen 80; }"),
			want:    "line 1: listen 80, but spec.port is 81. Write `listen 81;`, or change spec.port to 80",
		},
		"kept text that is wrong": {
			version: "v1alpha1", object: kept("80", "server { listen 80; daemon on; }"), want: `"daemon" directive is not allowed here`,
		},
		"wrong as it was":            {version: "v1alpha1", object: kept("80", "daemon on;"), old: kept("80", "daemon on;")},
		"v1alpha2":                   {version: "v1alpha2", object: `"spec":{"image":"A"}`, want: "spec.image"},
		"v1alpha1 that is no object": {version: "v1alpha1", object: `"spec":{}}`, want: "failed to read the object"},
	} {
		t.Run(name, func(t *testing.T) {
			response := handler.Handle(t.Context(), requestFor(test.version, test.object, test.old))
			if response.Allowed != (test.want == "") || !response.Allowed && !strings.Contains(response.Result.Message, test.want) {
				t.Errorf("want %q, got %+v", test.want, response.Result)
			}
		})
	}
}

// TestBounded verifies the bounds of requests that do not come from the API server, and of objects
// that a release before 0.3.1 stored. The schema validates neither.
func TestBounded(t *testing.T) {
	var handled []admission.Request
	handler := bounded(admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		handled = append(handled, request)
		return admission.Allowed("")
	}))
	const valid = `"metadata":{"name":"web"},"spec":{"resources":{"limits":{"cpu":"0.5"}}}`
	endless := strings.ReplaceAll(valid, "0.5", "1e-1000000000")
	for name, test := range map[string]struct {
		object, old, refusal string
		code                 int32
	}{
		"an endless quantity": {
			object: endless, old: valid, code: 422, refusal: "spec.resources.limits[cpu]: Invalid value: must be a quantity of at most",
		},
		"one given twice": {
			object: `"spec":{"resources":{"limits":{"cpu":"1e-1000000000"}},"resources":{}}`, code: 400, refusal: `duplicate field "spec.resources"`,
		},
		"too many values": {
			object: `"spec":{"tls":[` + strings.Repeat("{},", 100_000) + "{}]}", code: 400, refusal: "exceeds the limit of 16384 values",
		},
		"a wrong type": {object: `"spec":{"tls":1}`, code: 400, refusal: "failed to read the object"},
	} {
		t.Run(name, func(t *testing.T) {
			response := handler.Handle(t.Context(), requestFor("v1alpha2", test.object, test.old))
			if response.Allowed || response.Result.Code != test.code || !strings.Contains(response.Result.Message, test.refusal) {
				t.Errorf("allowed %t, %+v", response.Allowed, response.Result)
			}
		})
	}
	if len(handled) > 0 {
		t.Fatalf("handed on: %v", handled)
	}
	for _, old := range []string{endless, `"spec":{"replicas":4294967296}`} {
		if response := handler.Handle(t.Context(), requestFor("v1alpha2", valid, old)); !response.Allowed {
			t.Errorf("the restore of what is stored is refused: %+v", response.Result)
		}
	}
	for _, request := range handled {
		if request.Operation != admissionv1.Create || request.OldObject.Raw != nil {
			t.Errorf("handed on as %s of %s", request.Operation, request.OldObject.Raw)
		}
	}
}
