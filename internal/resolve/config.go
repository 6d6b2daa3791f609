package resolve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/pkg/reference"
)

// verdict is the conclusion about a configuration in a ConfigMap.
type verdict struct {
	hash, servers string
	blockers      []failure.Failure
}

// resolveConfig renders the configuration, and hashes the server blocks of a ConfigMap. It checks a
// configuration in a ConfigMap, unless the spec is invalid: the check would report the errors of the
// spec again. An inline configuration was checked with the spec.
func (r Resolver) resolveConfig(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) error {
	values, err := r.readValues(ctx, object, to)
	if err != nil {
		return err
	}

	isValid := len(to.blockers) == 0
	config := ptr.Deref(object.Spec.Config, v1alpha2.Config{})
	if config.ConfigMapRef == nil {
		if isValid {
			servers := nginxconf.Whole(config.Inline)
			if len(values) > 0 { // admission did not see the final text
				servers, to.blockers = checkConfig(&object.Spec, servers, values, nil)
				to.in.ServersHash = operand.ServersHash(servers)
			}
			if len(to.blockers) == 0 {
				to.in.Config, to.blockers = r.render(object, servers)
			}
		}
		return nil
	}

	cacheKey, err := configCacheKey(object, isValid, values)
	if err != nil {
		return err
	}

	name := config.ConfigMapRef.Name
	source := &corev1.ConfigMap{ObjectMeta: referenced(object, name)}
	var rendered operand.Configuration
	conclusion, exists, err := reference.Derive(ctx, r.ConfigMaps, cacheKey, source, func() verdict {
		servers, missing := serversIn(source, config.ConfigMapRef)
		if len(missing) > 0 || !isValid {
			return verdict{blockers: missing}
		}

		servers, invalid := checkConfig(&object.Spec, servers, values, nil)
		checked := verdict{blockers: invalid}
		if len(checked.blockers) == 0 {
			rendered, checked.blockers = r.render(object, servers)
			checked.hash, checked.servers = rendered.Hash, operand.ServersHash(servers)
		}

		return checked
	})

	switch {
	case err != nil:
		return err
	case !exists:
		to.block(notFound(configPath.Child("name"), "ConfigMap", name))
	default:
		rendered.Hash = conclusion.hash
		to.in.Config, to.in.ServersHash = rendered, conclusion.servers
		to.block(conclusion.blockers...)
	}

	return nil
}

var configPath = operand.SpecPath.Child("config", "configMapRef")

// serversIn returns the configuration in a ConfigMap, or the reasons why it has none.
func serversIn(source *corev1.ConfigMap, ref *v1alpha2.ConfigMapKeyReference) (nginxconf.Servers, []failure.Failure) {
	at, key := configPath.Child("key"), defaults.ConfigKey(ref)
	if !nginxconf.IsKeyMask(key) {
		text, hasKey := source.Data[key]
		if !hasKey {
			return nil, []failure.Failure{noKey(at, "ConfigMap", source.Name, key, inData)}
		}
		return nginxconf.Servers{{Text: text}}, nil
	}

	keys := operand.KeysOf(source, key)
	if blocker := notMatching(at, source.Name, key, len(keys)); blocker != nil {
		return nil, []failure.Failure{*blocker}
	}

	var servers nginxconf.Servers
	for _, key := range keys {
		text, hasKey := source.Data[key]
		switch {
		case !hasKey: // text that is not UTF-8 is in binaryData
			return nil, []failure.Failure{noKey(at, "ConfigMap", source.Name, key, inData)}
		case len(key) > nginxconf.MaxKey:
			message := fmt.Sprintf("%s: ConfigMap %q has a key with %d characters, the limit is %d; shorten %q",
				at, source.Name, len(key), nginxconf.MaxKey, key)
			return nil, []failure.Failure{{Reason: v1alpha2.ReasonInvalidReference, Message: message}}
		}
		servers = append(servers, nginxconf.Part{Key: key, Text: text})
	}

	return servers, nil
}

// inData is the part of a ConfigMap that has configurations.
const inData = " in its data"

// notMatching returns the blocker for a mask that matches no keys, or too many, or nil.
func notMatching(at *field.Path, name, mask string, keys int) *failure.Failure {
	switch {
	case keys == 0:
		return &failure.Failure{Reason: v1alpha2.ReasonReferenceNotFound, Message: fmt.Sprintf(
			"%s: ConfigMap %q has no key that matches %q; add one, or write another mask", at, name, mask)}
	case keys > operand.MaxKeys:
		return &failure.Failure{Reason: v1alpha2.ReasonInvalidReference, Message: fmt.Sprintf(
			"%s: ConfigMap %q has %d keys that match %q, the limit is %d; remove some, or write a mask that matches fewer keys",
			at, name, keys, mask, operand.MaxKeys)}
	}
	return nil
}

// configCacheKey identifies the check of a configuration. It includes the spec, because ports and
// certificates affect the result.
func configCacheKey(object *v1alpha2.NginxOperator, isValid bool, values nginxconf.Values) (string, error) {
	raw, err := json.Marshal([]any{object.Spec, values})
	if err != nil {
		return "", fmt.Errorf("failed to encode spec: %w", err)
	}

	sum := sha256.Sum256(raw)
	return fmt.Sprintf("config %t %s", isValid, sum), nil
}

// checkConfig returns a configuration with its values, and the errors in it and in the included files
// with a known text.
func checkConfig(
	spec *v1alpha2.NginxOperatorSpec, servers nginxconf.Servers, values nginxconf.Values, texts map[string]string,
) (nginxconf.Servers, []failure.Failure) {
	if servers.Size() == 0 {
		return nil, []failure.Failure{{
			Reason:  v1alpha2.ReasonInvalidConfiguration,
			Message: messagePrefix(spec.Config, "") + "the configuration is empty; write a server block, or remove spec.config",
		}}
	}

	servers, problems, _ := servers.Expand(spec, values)
	if len(problems) == 0 {
		problems, _ = nginxconf.Check(spec, servers, texts, nil)
	}

	var blockers []failure.Failure
	for _, problem := range problems {
		blockers = append(blockers, failure.Failure{
			Reason: v1alpha2.ReasonInvalidConfiguration, Message: messagePrefix(spec.Config, problem.Key) + problem.String(),
		})
	}
	return servers, blockers
}

// messagePrefix returns the start of messages about a configuration. key is the key that a mask
// matches, or "".
func messagePrefix(config *v1alpha2.Config, key string) string {
	ref := config.ConfigMapRef
	if ref == nil {
		return operand.SpecPath.Child("config", "inline").String() + ": "
	}
	return fmt.Sprintf("%s: ConfigMap %q, key %q: ", configPath, ref.Name, cmp.Or(key, defaults.ConfigKey(ref)))
}

// render returns the complete configuration for server blocks.
func (r Resolver) render(object *v1alpha2.NginxOperator, servers nginxconf.Servers) (operand.Configuration, []failure.Failure) {
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
	if len(to.blockers) > 0 || !includes || to.in.Files == nil && to.in.Directories == nil {
		return nil
	}

	cacheKey, err := configCacheKey(object, true, nil)
	if err != nil {
		return err
	}

	cacheKey = fmt.Sprintf("included %s %s %s", cacheKey, to.in.Config.Hash, ptr.Deref(to.in.Files, operand.Content{}).Hash)
	for _, directory := range to.in.Directories {
		cacheKey += " " + directory.Hash
	}

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
	spec, texts, err := r.readTexts(ctx, object, in)
	if err != nil {
		return nil, err
	}

	var blockers []failure.Failure
	outside, _ := nginxconf.CheckOutside(spec, texts)
	for _, problem := range outside {
		blockers = append(blockers, failure.Failure{
			Reason: v1alpha2.ReasonInvalidConfiguration, Message: problem.Field + ": " + problem.String(),
		})
	}

	if object.Spec.Config == nil {
		return blockers, nil
	}

	_, servers, err := r.readServers(ctx, object)
	if err != nil {
		return nil, err
	}

	_, invalid := checkConfig(spec, servers, nil, texts)
	return append(blockers, invalid...), nil
}
