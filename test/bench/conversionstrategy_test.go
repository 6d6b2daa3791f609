//go:build bench

package bench

import (
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/wellknown"
)

// operatorCRD returns the CRD without content.
func operatorCRD() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName(wellknown.CRDName)
	return crd
}

// dropConversion removes the conversion webhook from the CRD, while the operator is stopped. The
// API server converts each object that is written to the other served version, for the watch cache
// of that version. If no webhook answers, the watch cache starts again and again, which takes about
// a second of the processor in each measurement. That would flatter the operator. When the operator
// starts, it restores the webhook.
func (e *environment) dropConversion(t *testing.T) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	must(t, e.admin.Patch(t.Context(), operatorCRD(), patch))
}

// waitForConversion waits until the CRD has a conversion strategy.
func (e *environment) waitForConversion(t *testing.T, want apiextensionsv1.ConversionStrategyType) {
	t.Helper()
	waitFor(t, time.Minute, func() error {
		crd := operatorCRD()
		if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		strategy, _, err := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
		if err == nil && strategy != string(want) {
			err = fmt.Errorf("the conversion strategy of the CRD is %q, want %q", strategy, want)
		}
		return err
	})
}
