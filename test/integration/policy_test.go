package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/certificates"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
	"github.com/example/nginx-operator/test/harness/policy"
)

// TestOwnWebhooks verifies the policies of a limited installation on an API server of its own: a
// holder of the operator's token can change only what the operator changes, an administrator can
// change everything, and the operator starts and repairs its webhooks without a refusal.
func TestOwnWebhooks(t *testing.T) {
	useServerOfItsOwn(t, watchedNamespace, laterNamespace)

	// The group allows every request, so that only the policies refuse one.
	config := rest.CopyConfig(suite.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:masters", "system:serviceaccounts"}}
	operator := must1(client.New(config, client.Options{Scheme: scheme.New()}))(t)
	// The API server cannot reach the Service of the webhooks here. It would wait for two seconds
	// in each write of the CRD.
	updateGuarded(t, mutatingKind, wellknown.MutatingName, func(configuration map[string]any) {
		webhook := configuration["webhooks"].([]any)[0].(map[string]any)
		webhook["objectSelector"] = map[string]any{"matchLabels": map[string]any{"example.com/reachable": "true"}}
	})
	awaitPolicies(t, operator)
	refusedWrites(t, operator)
	operatorRepairs(t)
}

// guardedObject returns one of the operator's own objects as it is stored.
func guardedObject(t *testing.T, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: name}, object))
	return object
}

// updateGuarded changes one of the operator's own objects as an administrator.
func updateGuarded(t *testing.T, kind schema.GroupVersionKind, name string, change func(object map[string]any)) {
	t.Helper()
	must(t, harness.RetryOnConflict(func() error {
		object := guardedObject(t, kind, name)
		change(object.Object)
		return suite.admin.Update(t.Context(), object)
	}))
}

var (
	mutatingKind   = admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
	validatingKind = admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration")
	crdKind        = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
)

// awaitPolicies waits until both policies refuse. The API server reads new policies with a delay.
func awaitPolicies(t *testing.T, operator client.Client) {
	t.Helper()
	for kind, name := range map[schema.GroupVersionKind]string{mutatingKind: wellknown.MutatingName, crdKind: wellknown.CRDName} {
		waitFor(t, func() error {
			object := guardedObject(t, kind, name)
			object.SetLabels(map[string]string{"a": "b"})
			if err := operator.Update(t.Context(), object, client.DryRunAll); !apierrors.IsInvalid(err) {
				return errors.Join(fmt.Errorf("the policy for %s is not in effect", kind.Kind), err)
			}
			return nil
		})
	}
}

// refusedWrites tries all writes as the operator and as an administrator, whom no policy refuses.
func refusedWrites(t *testing.T, operator client.Client) {
	t.Helper()
	ca := must1(certificates.New([]string{"webhooks"}, time.Hour))(t)[certificates.CAKey]
	for _, test := range []struct {
		kind   schema.GroupVersionKind
		name   string
		status bool
		writes []policy.Write
	}{
		{
			mutatingKind, wellknown.MutatingName, false,
			append(policy.WritesOfWebhooks(operatorNamespace, ca), policy.WritesOfMutatingWebhooks()...),
		},
		{validatingKind, wellknown.ValidatingName, false, policy.WritesOfWebhooks(operatorNamespace, ca)},
		{crdKind, wellknown.CRDName, false, policy.WritesOfCRD(operatorNamespace, ca)},
		{crdKind, wellknown.CRDName, true, policy.WritesOfStatus()},
	} {
		for _, write := range test.writes {
			original := guardedObject(t, test.kind, test.name)
			if write.Prepare != nil {
				updateGuarded(t, test.kind, test.name, write.Prepare)
			}
			// Controllers of the API server write the status of a CRD, too.
			try := func(c client.Client) error {
				return harness.RetryOnConflict(func() error {
					changed := guardedObject(t, test.kind, test.name)
					write.Change(changed.Object)
					if test.status {
						return c.Status().Update(t.Context(), changed, client.DryRunAll)
					}
					return c.Update(t.Context(), changed, client.DryRunAll)
				})
			}
			about := fmt.Sprintf("%s, status %t, %s", test.kind.Kind, test.status, write.Name)
			if err := try(suite.admin); err != nil {
				t.Errorf("%s: an administrator is refused: %v", about, err)
			}
			switch err := try(operator); {
			case write.Refusal == "" && err != nil:
				t.Errorf("%s: the operator is refused: %v", about, err)
			case write.Refusal != "" && (err == nil || !strings.Contains(err.Error(), write.Refusal)):
				t.Errorf("%s: want a refusal with %q, got %v", about, write.Refusal, err)
			}
			if write.Prepare != nil {
				updateGuarded(t, test.kind, test.name, func(object map[string]any) {
					for _, field := range []string{"webhooks", "spec"} {
						if value := original.Object[field]; value != nil {
							object[field] = value
						}
					}
				})
			}
		}
	}
}

// operatorRepairs starts the operator with a Service instead of a URL, and verifies that it sets
// the CA and the conversion, also after an administrator removed them, and that nothing refused it.
func operatorRepairs(t *testing.T) {
	t.Helper()
	service := must1(harness.NewService())(t)
	t.Cleanup(service.Close)
	operator := must1(harness.StartManager(harness.ManagerOptions{
		Binary: suite.binary, Kubeconfig: suite.kubeconfig, Namespace: operatorNamespace, Dir: suite.dir, Service: service,
		Args: []string{"--leader-elect", "--leader-election-namespace=" + operatorNamespace, "--webhook-url="},
		Env:  []string{"RELATED_IMAGE_NGINX=" + operandImage, "NGINX_OPERATOR_WATCH_NAMESPACES=" + watchedNamespace},
	}))(t)
	t.Cleanup(operator.Kill)
	waitFor(t, func() error { return repaired(t) })

	updateGuarded(t, crdKind, wellknown.CRDName, func(crd map[string]any) {
		crd["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "None"}
	})
	for kind, name := range map[schema.GroupVersionKind]string{
		mutatingKind: wellknown.MutatingName, validatingKind: wellknown.ValidatingName,
	} {
		updateGuarded(t, kind, name, func(configuration map[string]any) {
			for _, webhook := range configuration["webhooks"].([]any) {
				webhook.(map[string]any)["clientConfig"] = map[string]any{"url": "https://127.0.0.1:9443/old"}
			}
		})
	}
	waitFor(t, func() error { return repaired(t) })

	writes := 0
	for _, request := range must1(apiserver.ReadAudit(suite.auditLog))(t) {
		resource := request.ObjectRef.Resource
		if !request.IsWrite() || !strings.HasSuffix(resource, "webhookconfigurations") && resource != "customresourcedefinitions" {
			continue
		}
		writes++
		// A conflict is repeated.
		if code := request.ResponseStatus.Code; code >= 400 && code != 409 {
			t.Errorf("%s was refused with %d", request.Permission(), code)
		}
	}
	if writes < 6 || strings.Contains(operator.Log(), "denied request") {
		t.Errorf("the operator wrote %d times: %s", writes, operator.Summary())
	}
}

// repaired returns an error unless the conversion and all webhooks call the operator's Service with
// a CA.
func repaired(t *testing.T) error {
	t.Helper()
	var clients []any
	crd := guardedObject(t, crdKind, wellknown.CRDName).Object
	conversion, _, _ := unstructured.NestedMap(crd, "spec", "conversion", "webhook", "clientConfig")
	clients = append(clients, conversion)
	for kind, name := range map[schema.GroupVersionKind]string{
		mutatingKind: wellknown.MutatingName, validatingKind: wellknown.ValidatingName,
	} {
		for _, webhook := range guardedObject(t, kind, name).Object["webhooks"].([]any) {
			clients = append(clients, webhook.(map[string]any)["clientConfig"])
		}
	}
	for _, one := range clients {
		config, _ := one.(map[string]any)
		name, _, _ := unstructured.NestedString(config, "service", "name")
		if name != "nginx-operator-webhook-service" || config["caBundle"] == nil {
			return errors.Join(errors.New("a webhook is not repaired"), fmt.Errorf("%v", config))
		}
	}
	return nil
}
