package nginxoperator

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/metadata"
)

// inputs is everything beside the object itself that the desired state depends on, read once per pass.
type inputs struct {
	// image is the container image of the operands.
	image string
	// ipv6 tells that the cluster's Pods have IPv6 addresses.
	ipv6 bool
	// deployment is the live Deployment of the object, nil where there is none. Only who scales it matters.
	deployment *appsv1.Deployment
}

// portHTTP and portHealth are the names of the container ports; the Service, the NetworkPolicy and the probes use the
// names, so that Pods of two configurations can serve side by side on different ports.
const (
	portHTTP   = "http"
	portHealth = "health"
)

// healthPorts are where the operator's own server for probes may listen: the first that the user's server does not.
var healthPorts = [2]int32{18080, 18081}

// desired returns the complete list of children of an object, in the order in which they depend on each other.
func desired(object *v1alpha1.NginxOperator, in inputs) ([]client.Object, error) {
	conf, err := assets.NginxConf(assets.NginxConfParams{Port: port(object), HealthPort: healthPort(object), IPv6: in.ipv6})
	if err != nil {
		return nil, err
	}
	configMap := desiredConfigMap(object, in, conf)
	deployment := desiredDeployment(object, in, configMap.Name)
	children := []client.Object{
		configMap,
		desiredService(object, in),
		desiredNetworkPolicy(object, in),
		deployment,
	}
	if *deployment.Spec.Replicas > 1 {
		children = append(children, desiredPodDisruptionBudget(object, in))
	}
	return children, nil
}

// childMeta returns the metadata that every child has: the name of the object, its namespace, and the labels.
func childMeta(object *v1alpha1.NginxOperator, in inputs) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      object.Name,
		Namespace: object.Namespace,
		Labels:    metadata.ChildLabels(object.Name, in.image),
	}
}

// port, replicas: the schema sets the defaults; they are repeated for objects that were stored before it did.
func port(object *v1alpha1.NginxOperator) int32 {
	return ptr.Deref(object.Spec.Port, v1alpha1.DefaultPort)
}

func replicas(object *v1alpha1.NginxOperator) int32 {
	return ptr.Deref(object.Spec.Replicas, v1alpha1.DefaultReplicas)
}

func healthPort(object *v1alpha1.NginxOperator) int32 {
	if port(object) == healthPorts[0] {
		return healthPorts[1]
	}
	return healthPorts[0]
}

// serviceURL returns the address of the server inside the cluster.
func serviceURL(object *v1alpha1.NginxOperator) string {
	url := fmt.Sprintf("http://%s.%s.svc", object.Name, object.Namespace)
	if port(object) != 80 {
		url = fmt.Sprintf("%s:%d", url, port(object))
	}
	return url
}
