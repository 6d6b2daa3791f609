package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/internal/wellknown"
)

// Kinds of restores, as Options.Repaired is told of them.
const (
	RestoredConversion  = "conversion"
	RestoredWebhooks    = "webhooks"
	RestoredOwner       = "owner"
	RestoredCertificate = "certificate"
)

// Kinds returns all of them.
func Kinds() []string {
	return []string{RestoredConversion, RestoredWebhooks, RestoredOwner, RestoredCertificate}
}

// fieldManager is the guard's, by which admission knows its writes.
const fieldManager = wellknown.OperatorName + "-guard"

func (g *Guard) restored(ctx context.Context, kind, message string, keysAndValues ...any) {
	log.FromContext(ctx).Info(message, keysAndValues...)
	if g.options.Restored != nil {
		g.options.Restored(kind)
	}
}

// write does a write, unless there were too many of them of late.
func (g *Guard) write(do func() error) error {
	if !g.writes.TryAccept() {
		return errors.New("waiting: somebody undoes what the operator restores, again and again")
	}
	return do()
}

// restore puts the CA and the address of the webhooks where they are missing. It reports whether the conversion, or
// the admission of an operator that converts nothing, trusts the CA of the certificate that is served as well.
func (g *Guard) restore(ctx context.Context, ca []byte) (overlap bool, err error) {
	if g.options.CRD != "" {
		if overlap, err = g.restoreCRD(ctx, ca); err != nil {
			return false, err
		}
	}
	if g.options.OLM {
		return overlap, nil
	}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	fix := func(config *admissionregistrationv1.WebhookClientConfig) bool {
		return g.options.Endpoint.restoreAdmission(config, ca, time.Now())
	}
	errMutating := g.change(ctx, client.ObjectKey{Name: g.options.Mutating}, mutating, RestoredWebhooks, func() (changed bool) {
		for i := range mutating.Webhooks {
			changed = fix(&mutating.Webhooks[i].ClientConfig) || changed
		}
		return changed
	})
	errValidating := g.change(ctx, client.ObjectKey{Name: g.options.Validating}, validating, RestoredWebhooks, func() (changed bool) {
		for i := range validating.Webhooks {
			changed = fix(&validating.Webhooks[i].ClientConfig) || changed
		}
		return changed
	})
	if g.options.CRD == "" && len(mutating.Webhooks) > 0 {
		overlap = trusts(mutating.Webhooks[0].ClientConfig.CABundle, g.ca)
	}
	// Without them admission is missing, which blocks nobody; the conversion does not have to wait for them.
	return overlap, errors.Join(client.IgnoreNotFound(errMutating), client.IgnoreNotFound(errValidating))
}

// restoreCRD is the part of restore that is about the conversion.
func (g *Guard) restoreCRD(ctx context.Context, ca []byte) (overlap bool, err error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err = g.change(ctx, client.ObjectKey{Name: g.options.CRD}, crd, RestoredConversion, func() bool {
		want := restoreConversion(crd, g.options.Endpoint, g.options.ConversionPath, ca, time.Now())
		if want == nil {
			return false
		}
		// Whoever wrote a conversion without CAs may have done so while replicas still serve the certificate before.
		if config := want.Webhook.ClientConfig; g.ca != nil {
			config.CABundle = withCA(config.CABundle, g.ca, time.Now())
		}
		crd.Spec.Conversion = want
		return true
	})
	if err != nil {
		return false, err
	}
	if bundle := conversionCA(crd); bundle != nil {
		overlap = trusts(bundle, g.ca)
		g.trusted.Store(&bundle)
	}
	return overlap, nil
}

// change updates an object where the function says that it changed it. Where the cache is behind, that is a conflict,
// and the event that is on its way leads to another reconcile.
func (g *Guard) change(ctx context.Context, key client.ObjectKey, object client.Object, kind string, mutate func() bool) error {
	began := time.Now()
	if err := g.reader.Get(ctx, key, object); err != nil {
		return fmt.Errorf("failed to read %T %s: %w", object, key.Name, err)
	}
	if !mutate() {
		return nil
	}
	if err := g.write(func() error { return g.client.Update(ctx, object, client.FieldOwner(fieldManager)) }); err != nil {
		return fmt.Errorf("failed to restore %T %s: %w", object, key.Name, err)
	}
	g.restored(ctx, kind, "Restored how the API server finds the webhooks", "object", key.Name, "took", time.Since(began).String())
	return nil
}
