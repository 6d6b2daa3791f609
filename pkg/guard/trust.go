package guard

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"reflect"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func trusts(bundle, ca []byte) bool {
	trusted, _ := cert.ParseCertsPEM(bundle) // an invalid bundle trusts nothing
	authorities, err := cert.ParseCertsPEM(ca)
	return err == nil && !slices.ContainsFunc(authorities, func(authority *x509.Certificate) bool {
		return !slices.ContainsFunc(trusted, authority.Equal)
	})
}

// bundleSize is the number of CAs in a bundle: that of the serving certificate, that of the next
// one, and that of a certificate that is replaced before all replicas serve it.
const bundleSize = 3

// withCA returns a bundle that trusts a CA. While replicas change from one certificate to the next,
// it also has the first other valid CAs of the old bundle, up to bundleSize in total.
func withCA(bundle, ca []byte, now time.Time) []byte {
	extended := slices.Clone(ca)
	if len(extended) > 0 && !bytes.HasSuffix(extended, []byte("\n")) {
		extended = append(extended, '\n')
	}

	trusted, _ := cert.ParseCertsPEM(ca)      // a CA without certificates is written unchanged
	previous, _ := cert.ParseCertsPEM(bundle) // an invalid bundle is replaced
	for _, authority := range previous {
		if len(trusted) < bundleSize && now.Before(authority.NotAfter) && !slices.ContainsFunc(trusted, authority.Equal) {
			trusted = append(trusted, authority)
			extended = append(extended, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: authority.Raw})...)
		}
	}

	return extended
}

// Endpoint is the address of the operator's webhooks for the API server.
type Endpoint struct {
	// Namespace and Name identify the Service, whose port is 443.
	Namespace, Name string
	// URL replaces the Service if it is set, for an operator that runs outside of the cluster.
	URL string
}

func (e Endpoint) hosts() []string {
	names := []string{e.Name + "." + e.Namespace + ".svc", e.Name + "." + e.Namespace + ".svc.cluster.local"}
	if parsed, err := url.Parse(e.URL); err == nil && parsed.Hostname() != "" {
		names = append(names, parsed.Hostname())
	}
	return names
}

func clientConfigs(configuration runtime.Object) (configs []*admissionregistrationv1.WebhookClientConfig) {
	switch configuration := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			configs = append(configs, &configuration.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			configs = append(configs, &configuration.Webhooks[i].ClientConfig)
		}
	}
	return configs
}

func (e Endpoint) isCalledBy(config admissionregistrationv1.WebhookClientConfig) bool {
	return config.Service != nil && config.Service.Namespace == e.Namespace && config.Service.Name == e.Name
}

// ownWebhooks removes everything from a webhook configuration that the guard does not read. Under
// OLM, its cache has the configurations of the whole cluster.
func (e Endpoint) ownWebhooks(object any) (any, error) {
	switch configuration := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		configuration.ObjectMeta = identity(configuration)
		configuration.Webhooks = slices.DeleteFunc(configuration.Webhooks, func(webhook admissionregistrationv1.MutatingWebhook) bool {
			return !e.isCalledBy(webhook.ClientConfig)
		})
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		configuration.ObjectMeta = identity(configuration)
		configuration.Webhooks = slices.DeleteFunc(configuration.Webhooks, func(webhook admissionregistrationv1.ValidatingWebhook) bool {
			return !e.isCalledBy(webhook.ClientConfig)
		})
	}
	return object, nil
}

func identity(object client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()}
}

// restoreAdmission sets the CA, and the URL if there is one. The manifest sets the Service.
func (e Endpoint) restoreAdmission(config *admissionregistrationv1.WebhookClientConfig, ca []byte, now time.Time) (changed bool) {
	path := ""
	if config.Service != nil {
		path = ptr.Deref(config.Service.Path, "")
	} else if parsed, err := url.Parse(ptr.Deref(config.URL, "")); err == nil {
		path = parsed.Path
	}

	switch {
	case e.URL != "" && ptr.Deref(config.URL, "") != e.URL+path:
		config.URL, config.Service = ptr.To(e.URL+path), nil
		changed = true
	case e.URL == "" && config.Service == nil:
		// An operator outside of the cluster left this URL.
		config.URL = nil
		config.Service = &admissionregistrationv1.ServiceReference{
			Namespace: e.Namespace, Name: e.Name, Path: &path, Port: ptr.To[int32](servicePort),
		}
		changed = true
	}

	if !trusts(config.CABundle, ca) {
		config.CABundle = withCA(config.CABundle, ca, now)
		changed = true
	}

	return changed
}

// servicePort is the port of the Service, the API's default.
const servicePort = 443

// restoreConversion returns the correct spec.conversion of a CRD, or nil if it is correct already.
func (o Options) restoreConversion(
	crd *apiextensionsv1.CustomResourceDefinition, ca []byte, now time.Time,
) *apiextensionsv1.CustomResourceConversion {
	converts := slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == o.ConvertedVersion
	})
	if !converts {
		return nil
	}

	endpoint, path, want := o.Endpoint, o.ConversionPath, apiextensionsv1.WebhookClientConfig{}
	if endpoint.URL != "" {
		want.URL = ptr.To(endpoint.URL + path)
	} else {
		want.Service = &apiextensionsv1.ServiceReference{
			Namespace: endpoint.Namespace, Name: endpoint.Name, Path: &path, Port: ptr.To[int32](servicePort),
		}
	}

	versions := []string{"v1"}
	if stored := crd.Spec.Conversion; stored != nil && stored.Strategy == apiextensionsv1.WebhookConverter &&
		stored.Webhook != nil && stored.Webhook.ClientConfig != nil {
		want.CABundle, versions = stored.Webhook.ClientConfig.CABundle, stored.Webhook.ConversionReviewVersions
		if reflect.DeepEqual(stored.Webhook.ClientConfig, &want) && trusts(want.CABundle, ca) {
			return nil
		}
	}

	want.CABundle = withCA(want.CABundle, ca, now)
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &want, ConversionReviewVersions: versions},
	}
}

func conversionCA(crd *apiextensionsv1.CustomResourceDefinition) []byte {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig.CABundle
}
