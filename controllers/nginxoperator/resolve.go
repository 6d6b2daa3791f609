package nginxoperator

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/reference"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
)

// specPath is where the messages of blockers begin to say which field they are about.
var specPath = field.NewPath("spec")

// newInputs returns those that the spec and the release say.
func (r *Reconciler) newInputs(object *v1alpha2.NginxOperator) inputs {
	return inputs{
		image: defaults.Image(&object.Spec, r.Image), exporter: defaults.ExporterImage(&object.Spec, r.ExporterImage), edition: newestEdition(),
	}
}

// resolve checks the spec and reads what it names. It returns the inputs of the desired state, and in the order of the
// spec's fields what blocks changes; where anything does, the inputs are not complete.
func (r *Reconciler) resolve(ctx context.Context, object *v1alpha2.NginxOperator) (inputs, []failure, error) {
	in := r.newInputs(object)
	var blockers []failure
	if _, damaged := object.Annotations[wellknown.AnnotationV1alpha2Unreadable]; damaged {
		blockers = append(blockers, failure{v1alpha2.ReasonInvalidConfiguration, fmt.Sprintf(
			"metadata.annotations[%s]: what v1alpha2 declared was damaged at v1alpha1, so the spec may lack a part of it: "+
				"complete the spec at v1alpha2, then remove the annotation",
			wellknown.AnnotationV1alpha2Unreadable)})
	}
	for _, problem := range validation.Spec(&object.Spec, specPath) {
		blockers = append(blockers, failure{v1alpha2.ReasonInvalidConfiguration, problem.Error()})
	}
	found, err := r.resolveConfig(ctx, object, &in, len(blockers) == 0)
	if err != nil {
		return in, nil, err
	}
	blockers = append(blockers, found...)
	if found, err = r.resolveContent(ctx, object, &in); err != nil {
		return in, nil, err
	}
	blockers = append(blockers, found...)
	if found, err = r.resolveFiles(ctx, object, &in); err != nil {
		return in, nil, err
	}
	blockers = append(blockers, found...)
	if found, err = r.resolveSecretFiles(ctx, object, &in); err != nil {
		return in, nil, err
	}
	blockers = append(blockers, found...)
	if len(blockers) == 0 {
		if found, err = r.checkIncluded(ctx, object, in); err != nil {
			return in, nil, err
		}
		blockers = append(blockers, found...)
	}
	if found, err = r.resolveCertificates(ctx, object, &in); err != nil {
		return in, nil, err
	}
	return in, append(blockers, found...), nil
}

// verdict is what is concluded about a configuration in a ConfigMap.
type verdict struct {
	found    bool
	hash     string
	blockers []failure
}

// resolveConfig renders the configuration. One that comes with the spec was checked with it; one in a ConfigMap is
// checked here, unless the spec is not valid: then it would be found at fault for that.
func (r *Reconciler) resolveConfig(ctx context.Context, object *v1alpha2.NginxOperator, in *inputs, valid bool) ([]failure, error) {
	config := object.Spec.Config
	if config == nil || config.ConfigMapRef == nil {
		if !valid {
			return nil, nil
		}
		text := ""
		if config != nil {
			text = config.Inline
		}
		var blockers []failure
		in.config, blockers = r.render(object, text)
		return blockers, nil
	}
	question, err := questionOf(object, valid)
	if err != nil {
		return nil, err
	}
	name, key := config.ConfigMapRef.Name, defaults.ConfigKey(config.ConfigMapRef)
	path := specPath.Child("config", "configMapRef")
	source := named[corev1.ConfigMap](object, name)
	concluded, exists, err := reference.Derive(ctx, r.ConfigMaps, question, source, func() verdict {
		text, found := source.Data[key]
		if !found || !valid {
			return verdict{found: found}
		}
		out := verdict{found: true, blockers: checkConfig(&object.Spec, text, whereIn(config.ConfigMapRef), nil)}
		if len(out.blockers) == 0 {
			in.config, out.blockers = r.render(object, text)
			out.hash = in.config.hash
		}
		return out
	})
	switch {
	case err != nil:
		return nil, err
	case !exists:
		return []failure{notFound(path.Child("name"), "ConfigMap", name)}, nil
	case !concluded.found:
		return []failure{{v1alpha2.ReasonReferenceNotFound, fmt.Sprintf("%s: ConfigMap %q has no key %q in its data: add it, or name another key",
			path.Child("key"), name, key)}}, nil
	}
	in.config.hash = concluded.hash
	return concluded.blockers, nil
}

// questionOf tells the questions that different specs put to one ConfigMap apart: whether a configuration is right depends
// on ports and certificates as well.
func questionOf(object *v1alpha2.NginxOperator, valid bool) (string, error) {
	raw, err := json.Marshal(object.Spec)
	if err != nil {
		return "", fmt.Errorf("failed to encode spec: %w", err)
	}
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("config %t %s", valid, sum), nil
}

// checkConfig returns what is wrong with a configuration, together with the files that it includes and whose texts are known.
func checkConfig(spec *v1alpha2.NginxOperatorSpec, text, where string, texts map[string]string) []failure {
	if text == "" {
		return []failure{{v1alpha2.ReasonInvalidConfiguration, where + "it is empty: write a server block, or remove spec.config"}}
	}
	var out []failure
	for _, problem := range nginxconf.CheckIncluding(spec, text, texts) {
		out = append(out, failure{v1alpha2.ReasonInvalidConfiguration, where + problem.String()})
	}
	return out
}

func (r *Reconciler) render(object *v1alpha2.NginxOperator, servers string) (configuration, []failure) {
	files, err := nginxconf.Render(&object.Spec, servers, r.IPv6)
	if err != nil {
		return configuration{}, []failure{{v1alpha2.ReasonInvalidConfiguration, err.Error()}}
	}
	return newConfiguration(files), nil
}

func (r *Reconciler) resolveContent(ctx context.Context, object *v1alpha2.NginxOperator, in *inputs) ([]failure, error) {
	if object.Spec.Content == nil {
		return nil, nil
	}
	name := object.Spec.Content.ConfigMapRef.Name
	source := named[corev1.ConfigMap](object, name)
	in.content = &content{}
	hash, exists, err := reference.Derive(ctx, r.ConfigMaps, "content", source, func() string {
		*in.content = newContent(source)
		return in.content.hash
	})
	if err != nil {
		return nil, err
	}
	if !exists {
		return []failure{notFound(specPath.Child("content", "configMapRef", "name"), "ConfigMap", name)}, nil
	}
	in.content.hash = hash
	return nil, nil
}

// certificate is what is concluded about a Secret.
type certificate struct {
	// digest stands for all that the Secret holds, for all of it is mounted.
	digest string
	// public is what clients are told of it.
	public keypair.Certificate
	// reason and problem say why nginx could not use it, "" where it can.
	reason, problem string
}

func (r *Reconciler) resolveCertificates(ctx context.Context, object *v1alpha2.NginxOperator, in *inputs) ([]failure, error) {
	var blockers []failure
	in.usable = nil
	digests := map[string][]byte{}
	for i, declared := range object.Spec.TLS {
		path := specPath.Child("tls").Index(i).Child("secretName")
		source := named[corev1.Secret](object, declared.SecretName)
		found, exists, err := reference.Derive(ctx, r.Secrets, "certificate", source, func() certificate { return certificateOf(source) })
		switch {
		case err != nil:
			return nil, err
		case !exists:
			blockers = append(blockers, notFound(path, "Secret", declared.SecretName))
		case found.problem != "":
			blockers = append(blockers, failure{found.reason, fmt.Sprintf("%s: Secret %q %s", path, declared.SecretName, found.problem)})
		default:
			in.usable = append(in.usable, usable{declared.SecretName, found.public})
		}
		digests[declared.SecretName] = []byte(found.digest)
	}
	if len(digests) > 0 {
		in.certificates = digest(digests)
	}
	return blockers, nil
}

// certificateOf looks at a Secret as nginx will. Whether the certificate has expired it does not ask: nginx serves it all
// the same, and holding changes back would not make it better.
func certificateOf(secret *corev1.Secret) certificate {
	if secret.Type != corev1.SecretTypeTLS {
		return certificate{
			reason:  v1alpha2.ReasonInvalidReference,
			problem: fmt.Sprintf("has type %s: make it again with type %s, or name another", secret.Type, corev1.SecretTypeTLS),
		}
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if _, found := secret.Data[key]; !found {
			return certificate{reason: v1alpha2.ReasonReferenceNotFound, problem: fmt.Sprintf("has no key %q: add it, or name another Secret", key)}
		}
	}
	public, err := keypair.Check(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return certificate{
			reason:  v1alpha2.ReasonInvalidReference,
			problem: fmt.Sprintf("holds no certificate that nginx could use (%v): put a certificate and its key in PEM form there", err),
		}
	}
	return certificate{digest: digest(secret.Data), public: public}
}

func notFound(path *field.Path, kind, name string) failure {
	return failure{
		v1alpha2.ReasonReferenceNotFound,
		fmt.Sprintf("%s: %s %q does not exist in this namespace: create it, or name another", path, kind, name),
	}
}
