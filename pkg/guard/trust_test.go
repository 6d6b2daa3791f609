package guard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/pkg/certificates"
)

var (
	service = Endpoint{Namespace: "system", Name: "webhooks"}
	local   = Endpoint{Namespace: "system", Name: "webhooks", URL: "https://127.0.0.1:9443"}
)

// newCA returns a CA (PEM) with a lifetime.
func newCA(t *testing.T, lifetime time.Duration) []byte {
	t.Helper()
	data, err := certificates.New([]string{"a.example.com"}, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return data[certificates.CAKey]
}

func join(cas ...[]byte) []byte { return slices.Concat(cas...) }

func TestTrusts(t *testing.T) {
	one, other := newCA(t, certificates.Lifetime), newCA(t, certificates.Lifetime)
	for name, test := range map[string]struct {
		bundle, ca []byte
		want       bool
	}{
		"the same":             {one, one, true},
		"among others":         {join(other, one), one, true},
		"written differently":  {one, join([]byte("a comment\n"), one), true},
		"all of several":       {join(one, other), join(other, one), true},
		"one of several":       {one, join(one, other), false},
		"another":              {other, one, false},
		"nothing":              {nil, one, false},
		"no certificate":       {[]byte("x"), one, false},
		"no CA":                {one, nil, false},
		"CA is no PEM":         {one, []byte("x"), false},
		"nothing with nothing": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := trusts(test.bundle, test.ca); got != test.want {
				t.Errorf("want %t, got %t", test.want, got)
			}
		})
	}
}

// TestWithCA verifies that the bundle has the new CA, and the CAs of certificates that replicas can
// still serve. It does not grow with each certificate.
func TestWithCA(t *testing.T) {
	old, older, now := newCA(t, certificates.Lifetime), newCA(t, certificates.Lifetime), newCA(t, certificates.Lifetime)
	oldest, over := newCA(t, certificates.Lifetime), newCA(t, 2*time.Hour)
	for name, test := range map[string]struct {
		bundle, ca, want []byte
	}{
		"nothing before":           {nil, now, now},
		"no certificate before":    {[]byte("x"), now, now},
		"one before":               {old, now, join(now, old)},
		"two before":               {join(old, older), now, join(now, old, older)},
		"three before":             {join(old, older, oldest), now, join(now, old, older)},
		"twice the same before":    {join(old, old, older), now, join(now, old, older)},
		"there already":            {join(now, old), now, join(now, old)},
		"a full bundle is kept":    {now, join(old, older, oldest), join(old, older, oldest)},
		"one before is over":       {over, now, now},
		"the first before is over": {join(over, old), now, join(now, old)},
		"the CA ends in no line":   {old, []byte(strings.TrimSpace(string(now))), join(now, old)},
	} {
		t.Run(name, func(t *testing.T) {
			got := withCA(test.bundle, test.ca, time.Now().Add(2*time.Hour))
			if diff := cmp.Diff(string(test.want), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	names := []string{"webhooks.system.svc", "webhooks.system.svc.cluster.local"}
	for url, want := range map[string][]string{
		"":                            names,
		"https://127.0.0.1:9443":      append(slices.Clone(names), "127.0.0.1"),
		"https://[::1]:9443":          append(slices.Clone(names), "::1"),
		"https://laptop.example.com/": append(slices.Clone(names), "laptop.example.com"),
	} {
		endpoint := Endpoint{Namespace: "system", Name: "webhooks", URL: url}
		if diff := cmp.Diff(want, endpoint.hosts()); diff != "" {
			t.Errorf("%q: %s", url, diff)
		}
	}
}

// conversionTo returns a conversion as the guard writes it.
func conversionTo(config apiextensionsv1.WebhookClientConfig, bundle []byte) *apiextensionsv1.CustomResourceConversion {
	config.CABundle = bundle
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &config, ConversionReviewVersions: []string{"v1"}},
	}
}

func serviceConfig(name string) apiextensionsv1.WebhookClientConfig {
	return apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Namespace: "system", Name: name, Path: ptr.To("/convert"), Port: ptr.To[int32](443),
	}}
}

func urlConfig(url string) apiextensionsv1.WebhookClientConfig {
	return apiextensionsv1.WebhookClientConfig{URL: &url}
}

func TestRestoreConversion(t *testing.T) {
	one, other := newCA(t, certificates.Lifetime), newCA(t, certificates.Lifetime)
	none := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	withoutPath := serviceConfig("webhooks")
	withoutPath.Service.Path = nil
	later := conversionTo(serviceConfig("webhooks"), nil)
	later.Webhook.ConversionReviewVersions = []string{"v2", "v1"}
	laterRestored := conversionTo(serviceConfig("webhooks"), one)
	laterRestored.Webhook.ConversionReviewVersions = []string{"v2", "v1"}
	both, old := []string{"v1alpha1", "v1alpha2"}, []string{"v1alpha1"}
	for name, test := range map[string]struct {
		versions []string
		is       *apiextensionsv1.CustomResourceConversion
		endpoint Endpoint
		want     *apiextensionsv1.CustomResourceConversion // nil if it is unchanged
	}{
		"nothing":                      {both, nil, service, conversionTo(serviceConfig("webhooks"), one)},
		"none":                         {both, none, service, conversionTo(serviceConfig("webhooks"), one)},
		"none, outside of the cluster": {both, none, local, conversionTo(urlConfig("https://127.0.0.1:9443/convert"), one)},
		"no CA": {
			both, conversionTo(serviceConfig("webhooks"), nil), service, conversionTo(serviceConfig("webhooks"), one),
		},
		"another CA": {
			both, conversionTo(serviceConfig("webhooks"), other), service, conversionTo(serviceConfig("webhooks"), join(one, other)),
		},
		"another Service": {both, conversionTo(serviceConfig("wrong"), one), service, conversionTo(serviceConfig("webhooks"), one)},
		"another path":    {both, conversionTo(withoutPath, one), service, conversionTo(serviceConfig("webhooks"), one)},
		"an address that was left": {
			both, conversionTo(urlConfig("https://127.0.0.1:1/convert"), other), service, conversionTo(serviceConfig("webhooks"), join(one, other)),
		},
		"another address": {
			both, conversionTo(urlConfig("https://127.0.0.1:1/convert"), one), local, conversionTo(urlConfig("https://127.0.0.1:9443/convert"), one),
		},
		"review versions stay": {both, later, service, laterRestored},

		"right":                              {both, conversionTo(serviceConfig("webhooks"), one), service, nil},
		"right, outside of the cluster":      {both, conversionTo(urlConfig("https://127.0.0.1:9443/convert"), one), local, nil},
		"right, trusts another one as well":  {both, conversionTo(serviceConfig("webhooks"), join(other, one)), service, nil},
		"a release before the conversion":    {old, none, service, nil},
		"a release before, nothing declared": {old, nil, service, nil},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			for _, version := range test.versions {
				crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: version})
			}
			crd.Spec.Conversion = test.is
			options := Options{Endpoint: test.endpoint, ConversionPath: "/convert", ConvertedVersion: "v1alpha2"}
			got := options.restoreConversion(crd, one, time.Now())
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got == nil {
				return
			}
			crd.Spec.Conversion = got
			if again := options.restoreConversion(crd, one, time.Now()); again != nil {
				t.Errorf("what was restored is restored again: %+v", again)
			}
		})
	}
}

func TestRestoreAdmission(t *testing.T) {
	one, other := newCA(t, certificates.Lifetime), newCA(t, certificates.Lifetime)
	toService := func(name string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: "system", Name: name, Path: ptr.To("/validate"), Port: ptr.To[int32](443),
		}}
	}
	toURL := func(url string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: bundle, URL: &url}
	}
	for name, test := range map[string]struct {
		endpoint Endpoint
		is, want admissionregistrationv1.WebhookClientConfig
	}{
		"no CA":                        {service, toService("webhooks", nil), toService("webhooks", one)},
		"another CA":                   {service, toService("webhooks", other), toService("webhooks", join(one, other))},
		"right":                        {service, toService("webhooks", one), toService("webhooks", one)},
		"the manifest's Service stays": {service, toService("other", nil), toService("other", one)},
		"outside of the cluster":       {local, toService("webhooks", one), toURL("https://127.0.0.1:9443/validate", one)},
		"outside, with another port":   {local, toURL("https://127.0.0.1:1/validate", one), toURL("https://127.0.0.1:9443/validate", one)},
		"outside, right":               {local, toURL("https://127.0.0.1:9443/validate", one), toURL("https://127.0.0.1:9443/validate", one)},
		"an address that was left":     {service, toURL("https://127.0.0.1:1/validate", other), toService("webhooks", join(one, other))},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.is.DeepCopy()
			changed := test.endpoint.restoreAdmission(got, one, time.Now())
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
			if differs := cmp.Diff(test.is, test.want) != ""; changed != differs {
				t.Errorf("it says that it changed something: %t", changed)
			}
		})
	}
}

// TestOwnWebhooks verifies that a webhook configuration of any size takes a constant amount of
// memory, unless it calls the operator.
func TestOwnWebhooks(t *testing.T) {
	to := func(namespace, name string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}, CABundle: []byte("ca"),
		}
	}
	configs := []admissionregistrationv1.WebhookClientConfig{
		to("system", "other"), to("system", "webhooks"), to("other", "webhooks"), {URL: ptr.To("https://webhooks.system.svc")},
	}
	filled := metav1.ObjectMeta{
		Name: "name", UID: "uid", ResourceVersion: "1", Annotations: map[string]string{"a": "long"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	kept := metav1.ObjectMeta{Name: "name", UID: "uid", ResourceVersion: "1"}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: *filled.DeepCopy()}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: *filled.DeepCopy()}
	for _, config := range configs {
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{ClientConfig: config})
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{ClientConfig: config})
	}
	for in, want := range map[any]any{
		mutating: &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: kept, Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: configs[1]}},
		},
		validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: kept, Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: configs[1]}},
		},
		"a tombstone": "a tombstone",
	} {
		got, err := service.ownWebhooks(in)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
