package sidecar

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// Validate returns what is wrong with a SidecarSet: what would not work, and what would make the API server refuse every
// Pod that is selected. Rules that the schema has are here as well, because Inject asks for objects that were stored
// before the schema or the webhook was there.
func Validate(set *v1alpha1.SidecarSet) field.ErrorList {
	var errs field.ErrorList
	for _, message := range utilvalidation.IsDNS1123Label(set.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), set.Name, message))
	}
	spec, path := &set.Spec, field.NewPath("spec")
	errs = append(errs, validateSelector(spec, path.Child("selector"))...)
	volumes := sets.New[string]()
	for i := range spec.Volumes {
		errs = append(errs, validateVolume(&spec.Volumes[i], volumes, path.Child("volumes").Index(i))...)
	}
	at := path.Child("containers")
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(at, "declare at least one container"))
	}
	names := sets.New[string]()
	for i := range spec.Containers {
		errs = append(errs, validateContainer(&spec.Containers[i], names, volumes, at.Index(i))...)
	}
	return errs
}

func validateSelector(spec *v1alpha1.SidecarSetSpec, path *field.Path) field.ErrorList {
	const hint = "say which Pods get the sidecars, for example matchLabels: {app: nginx}"
	if spec.Selector == nil {
		return field.ErrorList{field.Required(path, hint)}
	}
	if len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(path, "{}", "an empty selector selects every Pod of the cluster; "+hint)}
	}
	return metav1validation.ValidateLabelSelector(spec.Selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// validateVolume adds the volume's name to those that are known.
func validateVolume(volume *corev1.Volume, known sets.Set[string], path *field.Path) field.ErrorList {
	errs := validateName(volume.Name, known, path.Child("name"))
	if count := sources(volume); count > 1 {
		errs = append(errs, field.Invalid(path, volume.Name, "a volume has one source; remove the others"))
	}
	required := func(value string, at *field.Path) {
		if value == "" {
			errs = append(errs, field.Required(at, ""))
		}
	}
	switch {
	case volume.HostPath != nil:
		required(volume.HostPath.Path, path.Child("hostPath", "path"))
	case volume.ConfigMap != nil:
		required(volume.ConfigMap.Name, path.Child("configMap", "name"))
	case volume.Secret != nil:
		required(volume.Secret.SecretName, path.Child("secret", "secretName"))
	case volume.PersistentVolumeClaim != nil:
		required(volume.PersistentVolumeClaim.ClaimName, path.Child("persistentVolumeClaim", "claimName"))
	}
	return errs
}

// sources counts the sources of a volume; the API has one field for each kind.
func sources(volume *corev1.Volume) int {
	count := 0
	for _, source := range reflect.ValueOf(volume.VolumeSource).Fields() {
		if !source.IsNil() {
			count++
		}
	}
	return count
}

// validateName adds a name to those that are known.
func validateName(name string, known sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if known.Has(name) {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	known.Insert(name)
	var errs field.ErrorList
	for _, message := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}

func validateMounts(mounts []corev1.VolumeMount, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range mounts {
		mount, at := &mounts[i], path.Index(i)
		if !volumes.Has(mount.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), mount.Name))
		}
		if mount.MountPath == "" {
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		}
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("subPathExpr"), mount.SubPathExpr, "cannot be set together with subPath"))
		}
	}
	return errs
}

func unsupported[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	if value == "" {
		return nil
	}
	for _, one := range allowed {
		if value == one {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func between(value, least, most int32, path *field.Path) field.ErrorList {
	if value < least || value > most {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be between %d and %d", least, most))}
	}
	return nil
}
