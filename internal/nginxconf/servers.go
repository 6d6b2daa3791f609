package nginxconf

import (
	"slices"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Part is a file of the user's configuration.
type Part struct {
	// Key is the key of the ConfigMap that a mask matches, or "" for the only file of a
	// configuration without a mask.
	Key string
	// Text is the text of the file.
	Text string
}

// Servers is the user's configuration, in the order in which nginx reads its files. It is nil for
// the default servers.
type Servers []Part

// Whole returns a configuration of one text, or nil if the text is empty.
func Whole(text string) Servers {
	if text == "" {
		return nil
	}
	return Servers{{Text: text}}
}

// Size returns the size of all files in bytes.
func (s Servers) Size() (size int) {
	for _, part := range s {
		size += len(part.Text)
	}
	return size
}

func (s Servers) contains(text string) bool {
	return slices.ContainsFunc(s, func(part Part) bool { return strings.Contains(part.Text, text) })
}

// keyPrefix starts the name of a file in Directory that has the text of a key.
const keyPrefix = "servers-"

// MaxKey is the maximum length of a key of a configuration with a mask. The prefix and the key are a
// key of the operator's ConfigMap.
const MaxKey = 253 - len(keyPrefix)

// file returns the name of the file in Directory.
func (p Part) file() string {
	if p.Key == "" {
		return ServersFile
	}
	return keyPrefix + p.Key
}

// KeyOf returns the key of the user's ConfigMap whose text is in a file of Directory, or "" for
// other files.
func KeyOf(file string) string {
	key, isPart := strings.CutPrefix(file, Directory+"/"+keyPrefix)
	if !isPart {
		return ""
	}
	return key
}

// parseAll returns the directives of each file, the size of all files, and the first syntax error of
// each file. It checks the values in each word.
func (s Servers) parseAll(values Values) (trees [][]*directive, read reading, errors findings) {
	read.bytes = s.Size()
	for _, part := range s {
		r := &reader{text: part.Text, line: 1, reading: read, values: values}
		tree, problem := r.parse()
		trees, read = append(trees, tree), r.reading
		if problem == nil {
			continue
		}
		if problem.Line > 0 { // otherwise the bounds of all files are exceeded
			problem.Key = part.Key
		}
		errors.add(*problem)
	}
	return trees, read, errors
}

// IsKeyMask reports whether a key that a spec references is a mask, which matches several keys.
func IsKeyMask(key string) bool { return strings.Contains(key, "*") }

// HasMask reports whether a file of spec.files is a directory with the keys that a mask matches.
func HasMask(file v1alpha2.File) bool {
	return file.ConfigMapRef != nil && IsKeyMask(file.ConfigMapRef.Key)
}
