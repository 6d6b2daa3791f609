// Package scheme has the types of the API objects.
package scheme

import (
	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
)

// New returns a scheme with all types that the operator reads or writes.
func New() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, operatorv2.AddToScheme, apiextensionsv1.AddToScheme,
		gatewayv1.Install, monitoringv1.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
	utilruntime.Must(builder.AddToScheme(scheme))
	return scheme
}
