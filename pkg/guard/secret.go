package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/certificates"
)

// olmCAKey is the key of the CA in a Secret of OLM v0.
const olmCAKey = "olmCAKey"

// csvKind is ClusterServiceVersion. The guard only reads its metadata.
var csvKind = metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}

// certificateIn returns the certificate in a Secret, and the CA that signed it. OLM v0,
// cert-manager, and the operator store the CA in the Secret. OpenShift's service CA only writes it
// into the CRD.
func (g *Guard) certificateIn(ctx context.Context, secret *corev1.Secret) (*served, error) {
	certificate, err := certificates.Load(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("failed to use the certificate in Secret %s: %w", secret.Name, err)
	}

	for _, key := range []string{olmCAKey, certificates.CAKey} {
		if ca := secret.Data[key]; len(ca) > 0 {
			if _, err := cert.ParseCertsPEM(ca); err != nil {
				return nil, fmt.Errorf("failed to read the CA in Secret %s: %w", secret.Name, err)
			}
			return &served{certificate, ca}, nil
		}
	}

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := g.reader.Get(ctx, client.ObjectKey{Name: g.options.CRD}, crd); err != nil {
		return nil, fmt.Errorf("failed to read the CA of Secret %s in CustomResourceDefinition %s: %w", secret.Name, g.options.CRD, err)
	}

	for _, ca := range [][]byte{conversionCA(crd), g.servingCA()} {
		if certificates.Verify(certificate, ca, g.options.Endpoint.hosts()[:1], time.Now()) == nil {
			return &served{certificate, ca}, nil
		}
	}

	return nil, fmt.Errorf("waiting for the CA of Secret %s, in its ca.crt or in spec.conversion of CustomResourceDefinition %s",
		secret.Name, g.options.CRD)
}

// secret returns the Secret with the certificate. It issues one if no other component does.
func (g *Guard) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: g.options.Namespace, Name: g.options.Secret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("failed to read Secret %s: %w", g.options.Secret, err)
	}

	switch missing := err != nil; {
	case g.options.OLM && missing:
		return nil, fmt.Errorf("waiting for OLM to create Secret %s", g.options.Secret)
	case g.options.OLM:
		return secret, nil
	case missing:
		return g.issue(ctx, secret, nil)
	case !g.isOwn(secret) && (len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[certificates.CAKey]) == 0):
		return nil, fmt.Errorf("waiting for tls.crt and ca.crt in Secret %s, which another component manages", secret.Name)
	case !g.isOwn(secret):
		return secret, nil
	}

	reason := certificates.Renew(secret.Data, g.options.Endpoint.hosts(), time.Now())
	if reason == nil && g.serving.Load() != nil {
		// At the start, the webhooks trust only the stored certificate. Serve it first, so that its
		// successor is served after its CA is trusted.
		certificate, _ := certificates.Load(secret.Data) // Renew has read it
		reason = certificates.Outdated(certificate.Leaf)
	}

	if reason == nil {
		return secret, nil
	}

	return g.issue(ctx, secret, reason)
}

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	// issuedByAnnotation is on each Secret that cert-manager writes, including existing Secrets.
	issuedByAnnotation = "cert-manager.io/certificate-name"
)

// isOwn reports whether the operator must renew the certificate in a Secret, because no other
// component created or adopted it.
func (g *Guard) isOwn(secret *corev1.Secret) bool {
	return secret.Labels[labelManagedBy] == g.options.Name && secret.Annotations[issuedByAnnotation] == ""
}

// issue writes another certificate into the Secret, or creates the Secret if there is no reason to
// renew it. The replica with the second write gets a conflict and retries.
func (g *Guard) issue(ctx context.Context, secret *corev1.Secret, reason error) (*corev1.Secret, error) {
	data, err := certificates.New(g.options.Endpoint.hosts(), certificates.Lifetime)
	if err != nil {
		return nil, err
	}

	secret.Data = data
	if reason != nil {
		if err := g.write(func() error { return g.client.Update(ctx, secret) }); err != nil {
			return nil, fmt.Errorf("failed to renew the certificate in Secret %s: %w", secret.Name, err)
		}
		g.restored(ctx, RestoredCertificate, "Renewed the certificate of the webhooks",
			"secret", secret.Name, "reason", reason.Error())
		return secret, nil
	}

	secret.Namespace, secret.Name, secret.Type = g.options.Namespace, g.options.Secret, corev1.SecretTypeTLS
	secret.Labels = map[string]string{labelManagedBy: g.options.Name}
	if err := g.write(func() error { return g.client.Create(ctx, secret) }); err != nil {
		return nil, fmt.Errorf("failed to create Secret %s: %w", secret.Name, err)
	}

	g.restored(ctx, RestoredCertificate, "Created the certificate of the webhooks", "secret", secret.Name)
	return secret, nil
}

// adopt adds the operator's ClusterServiceVersion to the owners of the Secret. OLM reuses the
// Secret of the previous release, which would otherwise be deleted with that release.
func (g *Guard) adopt(ctx context.Context, secret *corev1.Secret) error {
	owned := func(owner metav1.OwnerReference) bool {
		return owner.Kind == csvKind.Kind && owner.Name == g.options.CSV
	}
	if slices.ContainsFunc(secret.OwnerReferences, owned) {
		return nil
	}

	csv := &metav1.PartialObjectMetadata{TypeMeta: csvKind}
	if err := g.client.Get(ctx, client.ObjectKey{Namespace: g.options.Namespace, Name: g.options.CSV}, csv); err != nil {
		return fmt.Errorf("failed to read ClusterServiceVersion %s: %w", g.options.CSV, err)
	}

	secret.OwnerReferences = append(secret.OwnerReferences, metav1.OwnerReference{
		APIVersion: csvKind.APIVersion, Kind: csvKind.Kind, Name: csv.Name, UID: csv.UID,
		BlockOwnerDeletion: ptr.To(false), Controller: ptr.To(false),
	})

	if err := g.write(func() error { return g.client.Update(ctx, secret) }); err != nil {
		return fmt.Errorf("failed to add the ClusterServiceVersion to the owners of Secret %s: %w", secret.Name, err)
	}

	g.restored(ctx, RestoredOwner, "Added the operator's ClusterServiceVersion to the owners of the certificate",
		"secret", secret.Name, "csv", csv.Name)
	return nil
}
