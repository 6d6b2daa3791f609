package webhook

import (
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

func TestPatchesAreMinimal(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   []jsonpatch.Operation
	}{
		"nothing to do": {object: `"spec":{"resources":{"requests":{"cpu":"0.5"}},"paused":false}`},
		"a port": {
			object: `"spec":{"resources":{"requests":{"cpu":"0.5"}},"tls":[{"secretName":"a"}]}`,
			want:   []jsonpatch.Operation{{Operation: "add", Path: "/spec/tls/0/port", Value: float64(8443)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			response := minimalPatch{Defaulter{}}.Handle(t.Context(), requestFor("v1alpha2", test.object, ""))
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			if diff := cmp.Diff(test.want, response.Patches); diff != "" {
				t.Error(diff)
			}
		})
	}
	if response := (minimalPatch{Defaulter{}}).Handle(t.Context(), requestFor("v1alpha2", `"spec":[]`, "")); response.Allowed || response.Result.Code != 400 {
		t.Errorf("%+v", response)
	}
}

// What a client of v1alpha1 writes is validated together with what v1alpha1 cannot say.
func TestValidationOfV1alpha1(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handler := fromV1alpha1{admission.WithValidator(scheme, Validator{}).Handler}
	kept := func(port, inline string) string {
		return `"metadata":{"name":"web","annotations":{"operator.example.com/v1alpha2":"{\"config\":{\"inline\":\"` + inline + `\"}}"}},"spec":{"port":` + port + `}`
	}
	for name, test := range map[string]struct{ version, object, old, want string }{
		"nothing kept":               {version: "v1alpha1", object: `"spec":{"port":80}`},
		"kept and right":             {version: "v1alpha1", object: kept("80", "server { listen 80; }")},
		"port that kept text lacks":  {version: "v1alpha1", object: kept("81", "server { listen 80; }"), old: kept("80", "server { listen 80; }"), want: "spec.port 81: no server listens on it"},
		"kept text that is wrong":    {version: "v1alpha1", object: kept("80", "server { listen 80; daemon on; }"), want: "daemon: cannot be set here"},
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
