package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/pkg/reference"
)

// temporaryCertificate ends the message about a missing Secret. An instance that answers the ACME
// challenge for its own certificate has no Pod until the Secret exists, so without a temporary
// certificate, cert-manager would never write it.
const temporaryCertificate = `. If cert-manager writes it after an HTTP-01 challenge that this instance answers, set the annotation ` +
	`cert-manager.io/issue-temporary-certificate: "true" on the Certificate`

// resolveCertificates reads the Secrets of spec.tls.
func (r Resolver) resolveCertificates(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) error {
	digests := map[string][]byte{}
	for i, declared := range object.Spec.TLS {
		path := operand.SpecPath.Child("tls").Index(i).Child("secretName")
		conclusion, exists, err := r.certificate(ctx, object, declared.SecretName)
		switch {
		case err != nil:
			return err
		case !exists:
			blocker := notFound(path, "Secret", declared.SecretName)
			blocker.Message += temporaryCertificate
			to.block(blocker)
		case conclusion.problem != "":
			message := fmt.Sprintf("%s: Secret %q %s", path, declared.SecretName, conclusion.problem)
			to.block(failure.Failure{Reason: conclusion.reason, Message: message})
		default:
			usable := operand.Certificate{Secret: declared.SecretName, Certificate: conclusion.public}
			to.in.Certificates = append(to.in.Certificates, usable)
		}

		digests[declared.SecretName] = []byte(conclusion.digest)
	}

	if len(digests) > 0 {
		to.in.CertificatesHash = operand.Digest(digests)
	}
	return nil
}

// certificate is the conclusion about a Secret of spec.tls.
type certificate struct {
	// digest is a hash of all keys of the Secret, because all of them are mounted.
	digest string
	// public is the public part of the certificate.
	public keypair.Certificate
	// reason and problem describe why nginx cannot use the Secret. Both are "" if it can.
	reason, problem string
}

// certificate reports whether a Secret exists, and whether nginx can use it.
func (r Resolver) certificate(
	ctx context.Context, object *v1alpha2.NginxOperator, name string,
) (conclusion certificate, exists bool, err error) {
	source := &corev1.Secret{ObjectMeta: referenced(object, name)}
	return reference.Derive(ctx, r.Secrets, "certificate", source, func() certificate { return certificateOf(source) })
}

// certificateOf checks whether nginx can use a Secret. It accepts an expired certificate: nginx
// serves it, and a blocked change would not renew it.
func certificateOf(secret *corev1.Secret) certificate {
	if secret.Type != corev1.SecretTypeTLS {
		return certificate{
			reason:  v1alpha2.ReasonInvalidReference,
			problem: fmt.Sprintf("has type %s; recreate it with type %s, or reference another Secret", secret.Type, corev1.SecretTypeTLS),
		}
	}

	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if _, hasKey := secret.Data[key]; !hasKey {
			problem := fmt.Sprintf("has no key %q; add it, or reference another Secret", key)
			return certificate{reason: v1alpha2.ReasonReferenceNotFound, problem: problem}
		}
	}

	public, err := keypair.Check(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return certificate{
			reason:  v1alpha2.ReasonInvalidReference,
			problem: fmt.Sprintf("has no usable certificate: %v; store a PEM certificate in tls.crt, and its key in tls.key", err),
		}
	}

	return certificate{digest: operand.Digest(secret.Data), public: public}
}
