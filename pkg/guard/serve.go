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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// This file decides when the next certificate is served.

// served is a certificate with its CA (PEM).
type served struct {
	*tls.Certificate
	ca []byte
}

// GetCertificate returns the serving certificate. It is for the TLS configuration of the webhook
// server.
func (g *Guard) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if serving := g.serving.Load(); serving != nil {
		return serving.Certificate, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// servingCA returns the CA of the serving certificate, or nil before the first one.
func (g *Guard) servingCA() []byte {
	if serving := g.serving.Load(); serving != nil {
		return serving.ca
	}
	return nil
}

// serve switches from one certificate to the next one, or returns the time to wait before that. API
// servers get some time to load its CA, because the webhooks trust the previous certificate as
// well. If follow was faster, serve does nothing.
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
// one. OLM and cert-manager write one CA into each webhook configuration, and from then on, the API
// server can open no connection to a replica with the previous certificate. The connections of
// webhooks that still trust the previous one remain open. follow does not wait for the restore of
// the CRD: that write takes a busy API server up to a second.
func (g *Guard) follow(ctx context.Context) (time.Duration, error) {
	before, secret := g.serving.Load(), &corev1.Secret{}
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: g.options.Namespace, Name: g.options.Secret}, secret)
	if before == nil || err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	next, err := g.certificateIn(ctx, secret)
	if err != nil {
		log.FromContext(ctx).V(1).Info("There is no certificate to follow, restoring", "cause", err.Error())
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

// bundles returns the CAs (PEM) that each of the operator's webhooks trusts.
func (g *Guard) bundles(ctx context.Context) (bundles [][]byte, err error) {
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	err = errors.Join(g.reader.List(ctx, mutating), g.reader.List(ctx, validating))
	if g.options.CRD != "" {
		err = errors.Join(err, g.reader.List(ctx, crds))
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read the CAs of the webhooks: %w", err)
	}
	for i := range crds.Items {
		bundles = append(bundles, conversionCA(&crds.Items[i]))
	}
	var configs []*admissionregistrationv1.WebhookClientConfig
	for i := range mutating.Items {
		configs = append(configs, clientConfigs(&mutating.Items[i])...)
	}
	for i := range validating.Items {
		configs = append(configs, clientConfigs(&validating.Items[i])...)
	}
	for _, config := range configs {
		if g.options.Endpoint.isCalledBy(*config) {
			bundles = append(bundles, config.CABundle)
		}
	}
	return bundles, nil
}
