package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/pkg/certificates"
)

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

// isOwn reports whether no other component created or adopted a Secret.
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

type served struct {
	*tls.Certificate
	ca []byte
}

// GetCertificate returns the serving certificate, for the TLS configuration of the webhook server.
func (g *Guard) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if serving := g.serving.Load(); serving != nil {
		return serving.Certificate, nil
	}
	return nil, errors.New("there is no certificate yet")
}

func (g *Guard) servingCA() []byte {
	if serving := g.serving.Load(); serving != nil {
		return serving.ca
	}
	return nil
}

// serve switches from one certificate to the next one, unless follow was faster. Or it returns the
// time to wait for API servers to load the next CA.
func (g *Guard) serve(ctx context.Context, before, next *served) time.Duration {
	if before != nil && !before.Leaf.Equal(next.Leaf) {
		if g.next == nil || !g.next.Leaf.Equal(next.Leaf) {
			g.next, g.nextSince = next, time.Now()
		}
		if left := propagation - time.Since(g.nextSince); left > 0 {
			return left
		}
	}

	g.replace(ctx, before, next)
	g.next = nil
	return 0
}

// replace serves the next certificate, unless the other worker has replaced the one before.
func (g *Guard) replace(ctx context.Context, before, next *served) {
	if g.serving.CompareAndSwap(before, next) && (before == nil || !before.Leaf.Equal(next.Leaf)) {
		log.FromContext(ctx).Info("Serving another certificate", "serial", next.Leaf.SerialNumber.String(), "notAfter", next.Leaf.NotAfter)
	}
}

// follow serves the next certificate immediately if any webhook trusts it and no longer the serving
// one: OLM and cert-manager write one CA into each webhook configuration. It does not wait for the
// restore of the CRD, which takes a busy API server up to a second.
func (g *Guard) follow(ctx context.Context) (time.Duration, error) {
	before, secret := g.serving.Load(), &corev1.Secret{}
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: g.options.Namespace, Name: g.options.Secret}, secret)
	if before == nil || err != nil {
		return 0, client.IgnoreNotFound(err)
	}

	next, err := g.certificateIn(ctx, secret)
	if err != nil {
		log.FromContext(ctx).V(1).Info("The Secret has no usable certificate", "error", err.Error())
		return 0, nil
	}
	if before.Leaf.Equal(next.Leaf) {
		return 0, nil
	}

	bundles, err := g.bundles(ctx)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(bundles, func(bundle []byte) bool { return trusts(bundle, next.ca) && !trusts(bundle, before.ca) }) {
		g.replace(ctx, before, next)
	}

	return 0, nil
}

func (g *Guard) bundles(ctx context.Context) (bundles [][]byte, err error) {
	lists := []client.ObjectList{
		&admissionregistrationv1.MutatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{},
	}
	if g.options.CRD != "" {
		lists = append(lists, &apiextensionsv1.CustomResourceDefinitionList{})
	}

	add := func(object runtime.Object) error {
		if crd, isCRD := object.(*apiextensionsv1.CustomResourceDefinition); isCRD {
			bundles = append(bundles, conversionCA(crd))
		}
		for _, config := range clientConfigs(object) {
			if g.options.Endpoint.isCalledBy(*config) {
				bundles = append(bundles, config.CABundle)
			}
		}
		return nil
	}

	for _, list := range lists {
		if err := errors.Join(g.reader.List(ctx, list), meta.EachListItem(list, add)); err != nil {
			return nil, fmt.Errorf("failed to read the CAs of the webhooks: %w", err)
		}
	}

	return bundles, nil
}
