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
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// admitted returns a written CRD with the changes of the guard's admission.
func (c *cluster) admitted(g *Guard, written *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	raw, err := json.Marshal(written)
	c.must(err)
	response := g.admit(c.t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: written.Name, Object: runtime.RawExtension{Raw: raw},
	}})
	if !response.Allowed {
		c.t.Fatalf("the write was refused: %v", response.Result)
	}
	if len(response.Patches) > 0 {
		operations, err := json.Marshal(response.Patches)
		c.must(err)
		patch, err := jsonpatch.DecodePatch(operations)
		c.must(err)
		raw, err = patch.Apply(raw)
		c.must(err)
	}
	stored := &apiextensionsv1.CustomResourceDefinition{}
	c.must(json.Unmarshal(raw, stored))
	return stored
}

// TestWriteOfTheCRDKeepsTheConversion verifies that the conversion stays if OLM writes the CRD of
// the next release, which has no CA and the Service of the manifests.
func TestWriteOfTheCRDKeepsTheConversion(t *testing.T) {
	c := newCluster(t)
	g := c.replica("")
	written := newCRD()
	written.Spec.Conversion = conversionTo(serviceConfig("another"), nil)

	if got := c.admitted(g, written); got.Spec.Conversion.Webhook.ClientConfig.Service.Name != "another" {
		t.Error("a guard that has no certificate yet changed the CRD")
	}
	c.reconcile(g)
	want := c.crd().Spec.Conversion
	for _, broken := range []*apiextensionsv1.CustomResourceConversion{
		written.Spec.Conversion, {Strategy: apiextensionsv1.NoneConverter}, nil,
	} {
		written.Spec.Conversion = broken
		got := c.admitted(g, written).Spec.Conversion
		if got == nil || got.Webhook == nil || !sameService(got.Webhook.ClientConfig.Service, want.Webhook.ClientConfig.Service) ||
			!trusts(got.Webhook.ClientConfig.CABundle, want.Webhook.ClientConfig.CABundle) {
			t.Errorf("%+v became %+v", broken, got)
		}
	}

	// The state of another guard can be newer.
	raw, err := json.Marshal(written)
	c.must(err)
	response := g.admit(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: written.Name, Object: runtime.RawExtension{Raw: raw},
		Options: runtime.RawExtension{Raw: []byte(`{"fieldManager":"shop-operator-guard"}`)},
	}})
	if !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("the write of a guard: %+v", response)
	}

	// Correct conversions and other CRDs must not be changed.
	written.Spec.Conversion = want
	raw, err = json.Marshal(written)
	c.must(err)
	others := newCRD()
	others.Name = "others.example.com"
	othersRaw, err := json.Marshal(others)
	c.must(err)
	for name, raw := range map[string][]byte{written.Name: raw, others.Name: othersRaw} {
		response := g.admit(t.Context(),
			admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Name: name, Object: runtime.RawExtension{Raw: raw}}})
		if !response.Allowed || len(response.Patches) != 0 {
			t.Errorf("%s: %+v", name, response)
		}
	}
}

// post posts a review of a write of the CRD to the guard's handler, as any Pod can, and returns the
// answer.
func post(t *testing.T, g *Guard, name, user, crd string) *admissionv1.AdmissionResponse {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`+
		`"request":{"uid":"1","name":%q,"userInfo":{"username":%q},"object":%s}}`,
		name, user, crd)
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
				response := post(t, g, newCRD().Name, "stranger", test.crd)
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

// TestForgedUsersOfTheCRDAreBounded verifies that a client that forges user names cannot fill the
// log.
func TestForgedUsersOfTheCRDAreBounded(t *testing.T) {
	var lines []string
	sink := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	c := newCluster(t)
	g := c.replica("")
	c.reconcile(g)
	user, err := json.Marshal(strings.Repeat("system:admin\nforged\u2028", 10_000))
	c.must(err)
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`+
		`"request":{"name":%q,"userInfo":{"username":%s},"object":%s}}`,
		newCRD().Name, user, conversionOf("null"))
	synctest.Test(t, func(t *testing.T) { // time does not advance
		handler := g.Admission()
		for range 100 {
			request := httptest.NewRequestWithContext(log.IntoContext(t.Context(), sink), http.MethodPost, "/crd", strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			handler.ServeHTTP(httptest.NewRecorder(), request)
		}
	})
	for _, line := range lines {
		if len(line) > 2<<10 || strings.ContainsAny(line, "\n\u2028") {
			t.Errorf("%d bytes: %.300q", len(line), line)
		}
	}
	if len(lines) != 20 {
		t.Errorf("%d lines", len(lines))
	}
}
