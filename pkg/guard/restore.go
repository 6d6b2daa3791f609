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
)

// Kinds of restores, for Options.Restored.
const (
	RestoredConversion  = "conversion"
	RestoredWebhooks    = "webhooks"
	RestoredOwner       = "owner"
	RestoredCertificate = "certificate"
)

// Kinds are all kinds of restores.
var Kinds = []string{RestoredConversion, RestoredWebhooks, RestoredOwner, RestoredCertificate}

// fieldManager returns the field manager by which admission recognizes the guard's writes.
func (o Options) fieldManager() string { return o.Name + "-guard" }

func (g *Guard) restored(ctx context.Context, kind, message string, keysAndValues ...any) {
	log.FromContext(ctx).Info(message, keysAndValues...)
	if g.options.Restored != nil {
		g.options.Restored(kind)
	}
}

// write calls a function that writes, unless there were too many writes recently.
func (g *Guard) write(do func() error) error {
	if !g.writes.TryAccept() {
		return errors.New("waiting: another client keeps reverting the operator's writes")
	}
	return do()
}

// restore adds missing CAs and addresses to the webhooks.
func (g *Guard) restore(ctx context.Context, ca []byte) error {
	if g.options.CRD != "" {
		if err := g.restoreCRD(ctx, ca); err != nil {
			return err
		}
	}

	if g.options.OLM {
		return nil
	}

	restoreAll := func(name string, configuration client.Object) error {
		err := g.change(ctx, name, configuration, RestoredWebhooks, func() (changed bool) {
			for _, config := range clientConfigs(configuration) {
				if g.options.Endpoint.restoreAdmission(config, ca, time.Now()) {
					config.CABundle = g.withServing(config.CABundle)
					changed = true
				}
			}
			return changed
		})
		return client.IgnoreNotFound(err)
	}

	// The conversion must not wait for configurations that are missing, which blocks no write.
	return errors.Join(
		restoreAll(g.options.Mutating, &admissionregistrationv1.MutatingWebhookConfiguration{}),
		restoreAll(g.options.Validating, &admissionregistrationv1.ValidatingWebhookConfiguration{}))
}

// restoreCRD restores the conversion in the CRD.
func (g *Guard) restoreCRD(ctx context.Context, ca []byte) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := g.change(ctx, g.options.CRD, crd, RestoredConversion, func() bool {
		want := g.options.restoreConversion(crd, ca, time.Now())
		if want == nil {
			return false
		}

		want.Webhook.ClientConfig.CABundle = g.withServing(want.Webhook.ClientConfig.CABundle)
		crd.Spec.Conversion = want
		return true
	})

	if bundle := conversionCA(crd); err == nil && bundle != nil {
		g.trusted.Store(&bundle)
	}
	return err
}

// withServing adds the CA of the serving certificate to a restored bundle: its writer may have
// removed all CAs while replicas serve the previous certificate.
func (g *Guard) withServing(bundle []byte) []byte {
	if ca := g.servingCA(); ca != nil {
		return withCA(bundle, ca, time.Now())
	}
	return bundle
}

// change updates an object if the function reports a change. A stale cache results in a conflict.
func (g *Guard) change(ctx context.Context, name string, object client.Object, kind string, mutate func() bool) error {
	began := time.Now()
	if err := g.reader.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return fmt.Errorf("failed to read %T %s: %w", object, name, err)
	}
	if !mutate() {
		return nil
	}
	if err := g.write(func() error { return g.client.Update(ctx, object, client.FieldOwner(g.options.fieldManager())) }); err != nil {
		return fmt.Errorf("failed to restore %T %s: %w", object, name, err)
	}

	g.restored(ctx, kind, "Restored the CA or the address of the webhooks", "object", name, "took", time.Since(began).String())
	return nil
}
