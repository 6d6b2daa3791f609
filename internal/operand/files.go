package operand

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// NewDeclaredFiles returns the copies of files, which are given by their paths.
func NewDeclaredFiles(files map[string][]byte) Content {
	copies := Content{Text: map[string]string{}, Binary: map[string][]byte{}}
	digests := map[string]string{}
	for file, text := range files {
		sum := sha256.Sum256(text)
		digests[file] = hex.EncodeToString(sum[:])
		if utf8.Valid(text) {
			copies.Text[CopiedKey(file)] = string(text)
		} else {
			copies.Binary[CopiedKey(file)] = text
		}
	}

	copies.Hash = ShortHash(Digest(digests))
	return copies
}

// CopiedKey returns the key of a file in the copy. Keys have no slashes, and paths have no two dots
// in a row.
func CopiedKey(file string) string { return strings.ReplaceAll(file, "/", "..") }

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
		case in.Files != nil && !nginxconf.HasMask(file):
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

	byPath := func(a, b Directory) int { return cmp.Compare(a.Path, b.Path) }
	for _, directory := range slices.SortedFunc(slices.Values(in.Directories), byPath) {
		source := &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: DirectoryName(object, in, directory)}, DefaultMode: ptr.To(secretMode),
		}
		mount(pod, path.Join(nginxconf.FilesDirectory, directory.Path), corev1.Volume{
			Name: directoryVolume + ShortHash(directory.Path), VolumeSource: corev1.VolumeSource{ConfigMap: source},
		})
	}
}

// directoryVolume is the prefix of the names of the volumes with the files of a mask.
const directoryVolume = "operator-files-"

// Directory is the files of a mask in spec.files. Its ConfigMap is mounted as a whole, so the Pod
// template does not grow with the number of files.
type Directory struct {
	// Path is the path of the directory below nginxconf.FilesDirectory.
	Path string
	// Content is the files by their keys. The hash differs between directories with the same files.
	Content
}

// NewDirectory returns the files of a mask in a user's ConfigMap.
func NewDirectory(file v1alpha2.File, source *corev1.ConfigMap) Directory {
	keys := sets.New(KeysOf(source, file.ConfigMapRef.Key)...)
	text, binary := only(source.Data, keys), only(source.BinaryData, keys)
	hash := ShortHash(file.Path + " " + Digest(text) + Digest(binary))
	return Directory{file.Path, Content{Hash: hash, Text: text, Binary: binary}}
}

// KeyOf returns the value of a key of a ConfigMap, and false if it has no such key.
func KeyOf(source *corev1.ConfigMap, key string) ([]byte, bool) {
	if text, found := source.Data[key]; found {
		return []byte(text), true
	}
	binary, found := source.BinaryData[key]
	return binary, found
}

// MaxKeys is the maximum number of keys that a mask matches.
const MaxKeys = 256

// KeysOf returns the keys of a ConfigMap that a mask matches, in byte order.
func KeysOf(source *corev1.ConfigMap, mask string) (keys []string) {
	for _, key := range slices.Concat(slices.Collect(maps.Keys(source.Data)), slices.Collect(maps.Keys(source.BinaryData))) {
		if matches, err := path.Match(mask, key); matches && err == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
