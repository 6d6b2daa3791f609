package resolve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/pkg/reference"
)

// verdict is the conclusion about a configuration in a ConfigMap.
type verdict struct {
	hasKey        bool
	hash, servers string
	blockers      []failure.Failure
}

// resolveConfig renders the configuration, and hashes the server blocks of a ConfigMap. It checks a
// configuration in a ConfigMap, unless the spec is invalid: the check would report the errors of the
// spec again. An inline configuration was checked with the spec.
func (r Resolver) resolveConfig(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) error {
	isValid := len(to.blockers) == 0
	config := ptr.Deref(object.Spec.Config, v1alpha2.Config{})
	if config.ConfigMapRef == nil {
		if isValid {
			to.in.Config, to.blockers = r.render(object, config.Inline)
		}
		return nil
	}

	cacheKey, err := configCacheKey(object, isValid)
	if err != nil {
		return err
	}

	name, key := config.ConfigMapRef.Name, defaults.ConfigKey(config.ConfigMapRef)
	path := operand.SpecPath.Child("config", "configMapRef")
	source := &corev1.ConfigMap{ObjectMeta: referenced(object, name)}
	var rendered operand.Configuration
	conclusion, exists, err := reference.Derive(ctx, r.ConfigMaps, cacheKey, source, func() verdict {
		text, hasKey := source.Data[key]
		if !hasKey || !isValid {
			return verdict{hasKey: hasKey}
		}

		checked := verdict{hasKey: true, blockers: checkConfig(&object.Spec, text, messagePrefix(config.ConfigMapRef), nil)}
		if len(checked.blockers) == 0 {
			rendered, checked.blockers = r.render(object, text)
			checked.hash, checked.servers = rendered.Hash, operand.ShortHash(text)
		}

		return checked
	})

	switch {
	case err != nil:
		return err
	case !exists:
		to.block(notFound(path.Child("name"), "ConfigMap", name))
	case !conclusion.hasKey && !validation.IsMask(key): // the spec has an error for a mask
		to.block(noKey(path.Child("key"), "ConfigMap", name, key, " in its data"))
	default:
		rendered.Hash = conclusion.hash
		to.in.Config, to.in.ServersHash = rendered, conclusion.servers
		to.block(conclusion.blockers...)
	}

	return nil
}

// configCacheKey identifies the check of a configuration. It includes the spec, because ports and
// certificates affect the result.
func configCacheKey(object *v1alpha2.NginxOperator, isValid bool) (string, error) {
	raw, err := json.Marshal(object.Spec)
	if err != nil {
		return "", fmt.Errorf("failed to encode spec: %w", err)
	}

	sum := sha256.Sum256(raw)
	return fmt.Sprintf("config %t %s", isValid, sum), nil
}

// checkConfig returns the errors in a configuration and in the included files with a known text.
func checkConfig(spec *v1alpha2.NginxOperatorSpec, text, prefix string, texts map[string]string) []failure.Failure {
	if text == "" {
		return []failure.Failure{{
			Reason:  v1alpha2.ReasonInvalidConfiguration,
			Message: prefix + "the configuration is empty; write a server block, or remove spec.config",
		}}
	}

	var blockers []failure.Failure
	problems, _ := nginxconf.Check(spec, text, texts, nil)
	for _, problem := range problems {
		blockers = append(blockers, failure.Failure{
			Reason: v1alpha2.ReasonInvalidConfiguration, Message: prefix + problem.String(),
		})
	}

	return blockers
}

// messagePrefix returns the start of messages about a configuration in a ConfigMap.
func messagePrefix(reference *v1alpha2.ConfigMapKeyReference) string {
	path := operand.SpecPath.Child("config", "configMapRef")
	return fmt.Sprintf("%s: ConfigMap %q, key %q: ", path, reference.Name, defaults.ConfigKey(reference))
}

// render returns the complete configuration for server blocks.
func (r Resolver) render(object *v1alpha2.NginxOperator, servers string) (operand.Configuration, []failure.Failure) {
	rendered, err := r.Configuration(object, servers)
	if err != nil {
		return rendered, []failure.Failure{{Reason: v1alpha2.ReasonInvalidConfiguration, Message: err.Error()}}
	}
	return rendered, nil
}

// included is the conclusion about a configuration together with the files of spec.files that it
// includes.
type included struct {
	blockers []failure.Failure
	// known reports whether all files could be read.
	known bool
}

// checkIncluded checks a valid configuration and the texts of spec.nginx together with the files
// from ConfigMaps that they include.
func (r Resolver) checkIncluded(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) error {
	tuning := defaults.Nginx(&object.Spec)
	includes := object.Spec.Config != nil || tuning.Main != "" || tuning.Events != ""
	if len(to.blockers) > 0 || !includes || to.in.Files == nil {
		return nil
	}

	cacheKey, err := configCacheKey(object, true)
	if err != nil {
		return err
	}

	cacheKey = fmt.Sprintf("included %s %s %s", cacheKey, to.in.Config.Hash, to.in.Files.Hash)
	first := slices.IndexFunc(object.Spec.Files, func(file v1alpha2.File) bool { return file.ConfigMapRef != nil })
	source := &corev1.ConfigMap{ObjectMeta: referenced(object, object.Spec.Files[first].ConfigMapRef.Name)}
	conclusion, _, err := reference.Derive(ctx, r.ConfigMaps, cacheKey, source, func() included {
		blockers, err := r.checkWithFiles(ctx, object, to.in)
		return included{blockers, err == nil}
	})
	if err == nil && !conclusion.known {
		conclusion.blockers, err = r.checkWithFiles(ctx, object, to.in)
	}

	to.blockers = conclusion.blockers
	return err
}

// checkWithFiles reads the configuration and the files from ConfigMaps, and returns the errors in
// them.
func (r Resolver) checkWithFiles(
	ctx context.Context, object *v1alpha2.NginxOperator, in operand.Inputs,
) ([]failure.Failure, error) {
	files, err := r.readDeclaredFiles(ctx, object, in)
	if err != nil {
		return nil, err
	}

	texts := map[string]string{}
	for _, file := range object.Spec.Files {
		if text, isText := files.Text[operand.CopiedKey(file.Path)]; isText {
			texts[file.Path] = text
		}
	}

	var blockers []failure.Failure
	outside, _ := nginxconf.CheckOutside(&object.Spec, texts)
	for _, problem := range outside {
		blockers = append(blockers, failure.Failure{
			Reason: v1alpha2.ReasonInvalidConfiguration, Message: problem.Field + ": " + problem.String(),
		})
	}

	config := object.Spec.Config
	switch {
	case config == nil:
		return blockers, nil
	case config.ConfigMapRef == nil:
		prefix := operand.SpecPath.Child("config", "inline").String() + ": "
		return append(blockers, checkConfig(&object.Spec, config.Inline, prefix, texts)...), nil
	}

	_, servers, err := r.readServers(ctx, object)
	if err != nil {
		return nil, err
	}

	return append(blockers, checkConfig(&object.Spec, servers, messagePrefix(config.ConfigMapRef), texts)...), nil
}
