package nginxoperator

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/metadata"
)

func desiredService(object *v1alpha1.NginxOperator, in inputs) *corev1.Service {
	service := assets.Service()
	service.ObjectMeta = childMeta(object, in)
	service.Spec.Selector = metadata.Selector(object.Name)
	service.Spec.Ports[0].Port = port(object)
	return service
}
