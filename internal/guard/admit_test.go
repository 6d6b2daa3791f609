package guard

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// admitted returns a CRD as it is stored after a write of it went through admission.
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

// OLM writes the CRD of the next release, without a CA and with the Service of the manifests.
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

	// Another guard may know better.
	raw, err := json.Marshal(written)
	c.must(err)
	response := g.admit(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: written.Name, Object: runtime.RawExtension{Raw: raw},
		Options: runtime.RawExtension{Raw: []byte(`{"fieldManager":"nginx-operator-guard"}`)},
	}})
	if !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("the write of a guard: %+v", response)
	}

	// What is right already, and what is somebody else's, is left alone.
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
