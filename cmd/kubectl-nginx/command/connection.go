package command

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
)

// connection is a cluster and a namespace in it.
type connection struct {
	client.Client

	config    *rest.Config
	namespace string
	// enforced is true if a flag sets the namespace: an object with another namespace is an error.
	enforced bool
}

// connect returns a client for the cluster of the kubeconfig flags. The handler gets the API
// server's warnings.
func (c *cli) connect(warnings rest.WarningHandler) (*connection, error) {
	config, err := c.kube.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = warnings
	config.QPS = -1 // the API server's priority and fairness limits the rate
	mapper, err := c.kube.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	namespace, enforced, err := c.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	found, err := client.New(config, client.Options{Scheme: scheme.New(), Mapper: mapper})
	return &connection{found, config, namespace, enforced}, err
}

// instance reads an instance.
func (c *connection) instance(ctx context.Context, name string) (*v1alpha2.NginxOperator, error) {
	out := &v1alpha2.NginxOperator{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, out)
	return out, err
}

// chunk is the number of objects per list request.
const chunk = 500

// eachInstance calls the function with each selected instance of the namespace, or of all
// namespaces.
func (c *connection) eachInstance(ctx context.Context, which selection, do func(*v1alpha2.NginxOperator) error) error {
	options := &client.ListOptions{Limit: chunk, Raw: &metav1.ListOptions{LabelSelector: which.labels}}
	if !which.all {
		options.Namespace = c.namespace
	}
	for {
		list := &v1alpha2.NginxOperatorList{}
		if err := c.List(ctx, list, options); err != nil {
			return err
		}
		for i := range list.Items {
			if err := do(&list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// pods lists the Pods of an instance.
func (c *connection) pods(ctx context.Context, object *v1alpha2.NginxOperator) ([]corev1.Pod, error) {
	var out []corev1.Pod
	options := &client.ListOptions{Namespace: object.Namespace, Limit: chunk}
	client.MatchingLabels(wellknown.Selector(object.Name)).ApplyToList(options)
	for {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, options); err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}
