package operand

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// SecretsOf returns the tls and files of a spec that mount the same Secrets as a template.
func SecretsOf(pod *corev1.PodSpec) (mounting v1alpha2.NginxOperatorSpec) {
	for i := range pod.Volumes {
		volume := &pod.Volumes[i]
		if volume.Secret != nil && strings.HasPrefix(volume.Name, cached.CertificateVolume) {
			mounting.TLS = append(mounting.TLS, v1alpha2.TLS{SecretName: volume.Secret.SecretName})
		}
		if volume.Projected == nil || volume.Name != filesVolume {
			continue
		}

		for _, source := range volume.Projected.Sources {
			if source.Secret == nil {
				continue
			}
			for _, item := range source.Secret.Items {
				mounting.Files = append(mounting.Files, v1alpha2.File{
					Path: item.Path, SecretRef: &v1alpha2.ObjectKeyReference{Name: source.Secret.Name, Key: item.Key},
				})
			}
		}
	}
	return mounting
}

// WithSecrets returns a Deployment with the hashes of Secrets. Another hash replaces the Pods.
func WithSecrets(deployment *appsv1.Deployment, in Inputs) *appsv1.Deployment {
	out := deployment.DeepCopy()
	for key, hash := range map[string]string{
		wellknown.AnnotationCertificates: in.CertificatesHash, wellknown.AnnotationFiles: in.SecretsHash,
	} {
		if hash != "" {
			metav1.SetMetaDataAnnotation(&out.Spec.Template.ObjectMeta, key, hash)
		}
	}
	return out
}
