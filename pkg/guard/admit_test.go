package guard

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// admitted returns the patch of the guard's admission for a write of a CRD by a field manager.
func (c *cluster) admitted(g *Guard, crd *apiextensionsv1.CustomResourceDefinition, manager string) []jsonpatch.Operation {
	c.t.Helper()
	raw, err := json.Marshal(crd)
	c.must(err)
	response := g.admit(c.t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: crd.Name, Object: runtime.RawExtension{Raw: raw},
		Options: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"fieldManager":%q}`, manager)},
	}})
	if !response.Allowed {
		c.t.Fatalf("the write was refused: %v", response.Result)
	}
	return response.Patches
}

// TestWriteOfTheCRDKeepsTheConversion verifies that the conversion stays if OLM writes the CRD of
// the next release, which has no CA and the Service of the manifests.
func TestWriteOfTheCRDKeepsTheConversion(t *testing.T) {
	c := newCluster(t)
	g := c.replica("")
	written := newCRD()
	written.Spec.Conversion = conversionTo(serviceConfig("another"), nil)

	if patch := c.admitted(g, written, "olm"); len(patch) > 0 {
		t.Error("a guard that has no certificate yet changed the CRD")
	}
	c.reconcile(g)
	want := c.crd().Spec.Conversion
	for _, broken := range []*apiextensionsv1.CustomResourceConversion{
		written.Spec.Conversion, {Strategy: apiextensionsv1.NoneConverter}, nil,
	} {
		written.Spec.Conversion = broken
		patch := c.admitted(g, written, "olm")
		if len(patch) != 1 || patch[0].Path != "/spec/conversion" || cmp.Diff(want, patch[0].Value) != "" {
			t.Errorf("%+v became %+v", broken, patch)
		}
	}

	// The state of another guard can be newer.
	if patch := c.admitted(g, written, "shop-operator-guard"); len(patch) > 0 {
		t.Errorf("the write of a guard: %+v", patch)
	}
	correct, other := c.crd(), newCRD()
	other.Name = "others.example.com"
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{correct, other} {
		if patch := c.admitted(g, crd, "olm"); len(patch) > 0 {
			t.Errorf("%s: %+v", crd.Name, patch)
		}
	}
}

// post posts a review of a write of the CRD to the guard's handler, as any Pod can, and returns the
// answer.
func post(t *testing.T, g *Guard, crd string) *admissionv1.AdmissionResponse {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`+
		`"request":{"uid":"1","name":%q,"object":%s}}`, crdName, crd)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/crd", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	g.Admission().ServeHTTP(recorder, request)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("answered %d: %.300s", recorder.Code, recorder.Body)
	}
	return review.Response
}

// TestEveryWriteOfTheCRDIsAllowed verifies that a write is allowed at little cost if the CRD is
// expensive to decode or to check, or has a form that this release cannot read. Any Pod can post
// the former, and the next release can write the latter.
func TestEveryWriteOfTheCRDIsAllowed(t *testing.T) {
	c := newCluster(t)
	g := c.replica("")
	c.reconcile(g)
	many := func(element string, bytes int) string {
		return strings.Repeat(element+",", bytes/(len(element)+1)) + element
	}
	schema := `{"spec":{"versions":[{"name":"v1alpha2","schema":{"openAPIV3Schema":{"allOf":[%s]}}}]}}`
	bundle := base64.StdEncoding.EncodeToString(bytes.Repeat(newCA(t, time.Hour), 1_000))
	for name, test := range map[string]struct {
		crd     string
		patched bool
	}{
		"1.5 million schemas":         {crd: fmt.Sprintf(schema, many("{}", 4_500_000))},
		"as many schemas as are read": {crd: fmt.Sprintf(schema, many("{}", 390_000)), patched: true},
		"many versions":               {crd: `{"spec":{"versions":[` + many("{}", 390_000) + `,{"name":"v1alpha2"}]}}`, patched: true},
		"many review versions": {
			crd: `{"spec":{"conversion":{"webhook":{"conversionReviewVersions":[` + many(`""`, 390_000) + `]}}}}`,
		},
		"a long CA bundle": {crd: conversionOf(`{"webhook":{"clientConfig":{"caBundle":"` + bundle + `"}}}`)},
		"a deep schema": {
			crd: fmt.Sprintf(schema, strings.Repeat(`{"not":`, 9_000)+"{}"+strings.Repeat("}", 9_000)), patched: true,
		},
		"no object":                     {crd: `"text"`},
		"null":                          {crd: `null`},
		"versions of another form":      {crd: `{"spec":{"versions":{"v1alpha2":{}}}}`},
		"a conversion of another form":  {crd: conversionOf(`["CEL"]`)},
		"a CA bundle that is no base64": {crd: conversionOf(`{"webhook":{"clientConfig":{"caBundle":"-"}}}`)},
		"fields that this release has not": {
			crd: `{"later":[1],"spec":{"later":{"a":1},"versions":[{"name":"v1alpha2","later":{}}]}}`, patched: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			boundstest.CheapRequest(t, func() {
				response := post(t, g, test.crd)
				if !response.Allowed || (len(response.Patch) > 0) != test.patched {
					t.Errorf("allowed %t, patch %.300s", response.Allowed, response.Patch)
				}
			})
		})
	}
	if _, err := readConversion([]byte(`{"spec":`), "v1alpha2"); err == nil {
		t.Error("no error of what is no JSON")
	}
}

// conversionOf returns a CRD with a conversion, as JSON.
func conversionOf(conversion string) string {
	return `{"spec":{"versions":[{"name":"v1alpha2"}],"conversion":` + conversion + `}}`
}
