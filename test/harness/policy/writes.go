package policy

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime"
)

// Write is an update of the operator's own webhook configurations or of its CRD by its account.
type Write struct {
	Name string
	// Prepare is an earlier change by an administrator, or nil.
	Prepare func(object map[string]any)
	Change  func(object map[string]any)
	// Refusal is a part of the message of the policy, or empty if the policy allows the write.
	Refusal string
}

type fields = map[string]any

// set returns a change that sets a field of the mapping at a path. A number is an index. Missing
// mappings are created. The value nil removes the field.
func set(field string, value any, path ...any) func(fields) {
	return func(object fields) {
		var at any = object
		for _, step := range path {
			switch step := step.(type) {
			case int:
				at = at.([]any)[step]
			case string:
				if at.(fields)[step] == nil {
					at.(fields)[step] = fields{}
				}
				at = at.(fields)[step]
			}
		}
		if value == nil {
			delete(at.(fields), field)
			return
		}
		at.(fields)[field] = runtime.DeepCopyJSONValue(value)
	}
}

// ownService is the name of the Service of the webhooks.
const ownService = "nginx-operator-webhook-service"

func toService(namespace, name string) fields {
	return fields{"service": fields{"namespace": namespace, "name": name, "path": "/convert", "port": int64(443)}}
}

func toURL() fields { return fields{"url": "https://attacker.example.com/convert"} }

// writesOfMetadata are refused for each object.
func writesOfMetadata() []Write {
	owner := fields{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "view", "uid": "01234567-0123-0123-0123-0123456789ab",
	}
	out := []Write{
		{Name: "a label", Change: set("a", "b", "metadata", "labels")},
		{Name: "no labels", Change: set("labels", nil, "metadata")},
		{Name: "an annotation", Change: set("a", "b", "metadata", "annotations")},
		{Name: "a finalizer", Change: set("finalizers", []any{"example.com/a"}, "metadata")},
		{Name: "an owner", Change: set("ownerReferences", []any{owner}, "metadata")},
	}
	for i := range out {
		out[i].Refusal = "must not change metadata"
	}
	return out
}

// WritesOfWebhooks returns writes of a webhook configuration by the operator in a namespace. ca is
// a certificate (PEM).
func WritesOfWebhooks(namespace string, ca []byte) []Write {
	const (
		names, call, keep, only = "must not add, remove, rename, or reorder", "must call its own Service",
			"must not change the Service", "must change only the clientConfig"
	)
	hook := func(field string, value any) func(fields) { return set(field, value, "webhooks", 0) }
	client := func(field string, value any) func(fields) { return set(field, value, "webhooks", 0, "clientConfig") }
	service := func(field string, value any) func(fields) {
		return set(field, value, "webhooks", 0, "clientConfig", "service")
	}
	selector := fields{"matchLabels": fields{"a": "b"}}
	everything := []any{fields{
		"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "operations": []any{"*"}, "resources": []any{"*/*"}, "scope": "*",
	}}
	prepared := hook("clientConfig", toURL())
	return append(writesOfMetadata(), []Write{
		{Name: "nothing", Change: func(fields) {}},
		{Name: "a CA", Change: client("caBundle", base64.StdEncoding.EncodeToString(ca))},
		{Name: "the own Service instead of a url", Prepare: prepared, Change: hook("clientConfig", toService(namespace, ownService))},
		{
			Name: "another Service instead of a url", Prepare: prepared,
			Change: hook("clientConfig", toService("default", "attacker")), Refusal: call,
		},
		{Name: "a CA for a url", Prepare: prepared, Change: client("caBundle", base64.StdEncoding.EncodeToString(ca)), Refusal: call},
		{Name: "a url", Change: hook("clientConfig", toURL()), Refusal: call},
		{Name: "another Service", Change: service("name", "attacker"), Refusal: call},
		{Name: "a Service of another namespace", Change: service("namespace", "default"), Refusal: call},
		{Name: "another path", Change: service("path", "/attack"), Refusal: keep},
		{Name: "another port", Change: service("port", int64(8443)), Refusal: keep},
		{Name: "rules", Change: hook("rules", everything), Refusal: only},
		{Name: "namespaceSelector", Change: hook("namespaceSelector", selector), Refusal: only},
		{Name: "objectSelector", Change: hook("objectSelector", selector), Refusal: only},
		{Name: "failurePolicy", Change: hook("failurePolicy", "Fail"), Refusal: only},
		{Name: "matchPolicy", Change: hook("matchPolicy", "Equivalent"), Refusal: only},
		{Name: "matchConditions", Change: hook("matchConditions", []any{fields{"name": "none", "expression": "false"}}), Refusal: only},
		{Name: "sideEffects", Change: hook("sideEffects", "NoneOnDryRun"), Refusal: only},
		{Name: "timeoutSeconds", Change: hook("timeoutSeconds", int64(29)), Refusal: only},
		{Name: "admissionReviewVersions", Change: hook("admissionReviewVersions", []any{"v1", "v1beta1"}), Refusal: only},
		{Name: "another name", Change: hook("name", "a.example.com"), Refusal: names},
		{Name: "no webhooks", Change: set("webhooks", nil), Refusal: names},
		{Name: "a new webhook", Refusal: names, Change: func(object fields) {
			added := runtime.DeepCopyJSON(object["webhooks"].([]any)[0].(fields))
			added["name"] = "a.example.com"
			object["webhooks"] = append(object["webhooks"].([]any), added)
		}},
	}...)
}

// WritesOfMutatingWebhooks returns more writes of the MutatingWebhookConfiguration, which has more
// than one webhook.
func WritesOfMutatingWebhooks() []Write {
	const refusal = "must not add, remove, rename, or reorder"
	return []Write{
		{Name: "reinvocationPolicy", Change: set("reinvocationPolicy", "IfNeeded", "webhooks", 0), Refusal: "must change only the clientConfig"},
		{Name: "one webhook less", Refusal: refusal, Change: func(object fields) { object["webhooks"] = object["webhooks"].([]any)[1:] }},
		{Name: "another order", Refusal: refusal, Change: func(object fields) {
			webhooks := object["webhooks"].([]any)
			webhooks[0], webhooks[1] = webhooks[1], webhooks[0]
		}},
	}
}

// WritesOfCRD returns writes of the CRD by the operator in a namespace. ca is a certificate (PEM).
func WritesOfCRD(namespace string, ca []byte) []Write {
	const only, call = "must change only conversion", "must call its own Service"
	converts := func(client fields) func(fields) {
		return set("conversion", fields{
			"strategy": "Webhook", "webhook": fields{"conversionReviewVersions": []any{"v1"}, "clientConfig": client},
		}, "spec")
	}
	own := converts(toService(namespace, ownService))
	none := set("conversion", fields{"strategy": "None"}, "spec")
	return append(writesOfMetadata(), []Write{
		{Name: "nothing", Change: func(fields) {}},
		{Name: "the own Service", Change: own},
		{
			Name: "a CA", Prepare: own,
			Change: set("caBundle", base64.StdEncoding.EncodeToString(ca), "spec", "conversion", "webhook", "clientConfig"),
		},
		{Name: "the own Service instead of none", Prepare: none, Change: own},
		{Name: "the own Service instead of a url", Prepare: converts(toURL()), Change: own},
		{Name: "OLM's Service", Change: converts(toService(namespace, "nginx-operator-controller-manager-service"))},
		{Name: "no conversion", Prepare: own, Change: none, Refusal: call},
		{Name: "a url", Change: converts(toURL()), Refusal: call},
		{Name: "another Service", Change: converts(toService(namespace, "attacker")), Refusal: call},
		{Name: "a Service of another namespace", Change: converts(toService("default", ownService)), Refusal: call},
		{Name: "a version that is not served", Change: set("served", false, "spec", "versions", 0), Refusal: only},
		{Name: "another schema", Change: set("description", "a", "spec", "versions", 0, "schema", "openAPIV3Schema"), Refusal: only},
		{Name: "another storage version", Refusal: only, Change: func(object fields) {
			set("storage", true, "spec", "versions", 0)(object)
			set("storage", false, "spec", "versions", 1)(object)
		}},
		{Name: "no versions but the stored one", Refusal: only, Change: func(object fields) {
			versions := object["spec"].(fields)["versions"].([]any)
			object["spec"].(fields)["versions"] = versions[1:]
		}},
		{Name: "names", Change: set("categories", []any{"a"}, "spec", "names"), Refusal: only},
	}...)
}

// WritesOfStatus returns writes of the status of the CRD by the operator.
func WritesOfStatus() []Write {
	const only = "must change only storedVersions"
	return []Write{
		{Name: "storedVersions", Change: set("storedVersions", []any{"v1alpha1", "v1alpha2"}, "status")},
		{Name: "conditions", Change: set("conditions", []any{fields{"type": "Established", "status": "False"}}, "status"), Refusal: only},
		{Name: "acceptedNames", Change: set("singular", "other", "status", "acceptedNames"), Refusal: only},
	}
}
