// Package inputs reads and checks the spec of an NginxOperator and the ConfigMaps and Secrets that
// it references. The result is the inputs of the children, or the reasons why the spec cannot be
// applied.
package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/reference"
)

// Resolver reads and checks the objects that specs reference. It is a value. The trackers have all
// state.
type Resolver struct {
	operand.Release
	// ConfigMaps and Secrets read the referenced objects, and remember conclusions until the
	// objects change.
	ConfigMaps, Secrets *reference.Tracker
}

// Resolve checks the spec and the objects that it references. refused are the refused values of the
// spec (operand.Release.Refusals) that are not in effect. Resolve returns the inputs of the
// children, and the reasons why the spec cannot be applied, in the order of the spec's fields. If
// there is such a reason, the inputs are incomplete. It returns an error if an object cannot be
// read.
func (r Resolver) Resolve(
	ctx context.Context, object *v1alpha2.NginxOperator, refused []failure.Failure,
) (operand.Inputs, []failure.Failure, error) {
	in := r.Inputs(object)
	blockers := specBlockers(object, refused)

	config, servers, found, err := r.resolveConfig(ctx, object, len(blockers) == 0)
	if err != nil {
		return in, nil, err
	}
	in.Config, in.ServersHash, blockers = config, servers, append(blockers, found...)

	if in.Content, found, err = r.resolveContent(ctx, object); err != nil {
		return in, nil, err
	}
	blockers = append(blockers, found...)

	if in.Files, found, err = r.resolveFiles(ctx, object); err != nil {
		return in, nil, err
	}
	blockers = append(blockers, found...)

	if in.SecretsHash, found, err = r.resolveSecretFiles(ctx, object); err != nil {
		return in, nil, err
	}
	blockers = append(blockers, found...)

	if len(blockers) == 0 {
		if blockers, err = r.checkIncluded(ctx, object, in); err != nil {
			return in, nil, err
		}
	}

	certificates, err := r.resolveCertificates(ctx, object)
	if err != nil {
		return in, nil, err
	}
	in.CertificatesHash, in.Certificates = certificates.hash, certificates.usable
	if blockers = append(blockers, certificates.blockers...); len(blockers) == 0 {
		blockers = patchBlockers(object, in)
	}
	return in, blockers, nil
}

// SecretsOf returns the current content of the Secrets that the Pods of a template mount, as
// inputs, and the reasons why a Secret cannot be used.
func (r Resolver) SecretsOf(
	ctx context.Context, object *v1alpha2.NginxOperator, template *corev1.PodTemplateSpec,
) (in operand.Inputs, blockers []failure.Failure, err error) {
	mounted := &v1alpha2.NginxOperator{ObjectMeta: object.ObjectMeta, Spec: operand.SecretsOf(&template.Spec)}
	certificates, err := r.resolveCertificates(ctx, mounted)
	if err != nil {
		return in, nil, err
	}
	files, blockers, err := r.resolveSecretFiles(ctx, mounted)
	if err != nil {
		return in, nil, err
	}
	in.CertificatesHash, in.Certificates, in.SecretsHash = certificates.hash, certificates.usable, files
	return in, append(certificates.blockers, blockers...), nil
}

// specBlockers returns the errors in a spec that do not depend on references. A spec with refused
// values is not validated further.
func specBlockers(object *v1alpha2.NginxOperator, refused []failure.Failure) []failure.Failure {
	var out []failure.Failure
	if _, damaged := object.Annotations[wellknown.AnnotationV1alpha2Unreadable]; damaged {
		out = append(out, failure.Failure{
			Reason: v1alpha2.ReasonInvalidConfiguration,
			Message: fmt.Sprintf(
				"metadata.annotations[%s]: what v1alpha2 declared was damaged at v1alpha1, so the spec may lack a part of it: "+
					"complete the spec at v1alpha2, then remove the annotation", wellknown.AnnotationV1alpha2Unreadable),
		})
	}
	if len(refused) > 0 {
		return append(out, refused...)
	}
	for _, problem := range validation.Spec(&object.Spec, operand.SpecPath) {
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: problem.Error()})
	}
	return out
}

// verdict is the conclusion about a configuration in a ConfigMap.
type verdict struct {
	found         bool
	hash, servers string
	blockers      []failure.Failure
}

// resolveConfig renders the configuration, and returns a hash of the server blocks of a ConfigMap.
// It checks a configuration in a ConfigMap, unless the spec is invalid: the check would report the
// errors of the spec again. An inline configuration was checked with the spec.
func (r Resolver) resolveConfig(
	ctx context.Context, object *v1alpha2.NginxOperator, valid bool,
) (out operand.Configuration, servers string, blockers []failure.Failure, err error) {
	config := object.Spec.Config
	if config == nil || config.ConfigMapRef == nil {
		if !valid {
			return out, "", nil, nil
		}
		text := ""
		if config != nil {
			text = config.Inline
		}
		out, blockers = r.render(object, text)
		return out, "", blockers, nil
	}

	question, err := cacheKey(object, valid)
	if err != nil {
		return out, "", nil, err
	}
	name, key := config.ConfigMapRef.Name, defaults.ConfigKey(config.ConfigMapRef)
	path := operand.SpecPath.Child("config", "configMapRef")
	source := named[corev1.ConfigMap](object, name)
	concluded, exists, err := reference.Derive(ctx, r.ConfigMaps, question, source, func() verdict {
		text, found := source.Data[key]
		if !found || !valid {
			return verdict{found: found}
		}
		judged := verdict{found: true, blockers: checkConfig(&object.Spec, text, messagePrefix(config.ConfigMapRef), nil)}
		if len(judged.blockers) == 0 {
			out, judged.blockers = r.render(object, text)
			judged.hash, judged.servers = out.Hash, operand.ShortHash(text)
		}
		return judged
	})
	switch {
	case err != nil:
		return out, "", nil, err
	case !exists:
		return out, "", []failure.Failure{notFound(path.Child("name"), "ConfigMap", name)}, nil
	case !concluded.found && validation.IsMask(key): // the spec has an error for it
		return out, "", nil, nil
	case !concluded.found:
		return out, "", []failure.Failure{noKey(path.Child("key"), "ConfigMap", name, key, " in its data", "key")}, nil
	}
	out.Hash = concluded.hash
	return out, concluded.servers, concluded.blockers, nil
}

// cacheKey identifies the check of a configuration. It includes the spec, because ports and
// certificates affect the result.
func cacheKey(object *v1alpha2.NginxOperator, valid bool) (string, error) {
	raw, err := json.Marshal(object.Spec)
	if err != nil {
		return "", fmt.Errorf("failed to encode spec: %w", err)
	}
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("config %t %s", valid, sum), nil
}

// checkConfig returns the errors in a configuration and in the included files with a known text.
func checkConfig(spec *v1alpha2.NginxOperatorSpec, text, where string, texts map[string]string) []failure.Failure {
	if text == "" {
		return []failure.Failure{{
			Reason:  v1alpha2.ReasonInvalidConfiguration,
			Message: where + "it is empty: write a server block, or remove spec.config",
		}}
	}
	var out []failure.Failure
	problems, _ := nginxconf.Check(spec, text, texts, nil)
	for _, problem := range problems {
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: where + problem.String()})
	}
	return out
}

// render returns the complete configuration for server blocks.
func (r Resolver) render(object *v1alpha2.NginxOperator, servers string) (operand.Configuration, []failure.Failure) {
	out, err := r.Configuration(object, servers)
	if err != nil {
		return out, []failure.Failure{{Reason: v1alpha2.ReasonInvalidConfiguration, Message: err.Error()}}
	}
	return out, nil
}

// resolveContent returns the static files that a spec references, or nil if it references none.
func (r Resolver) resolveContent(ctx context.Context, object *v1alpha2.NginxOperator) (*operand.Content, []failure.Failure, error) {
	if object.Spec.Content == nil {
		return nil, nil, nil
	}
	name := object.Spec.Content.ConfigMapRef.Name
	source := named[corev1.ConfigMap](object, name)
	out := &operand.Content{}
	hash, exists, err := reference.Derive(ctx, r.ConfigMaps, "content", source, func() string {
		*out = operand.NewContent(source)
		return out.Hash
	})
	if err != nil {
		return nil, nil, err
	}
	if !exists {
		return out, []failure.Failure{notFound(operand.SpecPath.Child("content", "configMapRef", "name"), "ConfigMap", name)}, nil
	}
	out.Hash = hash
	return out, nil, nil
}

// notFound returns the blocker for a missing object.
func notFound(path *field.Path, kind, name string) failure.Failure {
	return failure.Failure{
		Reason:  v1alpha2.ReasonReferenceNotFound,
		Message: fmt.Sprintf("%s: %s %q does not exist in this namespace: create it, or name another", path, kind, name),
	}
}

// noKey returns the blocker for an object without a key. The remedy is another key or another
// object.
func noKey(path *field.Path, kind, name, key, where, other string) failure.Failure {
	return failure.Failure{
		Reason:  v1alpha2.ReasonReferenceNotFound,
		Message: fmt.Sprintf("%s: %s %q has no key %q%s: add it, or name another %s", path, kind, name, key, where, other),
	}
}
