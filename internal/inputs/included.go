package inputs

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/pkg/reference"
)

// included is the conclusion about a configuration together with the files of spec.files that it
// includes.
type included struct {
	blockers []failure.Failure
	// known reports whether all files could be read.
	known bool
}

// checkIncluded checks a valid configuration together with the files from ConfigMaps that it
// includes.
func (r Resolver) checkIncluded(ctx context.Context, object *v1alpha2.NginxOperator, in operand.Inputs) ([]failure.Failure, error) {
	if object.Spec.Config == nil || in.Files == nil {
		return nil, nil
	}
	question, err := cacheKey(object, true)
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(object.Spec.Files, func(file v1alpha2.File) bool { return file.ConfigMapRef != nil })
	source := named[corev1.ConfigMap](object, object.Spec.Files[first].ConfigMapRef.Name)
	question = fmt.Sprintf("included %s %s %s", question, in.Config.Hash, in.Files.Hash)
	out, _, err := reference.Derive(ctx, r.ConfigMaps, question, source, func() included {
		blockers, err := r.checkWithFiles(ctx, object, in)
		return included{blockers, err == nil}
	})
	if err == nil && !out.known {
		out.blockers, err = r.checkWithFiles(ctx, object, in)
	}
	return out.blockers, err
}

// checkWithFiles reads the configuration and the files from ConfigMaps, and returns the errors in
// them.
func (r Resolver) checkWithFiles(ctx context.Context, object *v1alpha2.NginxOperator, in operand.Inputs) ([]failure.Failure, error) {
	found, err := r.readDeclaredFiles(ctx, object, in)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, file := range object.Spec.Files {
		if text, isText := found.Text[operand.CopiedKey(file.Path)]; isText {
			texts[file.Path] = text
		}
	}
	config := object.Spec.Config
	if config.ConfigMapRef == nil {
		return checkConfig(&object.Spec, config.Inline, fmt.Sprintf("%s: ", operand.SpecPath.Child("config", "inline")), texts), nil
	}
	source, err := r.readConfigMap(ctx, object, config.ConfigMapRef.Name)
	if err != nil {
		return nil, err
	}
	return checkConfig(&object.Spec, source.Data[defaults.ConfigKey(config.ConfigMapRef)], messagePrefix(config.ConfigMapRef), texts), nil
}

// messagePrefix returns the start of messages about a configuration in a ConfigMap.
func messagePrefix(reference *v1alpha2.ConfigMapKeyReference) string {
	path := operand.SpecPath.Child("config", "configMapRef")
	return fmt.Sprintf("%s: ConfigMap %q, key %q: ", path, reference.Name, defaults.ConfigKey(reference))
}
