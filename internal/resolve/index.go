package resolve

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
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
	index := func(pick func(configMaps, secrets []string) []string) func(client.Object) []string {
		return func(object client.Object) []string {
			switch object := object.(type) {
			case *v1alpha2.NginxOperator:
				return pick(referencesOf(&object.Spec))
			case *appsv1.Deployment:
				needed := cached.ReferencesOf(&object.Spec.Template.Spec)
				return pick(needed.ConfigMaps, needed.AllSecrets())
			}
			return nil
		}
	}
	return map[string]func(client.Object) []string{
		ConfigMapIndex: index(func(configMaps, _ []string) []string { return configMaps }),
		SecretIndex:    index(func(_, secrets []string) []string { return secrets }),
	}
}

// referencesOf returns the names of the ConfigMaps and Secrets that a spec references, each once.
// The kubelet reads those of containers and volumes. The operator watches them because a Pod may
// wait for a missing one.
func referencesOf(spec *v1alpha2.NginxOperatorSpec) (configMaps, secrets []string) {
	if spec.Config != nil && spec.Config.ConfigMapRef != nil {
		configMaps = append(configMaps, spec.Config.ConfigMapRef.Name)
	}
	for _, value := range ptr.Deref(spec.Config, v1alpha2.Config{}).Values {
		if value.ValueFrom != nil && value.ValueFrom.ConfigMapKeyRef != nil {
			configMaps = append(configMaps, value.ValueFrom.ConfigMapKeyRef.Name)
		}
	}
	if spec.Content != nil {
		configMaps = append(configMaps, spec.Content.ConfigMapRef.Name)
	}

	for _, file := range spec.Files {
		if file.ConfigMapRef != nil {
			configMaps = append(configMaps, file.ConfigMapRef.Name)
		}
		if file.SecretRef != nil {
			secrets = append(secrets, file.SecretRef.Name)
		}
	}

	for _, tls := range spec.TLS {
		secrets = append(secrets, tls.SecretName)
	}

	if spec.PodTemplate != nil {
		for _, ref := range spec.PodTemplate.ImagePullSecrets {
			secrets = append(secrets, ref.Name)
		}
	}

	env := slices.Clone(spec.Env)
	for _, container := range slices.Concat(spec.InitContainers, spec.Sidecars) {
		env = append(env, container.Env...)
	}

	for _, variable := range env {
		from := ptr.Deref(variable.ValueFrom, v1alpha2.EnvVarSource{})
		if from.ConfigMapKeyRef != nil {
			configMaps = append(configMaps, from.ConfigMapKeyRef.Name)
		}
		if from.SecretKeyRef != nil {
			secrets = append(secrets, from.SecretKeyRef.Name)
		}
	}

	for i := range spec.Volumes {
		ofVolume, secretsOfVolume := volumeReferences(&spec.Volumes[i])
		configMaps, secrets = append(configMaps, ofVolume...), append(secrets, secretsOfVolume...)
	}

	return distinct(configMaps), distinct(secrets)
}

// volumeReferences returns the names of the ConfigMaps and Secrets that a volume references.
func volumeReferences(volume *v1alpha2.Volume) (configMaps, secrets []string) {
	if volume.ConfigMap != nil {
		configMaps = append(configMaps, volume.ConfigMap.Name)
	}
	if volume.Secret != nil {
		secrets = append(secrets, volume.Secret.SecretName)
	}
	if volume.CSI != nil && volume.CSI.NodePublishSecretRef != nil {
		secrets = append(secrets, volume.CSI.NodePublishSecretRef.Name)
	}
	if volume.Projected == nil {
		return configMaps, secrets
	}

	for _, source := range volume.Projected.Sources {
		if source.ConfigMap != nil {
			configMaps = append(configMaps, source.ConfigMap.Name)
		}
		if source.Secret != nil {
			secrets = append(secrets, source.Secret.Name)
		}
	}

	return configMaps, secrets
}

// distinct sorts the names, and removes duplicates.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
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
					log.FromContext(ctx).Error(err, "Failed to list the NginxOperators that reference an object", "index", index, "name", key)
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

		var requests []reconcile.Request
		for _, name := range distinct(names) {
			instance := types.NamespacedName{Namespace: key.Namespace, Name: name}
			requests = append(requests, reconcile.Request{NamespacedName: instance})
		}

		return requests
	}
}
