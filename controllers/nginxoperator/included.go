package nginxoperator

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/reference"
)

// included is what is concluded about a configuration together with what it includes of spec.files.
type included struct {
	blockers []failure
	// known: everything could be read.
	known bool
}

// checkIncluded checks a configuration that has nothing wrong in itself together with what it includes of ConfigMaps.
func (r *Reconciler) checkIncluded(ctx context.Context, object *v1alpha2.NginxOperator, in inputs) ([]failure, error) {
	if object.Spec.Config == nil || in.files == nil {
		return nil, nil
	}
	question, err := questionOf(object, true)
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(object.Spec.Files, func(file v1alpha2.File) bool { return file.ConfigMapRef != nil })
	source := named[corev1.ConfigMap](object, object.Spec.Files[first].ConfigMapRef.Name)
	question = fmt.Sprintf("included %s %s %s", question, in.config.hash, in.files.hash)
	out, _, err := reference.Derive(ctx, r.ConfigMaps, question, source, func() included {
		blockers, err := r.checkWithFiles(ctx, object, in)
		return included{blockers, err == nil}
	})
	if err == nil && !out.known {
		out.blockers, err = r.checkWithFiles(ctx, object, in)
	}
	return out.blockers, err
}

// checkWithFiles reads the configuration and the files that come from ConfigMaps, and returns what is wrong with them together.
func (r *Reconciler) checkWithFiles(ctx context.Context, object *v1alpha2.NginxOperator, in inputs) ([]failure, error) {
	found, err := r.readDeclaredFiles(ctx, object, in)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, file := range object.Spec.Files {
		if text, isText := found.text[copiedKey(file.Path)]; isText {
			texts[file.Path] = text
		}
	}
	config := object.Spec.Config
	if config.ConfigMapRef == nil {
		return checkConfig(&object.Spec, config.Inline, fmt.Sprintf("%s: ", specPath.Child("config", "inline")), texts), nil
	}
	source, err := r.readConfigMap(ctx, object, config.ConfigMapRef.Name)
	if err != nil {
		return nil, err
	}
	return checkConfig(&object.Spec, source.Data[defaults.ConfigKey(config.ConfigMapRef)], whereIn(config.ConfigMapRef), texts), nil
}

// whereIn begins what is said of a configuration in a ConfigMap.
func whereIn(reference *v1alpha2.ConfigMapKeyReference) string {
	return fmt.Sprintf("%s: ConfigMap %q, key %q: ", specPath.Child("config", "configMapRef"), reference.Name, defaults.ConfigKey(reference))
}
