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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// served is a certificate with its CA (PEM).
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

// servingCA returns the CA of the serving certificate, or nil before the first one.
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

// bundles returns the CAs (PEM) that each of the operator's webhooks trusts.
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
