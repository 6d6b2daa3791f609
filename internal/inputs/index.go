package inputs

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/pkg/reference"
)

// ConfigMapIndex and SecretIndex are indexes of the cached NginxOperators and Deployments by the
// names of ConfigMaps and Secrets: of those that a spec references, and of those that running Pods
// need. They differ while the spec is not applied.
const (
	ConfigMapIndex = "configMap"
	SecretIndex    = "secret"
)

// Indexes returns ConfigMapIndex and SecretIndex with the functions that return the names.
func Indexes() map[string]func(client.Object) []string {
	return map[string]func(client.Object) []string{
		ConfigMapIndex: indexOf(namedConfigMaps, func(needed cached.References) []string { return needed.ConfigMaps }),
		SecretIndex:    indexOf(namedSecrets, cached.References.AllSecrets),
	}
}

// indexOf returns a function that returns the names in a spec, or in a Pod template.
func indexOf(ofSpec func(*v1alpha2.NginxOperatorSpec) []string, ofPods func(cached.References) []string) func(client.Object) []string {
	return func(object client.Object) []string {
		switch object := object.(type) {
		case *v1alpha2.NginxOperator:
			return ofSpec(&object.Spec)
		case *appsv1.Deployment:
			return ofPods(cached.ReferencesOf(&object.Spec.Template.Spec))
		}
		return nil
	}
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

// Referrers returns a function that finds the NginxOperators that reference an object, or whose
// Pods need it, by an index.
func Referrers(reader client.Reader, index string) reference.Referrers {
	return func(ctx context.Context, key types.NamespacedName) []reconcile.Request {
		specs, deployments := &v1alpha2.NginxOperatorList{}, &appsv1.DeploymentList{}
		var names []string
		for _, value := range []string{key.Name, cached.AnyReference} {
			for _, list := range []client.ObjectList{specs, deployments} {
				err := reader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{index: value},
					client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
				if err != nil {
					log.FromContext(ctx).Error(err, "Failed to find who names an object", "index", index, "name", key)
					return nil
				}
			}
			for i := range specs.Items {
				names = append(names, specs.Items[i].Name)
			}
			for i := range deployments.Items {
				if name := cached.ControllingInstance(&deployments.Items[i]); name != "" {
					names = append(names, name)
				}
			}
		}
		var out []reconcile.Request
		for _, name := range distinct(names) {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: name}})
		}
		return out
	}
}
