package guard

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// PathCRD is where the webhook server answers for the CRD of the API.
const PathCRD = "/mutate-apiextensions-k8s-io-v1-customresourcedefinition"

// The restore of a CRD comes after the write that broke it, and the API server uses what is there in between: a
// tenth of a second on an idle machine, a second on a busy one, in which objects cannot be read at the version that has to
// be converted. So the write itself is restored. Who does that is the release that runs, for the release that comes. The
// selector narrows it to our own CRD; where it cannot be asked, the guard restores as before.
//
// +kubebuilder:webhook:path=/mutate-apiextensions-k8s-io-v1-customresourcedefinition,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=2,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=create;update,versions=v1,name=conversion.nginxoperators.operator.example.com,admissionReviewVersions=v1,serviceName=webhook-service,serviceNamespace=system,patch=`{"objectSelector":{"matchLabels":{"app.kubernetes.io/name":"nginx-operator"}}}`

// Admission returns the webhook by which a write of the CRD keeps, or gets, the conversion that works.
func (g *Guard) Admission() *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(g.admit)}
}

func (g *Guard) admit(ctx context.Context, request admission.Request) admission.Response {
	bundle := g.trusted.Load()
	if request.Name != g.options.CRD || bundle == nil || byGuard(request) {
		return admission.Allowed("")
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(request.Object.Raw, crd); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	want := restoreConversion(crd, g.options.Endpoint, g.options.ConversionPath, *bundle, time.Now())
	if want == nil {
		return admission.Allowed("")
	}
	log.FromContext(ctx).Info("A write of the CRD keeps the conversion that works", "user", request.UserInfo.Username)
	// Nothing else is touched, also what a later version of Kubernetes has in a CRD.
	return admission.Patched("the conversion of a running operator", jsonpatch.NewOperation("add", "/spec/conversion", want))
}

// byGuard reports whether a guard writes: it knows as well, and maybe better.
func byGuard(request admission.Request) bool {
	options := metav1.UpdateOptions{}
	return json.Unmarshal(request.Options.Raw, &options) == nil && options.FieldManager == fieldManager
}
