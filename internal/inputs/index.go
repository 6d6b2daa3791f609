package inputs

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/reference"
)

// ConfigMapIndex and SecretIndex are indexes of the cached NginxOperators by the names of the
// referenced ConfigMaps and Secrets.
const (
	ConfigMapIndex = "configMap"
	SecretIndex    = "secret"
)

// Indexes returns ConfigMapIndex and SecretIndex with the functions that return the names.
func Indexes() map[string]func(*v1alpha2.NginxOperatorSpec) []string {
	return map[string]func(*v1alpha2.NginxOperatorSpec) []string{ConfigMapIndex: namedConfigMaps, SecretIndex: namedSecrets}
}

// namedConfigMaps returns the names of all ConfigMaps that a spec references.
func namedConfigMaps(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	if spec.Config != nil && spec.Config.ConfigMapRef != nil {
		out = append(out, spec.Config.ConfigMapRef.Name)
	}
	if spec.Content != nil {
		out = append(out, spec.Content.ConfigMapRef.Name)
	}
	for _, file := range spec.Files {
		if file.ConfigMapRef != nil {
			out = append(out, file.ConfigMapRef.Name)
		}
	}
	configMaps, _ := workloadReferences(spec)
	return append(out, configMaps...)
}

// namedSecrets returns the names of all Secrets that a spec references.
func namedSecrets(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	for _, tls := range spec.TLS {
		out = append(out, tls.SecretName)
	}
	for _, file := range spec.Files {
		if file.SecretRef != nil {
			out = append(out, file.SecretRef.Name)
		}
	}
	_, secrets := workloadReferences(spec)
	return append(out, secrets...)
}

// Referrers returns a function that finds the NginxOperators that reference an object, by an index.
func Referrers(reader client.Reader, index string) reference.Referrers {
	return func(ctx context.Context, key types.NamespacedName) []reconcile.Request {
		list := &v1alpha2.NginxOperatorList{}
		err := reader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{index: key.Name},
			client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to find who names an object", "index", index, "name", key)
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		slices.SortFunc(out, func(a, b reconcile.Request) int { return strings.Compare(a.Name, b.Name) })
		return out
	}
}
