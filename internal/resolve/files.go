package resolve

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
	"github.com/example/nginx-operator/pkg/reference"
)

// resolveContent resolves the static files that a spec references.
func (r Resolver) resolveContent(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) error {
	if object.Spec.Content == nil {
		return nil
	}

	ref := &object.Spec.Content.ConfigMapRef
	content := &operand.Content{}
	source := &corev1.ConfigMap{ObjectMeta: referenced(object, ref.Name)}
	conclusion, exists, err := reference.Derive(ctx, r.ConfigMaps, contentCacheKey(ref.Items), source, func() served {
		*content = operand.NewContent(source, ref.Items)
		return served{content.Hash, missingItems(source, ref.Items)}
	})
	if err != nil {
		return err
	}

	at := operand.SpecPath.Child("content", "configMapRef")
	if !exists {
		to.block(notFound(at.Child("name"), "ConfigMap", source.Name))
	}
	for _, i := range conclusion.missing {
		to.block(noKey(at.Child("items").Index(i).Child("key"), "ConfigMap", source.Name, ref.Items[i].Key, ""))
	}

	content.Hash = conclusion.hash
	to.in.Content = content
	return nil
}

// served is the conclusion about the static files in a ConfigMap.
type served struct {
	hash string
	// missing has the indexes of the items whose keys do not exist.
	missing []int
}

// maxMissing limits the items that are reported as missing.
const maxMissing = 8

// missingItems returns the indexes of the first items whose keys a ConfigMap does not have.
func missingItems(source *corev1.ConfigMap, items []v1alpha2.ContentItem) (missing []int) {
	for i, item := range items {
		if _, hasKey := operand.KeyOf(source, item.Key); !hasKey && len(missing) < maxMissing {
			missing = append(missing, i)
		}
	}
	return missing
}

// contentCacheKey identifies the conclusion about static files. Their paths do not affect it.
func contentCacheKey(items []v1alpha2.ContentItem) string {
	sum := sha256.New()
	for _, item := range items {
		_, _ = fmt.Fprintln(sum, item.Key) // keys have no line breaks
	}
	return fmt.Sprintf("content %d %x", len(items), sum.Sum(nil))
}

// keyed is the conclusion about one key of a ConfigMap or Secret.
type keyed struct {
	exists bool
	// digest is a hash of the value, and size its bytes.
	digest string
	size   int
	// refused is the reason why the key must not be mounted, or "".
	refused string
}

// resolveFiles checks the files of spec.files from ConfigMaps.
func (r Resolver) resolveFiles(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) error {
	digests, size := map[string]string{}, 0
	for i, file := range object.Spec.Files {
		if file.ConfigMapRef == nil {
			continue
		}

		at := operand.SpecPath.Child("files").Index(i).Child("configMapRef")
		if nginxconf.HasMask(file) {
			bytes, err := r.resolveDirectory(ctx, object, file, at, to)
			if err != nil {
				return err
			}
			size += bytes
			continue
		}

		name, key := file.ConfigMapRef.Name, file.ConfigMapRef.Key
		source := &corev1.ConfigMap{ObjectMeta: referenced(object, name)}
		conclusion, exists, err := reference.Derive(ctx, r.ConfigMaps, "file "+key, source, func() keyed {
			text, hasKey := operand.KeyOf(source, key)
			sum := sha256.Sum256(text)
			return keyed{exists: hasKey, digest: hex.EncodeToString(sum[:]), size: len(text)}
		})
		if err != nil {
			return err
		}

		to.blockMissing(at, "ConfigMap", name, key, exists, conclusion)
		digests[file.Path] = conclusion.digest
		size += conclusion.size
	}

	if size > nginxconf.MaxBytes {
		to.block(failure.Failure{Reason: v1alpha2.ReasonInvalidReference, Message: fmt.Sprintf(
			"%s: the keys of ConfigMaps have %d bytes in total, the limit is %d; shorten them, or build an image with the large files",
			operand.SpecPath.Child("files"), size, nginxconf.MaxBytes)})
	}

	if len(digests) > 0 {
		to.in.Files = &operand.Content{Hash: operand.ShortHash(operand.Digest(digests))}
	}
	return nil
}

// masked is the conclusion about the keys of a ConfigMap that a mask matches: a hash, their number,
// and the bytes of their values.
type masked struct {
	hash       string
	keys, size int
}

// resolveDirectory checks the files of a mask in spec.files, and returns their size in bytes.
func (r Resolver) resolveDirectory(
	ctx context.Context, object *v1alpha2.NginxOperator, file v1alpha2.File, at *field.Path, to *resolution,
) (int, error) {
	name, mask := file.ConfigMapRef.Name, file.ConfigMapRef.Key
	source := &corev1.ConfigMap{ObjectMeta: referenced(object, name)}
	conclusion, exists, err := reference.Derive(ctx, r.ConfigMaps, "files "+mask+" "+file.Path, source, func() masked {
		directory := operand.NewDirectory(file, source)
		found := masked{hash: directory.Hash, keys: len(directory.Text) + len(directory.Binary)}
		for _, text := range directory.Text {
			found.size += len(text)
		}
		for _, binary := range directory.Binary {
			found.size += len(binary)
		}
		return found
	})
	if err != nil {
		return 0, err
	}

	if !exists {
		to.block(notFound(at.Child("name"), "ConfigMap", name))
	} else if blocker := notMatching(at.Child("key"), name, mask, conclusion.keys); blocker != nil {
		to.block(*blocker)
	}

	to.in.Directories = append(to.in.Directories, operand.Directory{Path: file.Path, Content: operand.Content{Hash: conclusion.hash}})
	return conclusion.size, nil
}

// resolveSecretFiles checks the files of spec.files from Secrets, and hashes them. The hash is
// visible in the Pod template. It includes the random UID of each Secret, so that nobody can guess
// its content from the hash.
func (r Resolver) resolveSecretFiles(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) error {
	digests := map[string]string{}
	for i, file := range object.Spec.Files {
		if file.SecretRef == nil {
			continue
		}

		name, key := file.SecretRef.Name, file.SecretRef.Key
		source := &corev1.Secret{ObjectMeta: referenced(object, name)}
		check := func() keyed { return keyedIn(source, key) }
		conclusion, exists, err := reference.Derive(ctx, r.Secrets, "file "+key, source, check)
		if err != nil {
			return err
		}

		to.blockMissing(operand.SpecPath.Child("files").Index(i).Child("secretRef"), "Secret", name, key, exists, conclusion)
		digests[file.Path] = conclusion.digest
	}

	if len(digests) > 0 {
		to.in.SecretsHash = operand.Digest(digests)
	}
	return nil
}

// keyedIn checks a key of a Secret. It refuses a token of a ServiceAccount: a client that may write
// NginxOperators must not get its permissions.
func keyedIn(secret *corev1.Secret, key string) keyed {
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return keyed{refused: fmt.Sprintf("has type %s, which cannot be mounted; reference another Secret", secret.Type)}
	}

	text, hasKey := secret.Data[key]
	sum := hmac.New(sha256.New, []byte(secret.UID))
	sum.Write(text)
	return keyed{exists: hasKey, digest: hex.EncodeToString(sum.Sum(nil))}
}

// blockMissing adds the reason why a reference of spec.files cannot be mounted, if there is one.
func (r *resolution) blockMissing(at *field.Path, kind, name, key string, exists bool, conclusion keyed) {
	switch {
	case !exists:
		r.block(notFound(at.Child("name"), kind, name))
	case conclusion.refused != "":
		message := fmt.Sprintf("%s: %s %q %s", at.Child("name"), kind, name, conclusion.refused)
		r.block(failure.Failure{Reason: v1alpha2.ReasonInvalidReference, Message: message})
	case !conclusion.exists:
		r.block(noKey(at.Child("key"), kind, name, key, ""))
	}
}
