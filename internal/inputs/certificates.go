package inputs

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

// resolvedCertificates is the result for all Secrets of spec.tls.
type resolvedCertificates struct {
	// hash identifies the content of the Secrets. It is "" if the spec references none.
	hash string
	// usable are the certificates that nginx can use, and blockers the reasons why it cannot use
	// the others.
	usable   []operand.Certificate
	blockers []failure.Failure
}

// temporaryCertificate ends the message about a missing Secret. An instance that answers the ACME
// challenge for its own certificate has no Pod until the Secret exists, so without a temporary
// certificate, cert-manager would never write it.
const temporaryCertificate = `; if cert-manager writes it after an HTTP-01 challenge that this instance answers, set the annotation ` +
	`cert-manager.io/issue-temporary-certificate: "true" on the Certificate`

// resolveCertificates reads the Secrets of spec.tls.
func (r Resolver) resolveCertificates(ctx context.Context, object *v1alpha2.NginxOperator) (resolvedCertificates, error) {
	var out resolvedCertificates
	digests := map[string][]byte{}
	for i, declared := range object.Spec.TLS {
		path := operand.SpecPath.Child("tls").Index(i).Child("secretName")
		source := named[corev1.Secret](object, declared.SecretName)
		found, exists, err := reference.Derive(ctx, r.Secrets, "certificate", source, func() certificate { return certificateOf(source) })
		switch {
		case err != nil:
			return out, err
		case !exists:
			blocker := notFound(path, "Secret", declared.SecretName)
			blocker.Message += temporaryCertificate
			out.blockers = append(out.blockers, blocker)
		case found.problem != "":
			message := fmt.Sprintf("%s: Secret %q %s", path, declared.SecretName, found.problem)
			out.blockers = append(out.blockers, failure.Failure{Reason: found.reason, Message: message})
		default:
			out.usable = append(out.usable, operand.Certificate{Secret: declared.SecretName, Certificate: found.public})
		}
		digests[declared.SecretName] = []byte(found.digest)
	}
	if len(digests) > 0 {
		out.hash = operand.Digest(digests)
	}
	return out, nil
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

// certificateOf checks whether nginx can use a Secret. It accepts an expired certificate: nginx
// serves it, and a blocked change would not renew it.
func certificateOf(secret *corev1.Secret) certificate {
	if secret.Type != corev1.SecretTypeTLS {
		return certificate{
			reason:  v1alpha2.ReasonInvalidReference,
			problem: fmt.Sprintf("has type %s: make it again with type %s, or name another", secret.Type, corev1.SecretTypeTLS),
		}
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if _, found := secret.Data[key]; !found {
			return certificate{reason: v1alpha2.ReasonReferenceNotFound, problem: fmt.Sprintf("has no key %q: add it, or name another Secret", key)}
		}
	}
	public, err := keypair.Check(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return certificate{
			reason:  v1alpha2.ReasonInvalidReference,
			problem: fmt.Sprintf("holds no certificate that nginx could use (%v): put a certificate and its key in PEM form there", err),
		}
	}
	return certificate{digest: operand.Digest(secret.Data), public: public}
}
