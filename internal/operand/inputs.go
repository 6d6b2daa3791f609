// Package operand renders the children of an NginxOperator. It is pure: the children depend only on
// the object, the inputs, and the release.
package operand

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Inputs is everything that the children depend on in addition to the object.
type Inputs struct {
	// Image is the container image of nginx.
	Image string
	// Config is the nginx configuration.
	Config Configuration
	// Content is the static files, or nil if the object references none.
	Content *Content
	// ServersHash is a hash of the user's server blocks from a ConfigMap, or "" without one.
	ServersHash string
	// Suffix ends the names of the ConfigMaps. It is "" unless a ConfigMap was forged.
	Suffix string
	// Files are the files of spec.files from ConfigMaps, or nil if there are none.
	Files *Content
	// Directories are the files of the masks in spec.files, in the order of the spec.
	Directories []Directory
	// SecretsHash is a hash of the files of spec.files from Secrets, or "" if there are none.
	SecretsHash string
	// CertificatesHash is a hash of the content of all Secrets of spec.tls, or "" without one.
	CertificatesHash string
	// Certificates are the certificates that nginx can use. No child depends on them.
	Certificates []Certificate
	// Deployment is the live Deployment, or nil. Children depend on its replicas, its annotations,
	// and its resource version.
	Deployment *appsv1.Deployment
	// Running has the ports of the running Pods. Names of container ports depend on them.
	Running Running
	// Exporter is the container image of the exporter, or "" if there is none.
	Exporter string
	// RequestMetrics is the container image of the receiver of request metrics, or "" if there is
	// none.
	RequestMetrics string
	// Missing has the reason for each optional kind that is not installed.
	Missing map[string]string
}

// Certificate is a certificate that nginx can use.
type Certificate struct {
	// Secret is the name of its Secret.
	Secret string
	keypair.Certificate
}

// ObjectMeta returns the metadata that all children share.
func ObjectMeta(object *v1alpha2.NginxOperator, in Inputs) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      object.Name,
		Namespace: object.Namespace,
		Labels:    wellknown.ChildLabels(object.Name, in.Image),
	}
}

// SpecPath is the root of field paths in messages.
var SpecPath = field.NewPath("spec")
