package inputs

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/pkg/reference"
)

// keyed is the conclusion about one key of a ConfigMap or Secret.
type keyed struct {
	found bool
	// digest is a hash of the value, and size its bytes.
	digest string
	size   int
	// refused is the reason why the key must not be mounted, or "".
	refused string
}

// resolveFiles checks the files of spec.files from ConfigMaps. It returns nil if there are none.
func (r Resolver) resolveFiles(ctx context.Context, object *v1alpha2.NginxOperator) (*operand.Content, []failure.Failure, error) {
	var blockers []failure.Failure
	digests, size := map[string]string{}, 0
	for i, file := range object.Spec.Files {
		if file.ConfigMapRef == nil {
			continue
		}
		key := file.ConfigMapRef.Key
		source := named[corev1.ConfigMap](object, file.ConfigMapRef.Name)
		found, exists, err := reference.Derive(ctx, r.ConfigMaps, "file "+key, source, func() keyed {
			text, found := operand.KeyOf(source, key)
			sum := sha256.Sum256(text)
			return keyed{found: found, digest: hex.EncodeToString(sum[:]), size: len(text)}
		})
		if err != nil {
			return nil, nil, err
		}
		at := operand.SpecPath.Child("files").Index(i).Child("configMapRef")
		blockers = append(blockers, missing(at, "ConfigMap", file.ConfigMapRef.Name, key, exists, found)...)
		digests[file.Path] = found.digest
		size += found.size
	}
	if size > nginxconf.MaxBytes {
		blockers = append(blockers, failure.Failure{Reason: v1alpha2.ReasonInvalidReference, Message: fmt.Sprintf(
			"%s: the keys of ConfigMaps have %d bytes together, and the copy takes %d: shorten them, or put what is large into an image of your own",
			operand.SpecPath.Child("files"), size, nginxconf.MaxBytes)})
	}
	if len(digests) == 0 {
		return nil, blockers, nil
	}
	return &operand.Content{Hash: operand.ShortHash(operand.Digest(digests))}, blockers, nil
}

// resolveSecretFiles checks the files of spec.files from Secrets, and returns a hash of them, or ""
// if there are none. The hash is visible in the Pod template. It includes the random UID of each
// Secret, so that nobody can guess its content from the hash.
func (r Resolver) resolveSecretFiles(ctx context.Context, object *v1alpha2.NginxOperator) (string, []failure.Failure, error) {
	var blockers []failure.Failure
	digests := map[string]string{}
	for i, file := range object.Spec.Files {
		if file.SecretRef == nil {
			continue
		}
		key := file.SecretRef.Key
		source := named[corev1.Secret](object, file.SecretRef.Name)
		found, exists, err := reference.Derive(ctx, r.Secrets, "file "+key, source, func() keyed { return keyedIn(source, key) })
		if err != nil {
			return "", nil, err
		}
		at := operand.SpecPath.Child("files").Index(i).Child("secretRef")
		blockers = append(blockers, missing(at, "Secret", file.SecretRef.Name, key, exists, found)...)
		digests[file.Path] = found.digest
	}
	if len(digests) == 0 {
		return "", blockers, nil
	}
	return operand.Digest(digests), blockers, nil
}

// keyedIn checks a key of a Secret. It refuses a token of a ServiceAccount: a client that may write
// NginxOperators must not get its permissions.
func keyedIn(secret *corev1.Secret, key string) keyed {
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return keyed{refused: fmt.Sprintf("has type %s, which is not mounted: name another", secret.Type)}
	}
	text, found := secret.Data[key]
	sum := hmac.New(sha256.New, []byte(secret.UID))
	sum.Write(text)
	return keyed{found: found, digest: hex.EncodeToString(sum.Sum(nil))}
}

// missing returns why a reference of spec.files cannot be mounted.
func missing(at *field.Path, kind, name, key string, exists bool, found keyed) []failure.Failure {
	switch {
	case !exists:
		return []failure.Failure{notFound(at.Child("name"), kind, name)}
	case found.refused != "":
		return []failure.Failure{{
			Reason:  v1alpha2.ReasonInvalidReference,
			Message: fmt.Sprintf("%s: %s %q %s", at.Child("name"), kind, name, found.refused),
		}}
	case !found.found && !validation.IsMask(key): // the spec has an error for a mask
		return []failure.Failure{noKey(at.Child("key"), kind, name, key, "", "key")}
	}
	return nil
}

// readDeclaredFiles reads the files of spec.files from ConfigMaps. It returns a conflict if they
// have changed since their hash was computed.
func (r Resolver) readDeclaredFiles(ctx context.Context, object *v1alpha2.NginxOperator, in operand.Inputs) (operand.Content, error) {
	found := map[string][]byte{}
	var source *corev1.ConfigMap
	for _, file := range object.Spec.Files {
		if file.ConfigMapRef == nil {
			continue
		}
		var err error
		if source, err = r.readConfigMap(ctx, object, file.ConfigMapRef.Name); err != nil {
			return operand.Content{}, err
		}
		found[file.Path], _ = operand.KeyOf(source, file.ConfigMapRef.Key)
	}
	out := operand.NewDeclaredFiles(found)
	return out, sameHash(source, out.Hash, in.Files.Hash)
}
