package conversion

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
)

// Path is where the webhook server answers conversion requests.
const Path = "/convert"

// Register adds the conversion to the manager's webhook server.
func Register(mgr manager.Manager) error {
	handler, err := NewHandler()
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(Path, handler)
	return nil
}

// NewHandler returns what answers conversion requests.
func NewHandler() (http.Handler, error) {
	// A scheme of its own, in which the versions are JSON objects.
	scheme, kind := runtime.NewScheme(), v1alpha2.GroupVersion.WithKind("NginxOperator")
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(v1alpha1.GroupVersion.WithKind(kind.Kind), &unstructured.Unstructured{})
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(kind.GroupKind(), converter{}); err != nil {
		return nil, fmt.Errorf("failed to register the converter: %w", err)
	}
	return conversion.NewWebhookHandler(scheme, registry), nil
}

type converter struct{}

// ConvertObject converts one object; the destination says into what.
func (converter) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	from, fromIsJSON := src.(*unstructured.Unstructured)
	to, toIsJSON := dst.(*unstructured.Unstructured)
	if !fromIsJSON || !toIsJSON {
		return fmt.Errorf("failed to convert %T to %T: not a JSON object", src, dst)
	}
	versions := [2]string{from.GetAPIVersion(), to.GetAPIVersion()}
	switch versions {
	case [2]string{v1alpha1.GroupVersion.String(), v1alpha2.GroupVersion.String()}:
		return ToV1alpha2(from, to)
	case [2]string{v1alpha2.GroupVersion.String(), v1alpha1.GroupVersion.String()}:
		return ToV1alpha1(from, to)
	default:
		return fmt.Errorf("failed to convert from %s to %s: unknown versions", versions[0], versions[1])
	}
}
