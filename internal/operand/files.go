package operand

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// NewDeclaredFiles returns the copies of files. found has the content of each file by its path.
func NewDeclaredFiles(found map[string][]byte) Content {
	out := Content{Text: map[string]string{}, Binary: map[string][]byte{}}
	digests := map[string]string{}
	for at, text := range found {
		sum := sha256.Sum256(text)
		digests[at] = hex.EncodeToString(sum[:])
		if utf8.Valid(text) {
			out.Text[CopiedKey(at)] = string(text)
		} else {
			out.Binary[CopiedKey(at)] = text
		}
	}
	out.Hash = ShortHash(Digest(digests))
	return out
}

// CopiedKey returns the key of a file in the copy. Keys have no slashes, and paths have no two dots
// in a row.
func CopiedKey(file string) string { return strings.ReplaceAll(file, "/", "..") }

// DesiredFilesConfigMap returns the ConfigMap that Pods mount for the files of spec.files from
// ConfigMaps. It has copies of their keys.
func DesiredFilesConfigMap(object *v1alpha2.NginxOperator, in Inputs) *corev1.ConfigMap {
	configMap := assets.ConfigMap()
	configMap.ObjectMeta = ObjectMeta(object, in)
	configMap.Name = FilesName(object, in)
	configMap.Data, configMap.BinaryData = in.Files.Text, in.Files.Binary
	return configMap
}

// FilesName returns the name of the ConfigMap of DesiredFilesConfigMap, or "" if no file is from a
// ConfigMap.
func FilesName(object *v1alpha2.NginxOperator, in Inputs) string {
	if in.Files == nil {
		return ""
	}
	return object.Name + "-files-" + in.Files.Hash + in.Suffix
}

// filesVolume is the name of the volume with the files of spec.files.
const filesVolume = "files"

// mountFiles mounts all files of spec.files in one directory.
func mountFiles(pod *corev1.PodSpec, object *v1alpha2.NginxOperator, in Inputs) {
	files := slices.SortedFunc(slices.Values(object.Spec.Files), func(a, b v1alpha2.File) int { return cmp.Compare(a.Path, b.Path) })
	var sources []corev1.VolumeProjection
	copied := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: FilesName(object, in)}}
	for _, file := range files {
		switch {
		case file.SecretRef != nil:
			sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: file.SecretRef.Name},
				Items:                []corev1.KeyToPath{{Key: file.SecretRef.Key, Path: file.Path}},
			}})
		case in.Files != nil:
			copied.Items = append(copied.Items, corev1.KeyToPath{Key: CopiedKey(file.Path), Path: file.Path})
		}
	}
	if len(copied.Items) > 0 {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: copied})
	}
	if len(sources) > 0 {
		mount(pod, nginxconf.FilesDirectory, corev1.Volume{Name: filesVolume, VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: ptr.To(secretMode)},
		}})
	}
}

// KeyOf returns the value of a key of a ConfigMap, and false if it has no such key.
func KeyOf(source *corev1.ConfigMap, key string) ([]byte, bool) {
	if text, found := source.Data[key]; found {
		return []byte(text), true
	}
	binary, found := source.BinaryData[key]
	return binary, found
}
