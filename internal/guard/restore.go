package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/internal/certificates"
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

// csvKind is ClusterServiceVersion, of which only the metadata is read.
var csvKind = metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}

func (g *Guard) restored(ctx context.Context, kind, message string, keysAndValues ...any) {
	log.FromContext(ctx).Info(message, keysAndValues...)
	if g.options.Restored != nil {
		g.options.Restored(kind)
	}
}

// secret returns the Secret with the certificate. Outside OLM it is made, or recreated, where nobody else does that.
func (g *Guard) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: g.options.Namespace, Name: g.options.Secret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("failed to read Secret %s: %w", g.options.Secret, err)
	}
	found := err == nil
	if g.options.underOLM() {
		if !found {
			return nil, fmt.Errorf("waiting for OLM to make Secret %s", g.options.Secret)
		}
		return secret, nil
	}
	if found && !own(secret) {
		if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[certificates.CAKey]) == 0 {
			return nil, fmt.Errorf("waiting for tls.crt and ca.crt in Secret %s, which is somebody else's", secret.Name)
		}
		return secret, nil
	}
	if !found {
		return g.createSecret(ctx)
	}
	why := certificates.Renew(secret.Data, g.hosts(), time.Now())
	if why == nil {
		return secret, nil
	}
	return g.renewSecret(ctx, secret, why)
}

// issuedByAnnotation is what cert-manager puts on the Secrets that it writes, those that it found as well.
const issuedByAnnotation = "cert-manager.io/certificate-name"

// own reports whether the certificate in a Secret is the operator's to renew, and not that of who made the Secret or took
// it over.
func own(secret *corev1.Secret) bool {
	return secret.Labels[wellknown.LabelManagedBy] == wellknown.OperatorName && secret.Annotations[issuedByAnnotation] == ""
}

// write does a write, unless there were too many of them of late.
func (g *Guard) write(do func() error) error {
	if !g.writes.TryAccept() {
		return errors.New("waiting: somebody undoes what the operator restores, again and again")
	}
	return do()
}

func (g *Guard) createSecret(ctx context.Context) (*corev1.Secret, error) {
	data, err := certificates.New(g.hosts(), certificates.Lifetime)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.options.Namespace,
			Name:      g.options.Secret,
			Labels:    map[string]string{wellknown.LabelManagedBy: wellknown.OperatorName},
		},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}
	if err := g.write(func() error { return g.client.Create(ctx, secret) }); err != nil {
		return nil, fmt.Errorf("failed to create Secret %s: %w", secret.Name, err)
	}
	g.restored(ctx, RestoredCertificate, "Made the certificate of the webhooks", "secret", secret.Name)
	return secret, nil
}

// renewSecret writes another certificate. The replica whose write comes second gets a conflict, and looks again.
func (g *Guard) renewSecret(ctx context.Context, secret *corev1.Secret, why error) (*corev1.Secret, error) {
	data, err := certificates.New(g.hosts(), certificates.Lifetime)
	if err != nil {
		return nil, err
	}
	secret.Data = data
	if err := g.write(func() error { return g.client.Update(ctx, secret) }); err != nil {
		return nil, fmt.Errorf("failed to renew the certificate in Secret %s: %w", secret.Name, err)
	}
	g.restored(ctx, RestoredCertificate, "Renewed the certificate of the webhooks", "secret", secret.Name, "why", why.Error())
	return secret, nil
}

// adopt makes the own ClusterServiceVersion an owner of the Secret. OLM reuses the Secret of the release before, which
// would otherwise go with that release.
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
		return fmt.Errorf("failed to own Secret %s: %w", secret.Name, err)
	}
	g.restored(ctx, RestoredOwner, "Made the own ClusterServiceVersion an owner of the certificate", "secret", secret.Name, "csv", csv.Name)
	return nil
}

// hosts are the names under which the API server calls the webhooks.
func (g *Guard) hosts() []string { return g.options.Endpoint.hosts() }

// restore puts the CA and the address of the webhooks where they are missing. It reports whether the conversion, or
// the admission of an operator that converts nothing, trusts the CA of the certificate that is served as well.
func (g *Guard) restore(ctx context.Context, ca []byte) (overlap bool, err error) {
	if g.options.CRD != "" {
		if overlap, err = g.restoreCRD(ctx, ca); err != nil {
			return false, err
		}
	}
	if g.options.underOLM() {
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
		crd.Spec.Conversion = want
		return true
	})
	if err != nil {
		return false, err
	}
	if conversion := crd.Spec.Conversion; conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil {
		bundle := conversion.Webhook.ClientConfig.CABundle
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
