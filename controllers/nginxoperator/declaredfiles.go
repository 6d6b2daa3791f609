package nginxoperator

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/reference"
)

// keyed is what is concluded about one key of a ConfigMap or Secret.
type keyed struct {
	found bool
	// digest stands for what the key holds.
	digest string
	size   int
	// refused says why it is not mounted, "" where it may be.
	refused string
}

// resolveFiles looks at the files that come from ConfigMaps.
func (r *Reconciler) resolveFiles(ctx context.Context, object *v1alpha2.NginxOperator, in *inputs) ([]failure, error) {
	var blockers []failure
	digests, size := map[string]string{}, 0
	for i, file := range object.Spec.Files {
		if file.ConfigMapRef == nil {
			continue
		}
		key := file.ConfigMapRef.Key
		source := named[corev1.ConfigMap](object, file.ConfigMapRef.Name)
		found, exists, err := reference.Derive(ctx, r.ConfigMaps, "file "+key, source, func() keyed {
			text, found := keyOf(source, key)
			sum := sha256.Sum256(text)
			return keyed{found: found, digest: hex.EncodeToString(sum[:]), size: len(text)}
		})
		if err != nil {
			return nil, err
		}
		blockers = append(blockers, missing(i, "configMapRef", "ConfigMap", file.ConfigMapRef, exists, found)...)
		digests[file.Path] = found.digest
		size += found.size
	}
	if size > nginxconf.MaxBytes {
		blockers = append(blockers, failure{v1alpha2.ReasonInvalidReference, fmt.Sprintf(
			"%s: the keys of ConfigMaps have %d bytes together, and the copy takes %d: shorten them, or put what is large into an image of your own",
			specPath.Child("files"), size, nginxconf.MaxBytes)})
	}
	if len(digests) > 0 {
		in.files = &content{hash: shortHash(digest(digests))}
	}
	return blockers, nil
}

// resolveSecretFiles looks at the files that come from Secrets. Who may read Pods and not Secrets must not be able to guess what is in
// one, so the UID of the Secret, which is random, is part of what stands for it.
func (r *Reconciler) resolveSecretFiles(ctx context.Context, object *v1alpha2.NginxOperator, in *inputs) ([]failure, error) {
	var blockers []failure
	digests := map[string]string{}
	for i, file := range object.Spec.Files {
		if file.SecretRef == nil {
			continue
		}
		key := file.SecretRef.Key
		source := named[corev1.Secret](object, file.SecretRef.Name)
		found, exists, err := reference.Derive(ctx, r.Secrets, "file "+key, source, func() keyed { return keyedIn(source, key) })
		if err != nil {
			return nil, err
		}
		blockers = append(blockers, missing(i, "secretRef", "Secret", file.SecretRef, exists, found)...)
		digests[file.Path] = found.digest
	}
	in.secrets = ""
	if len(digests) > 0 {
		in.secrets = digest(digests)
	}
	return blockers, nil
}

// keyedIn looks at a key of a Secret. A token of a ServiceAccount is refused: who may write NginxOperators must not become whom it
// stands for.
func keyedIn(secret *corev1.Secret, key string) keyed {
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return keyed{refused: fmt.Sprintf("has type %s, which is not mounted: name another", secret.Type)}
	}
	text, found := secret.Data[key]
	sum := hmac.New(sha256.New, []byte(secret.UID))
	sum.Write(text)
	return keyed{found: found, digest: hex.EncodeToString(sum.Sum(nil))}
}

// missing tells what of a reference of spec.files is not there, or not to be mounted.
func missing(i int, field, kind string, named *v1alpha2.FileReference, exists bool, found keyed) []failure {
	at := specPath.Child("files").Index(i).Child(field)
	switch {
	case !exists:
		return []failure{notFound(at.Child("name"), kind, named.Name)}
	case found.refused != "":
		return []failure{{v1alpha2.ReasonInvalidReference, fmt.Sprintf("%s: %s %q %s", at.Child("name"), kind, named.Name, found.refused)}}
	case !found.found:
		return []failure{{v1alpha2.ReasonReferenceNotFound, fmt.Sprintf("%s: %s %q has no key %q: add it, or name another key",
			at.Child("key"), kind, named.Name, named.Key)}}
	}
	return nil
}

// keyOf returns what a key of a ConfigMap holds.
func keyOf(source *corev1.ConfigMap, key string) ([]byte, bool) {
	if text, found := source.Data[key]; found {
		return []byte(text), true
	}
	binary, found := source.BinaryData[key]
	return binary, found
}

// readDeclaredFiles reads the files that come from ConfigMaps, as long as they are those that were looked at.
func (r *Reconciler) readDeclaredFiles(ctx context.Context, object *v1alpha2.NginxOperator, in inputs) (content, error) {
	found := map[string][]byte{}
	var source *corev1.ConfigMap
	for _, file := range object.Spec.Files {
		if file.ConfigMapRef == nil {
			continue
		}
		var err error
		if source, err = r.readConfigMap(ctx, object, file.ConfigMapRef.Name); err != nil {
			return content{}, err
		}
		found[file.Path], _ = keyOf(source, file.ConfigMapRef.Key)
	}
	out := newDeclaredFiles(found)
	return out, sameHash(source, out.hash, in.files.hash)
}

// newDeclaredFiles returns the copy of files by their paths.
func newDeclaredFiles(found map[string][]byte) content {
	out := content{text: map[string]string{}, binary: map[string][]byte{}}
	digests := map[string]string{}
	for at, text := range found {
		sum := sha256.Sum256(text)
		digests[at] = hex.EncodeToString(sum[:])
		if utf8.Valid(text) {
			out.text[copiedKey(at)] = string(text)
		} else {
			out.binary[copiedKey(at)] = text
		}
	}
	out.hash = shortHash(digest(digests))
	return out
}

// copiedKey returns the key of the copy that holds the file of a path: keys have no slash, and paths have no two dots in a row.
func copiedKey(file string) string { return strings.ReplaceAll(file, "/", "..") }

// desiredFilesConfigMap returns the copy of the keys of ConfigMaps that the operands mount as files.
func desiredFilesConfigMap(object *v1alpha2.NginxOperator, in inputs) *corev1.ConfigMap {
	configMap := assets.ConfigMap()
	configMap.ObjectMeta = childMeta(object, in)
	configMap.Name = filesName(object, in)
	configMap.Data, configMap.BinaryData = in.files.text, in.files.binary
	return configMap
}

// filesName returns the name of the copy, "" where no file comes from a ConfigMap.
func filesName(object *v1alpha2.NginxOperator, in inputs) string {
	if in.files == nil {
		return ""
	}
	return object.Name + "-files-" + in.files.hash
}

// mountFiles mounts the files of spec.files in one directory.
func mountFiles(pod *corev1.PodSpec, object *v1alpha2.NginxOperator, in inputs) {
	files := slices.SortedFunc(slices.Values(object.Spec.Files), func(a, b v1alpha2.File) int { return cmp.Compare(a.Path, b.Path) })
	var sources []corev1.VolumeProjection
	copied := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: filesName(object, in)}}
	for _, file := range files {
		switch {
		case file.SecretRef != nil:
			sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: file.SecretRef.Name},
				Items:                []corev1.KeyToPath{{Key: file.SecretRef.Key, Path: file.Path}},
			}})
		case in.files != nil:
			copied.Items = append(copied.Items, corev1.KeyToPath{Key: copiedKey(file.Path), Path: file.Path})
		}
	}
	if len(copied.Items) > 0 {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: copied})
	}
	if len(sources) > 0 {
		mount(pod, nginxconf.FilesDirectory, corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: ptr.To(secretMode)},
		}})
	}
}

// inLog stands for words that may be those of a Secret.
const inLog = "(what nginx says may quote a file of a Secret, so only the log of the Pod has it)"

// withoutWordsOfSecrets returns what may be told of a line of the log of a Pod that mounts files of Secrets: all where nginx found it in
// the configuration that the object declares or the operator writes, and else only what kind of failure it is, and where.
func withoutWordsOfSecrets(line string) string {
	words, isFatal := strings.CutPrefix(line, "[emerg] ")
	found := nginxLocation.FindStringSubmatch(words)
	switch {
	case line == "" || isFatal && found != nil && path.Dir(found[1]) == nginxconf.Directory:
		return line
	case !isFatal:
		return inLog
	case found != nil:
		return "[emerg] " + inLog + found[0]
	}
	return "[emerg] " + systemCallName.FindString(words) + inLog
}

// systemCallName is how a message about the machine begins.
var systemCallName = regexp.MustCompile(`^(still could not )?\w+\(\) `)
