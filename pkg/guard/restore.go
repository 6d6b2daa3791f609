package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/review"
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

func (g *Guard) write(do func() error) error {
	if !g.writes.TryAccept() {
		return errors.New("waiting: another client keeps reverting the operator's writes")
	}
	return do()
}

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

// Admission returns the webhook that adds the working conversion to a write of the CRD, because a
// restore after the write comes too late for some reads. If the API server cannot call the webhook,
// the guard restores the conversion afterwards.
func (g *Guard) Admission() http.Handler { return review.Handler(admission.HandlerFunc(g.admit)) }

// maxBundleBytes bounds the CA bundle that admission reads, because parsing certificates is slow.
const maxBundleBytes = 64 << 10

// admit allows every write. It does not change a CRD that it cannot read: the next release's CRD
// can have a form that this release does not know.
func (g *Guard) admit(ctx context.Context, request admission.Request) admission.Response {
	bundle := g.trusted.Load()
	if request.Name != g.options.CRD || bundle == nil || g.options.wrote(request) {
		return admission.Allowed("")
	}

	crd, err := readConversion(request.Object.Raw, g.options.ConvertedVersion)
	if err != nil {
		log.FromContext(ctx).Info("Admitted a write of the CRD without restoring its conversion", "error", err.Error())
		return admission.Allowed("")
	}

	want := g.options.restoreConversion(crd, *bundle, time.Now())
	if want == nil {
		return admission.Allowed("")
	}

	log.FromContext(ctx).Info("Restored the conversion in a write of the CRD", "user", request.UserInfo.Username)

	// The patch changes no other field, including fields of later versions of Kubernetes.
	return admission.Patched("the conversion of a running operator", jsonpatch.NewOperation("add", "/spec/conversion", want))
}

// readConversion returns a CRD with only its conversion and, if the CRD has it, the version that
// needs one. A decoded schema of three bytes for each value would take 512 bytes for each.
func readConversion(raw []byte, convertedVersion string) (*apiextensionsv1.CustomResourceDefinition, error) {
	if err := bounds.Stored(raw); err != nil {
		return nil, err
	}

	type version struct {
		Name string `json:"name"`
	}

	var written struct {
		Spec struct {
			Versions   []version                                 `json:"versions"`
			Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion"`
		} `json:"spec"`
	}

	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &written); err != nil {
		return nil, fmt.Errorf("failed to decode the CRD: %w", err)
	}

	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Conversion = written.Spec.Conversion
	if len(conversionCA(crd)) > maxBundleBytes {
		return nil, errors.New("its CA bundle is too long")
	}
	if slices.Contains(written.Spec.Versions, version{convertedVersion}) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: convertedVersion}}
	}

	return crd, nil
}

// wrote reports whether a guard sent the write, whose state can be newer than that of this replica.
func (o Options) wrote(request admission.Request) bool {
	options := metav1.UpdateOptions{}
	return json.Unmarshal(request.Options.Raw, &options) == nil && options.FieldManager == o.fieldManager()
}
