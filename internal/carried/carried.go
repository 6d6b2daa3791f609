// Package carried has the form of the annotation with which the Deployment of an instance carries
// the record of the first declaration.
//
// The annotation has a head, a space, and the data of the record. The head names the record and its
// revision ("2acc7aa682-1"). A declaration of the Deployment has only the head. The cache has the
// head and the hash of the whole annotation.
package carried

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// MaxBytes is the limit for the annotation. The API server accepts 256 KiB for all annotations
	// of an object. The data has the spec, so the annotation also bounds the other annotations, see
	// smallSpec in internal/operand.
	MaxBytes = 32 << 10
	// maxHead is the limit for the head: a hash, and a number.
	maxHead = 63
)

// Record is a record that a Deployment carries, without its data.
type Record struct {
	// Head is the start of the annotation.
	Head string
	// Name is the end of the record's name, as in the label of the Deployment.
	Name string
	// Revision is the generation of the object at which the declaration was applied.
	Revision int64
	// Hash is the SHA-256 hash of the annotation.
	Hash string
}

// New returns the annotation with a record, or "" if it is larger than MaxBytes.
func New(name string, revision int64, data []byte) string {
	head := name + "-" + strconv.FormatInt(revision, 10)
	if len(head)+1+len(data) > MaxBytes {
		return ""
	}
	return head + " " + string(data)
}

// Head returns the part of an annotation that a declaration of the Deployment has.
func Head(annotation string) string {
	head, _, _ := strings.Cut(annotation, " ")
	return head
}

// Shorten returns the form of an annotation in the cache: the head, and the hash. It returns "" for
// a text that New does not return. It does not interpret the data.
func Shorten(annotation string) string {
	head, _, found := strings.Cut(annotation, " ")
	if !found || len(annotation) > MaxBytes || len(head) > maxHead {
		return ""
	}
	return head + " " + hashOf(annotation)
}

// Parse returns the record of an annotation, either whole or in its form in the cache, and false if
// it has none.
func Parse(annotation string) (Record, bool) {
	if strings.Contains(annotation, "{") {
		annotation = Shorten(annotation)
	}
	head, hash, isShort := strings.Cut(annotation, " ")
	name, revision, isHead := strings.Cut(head, "-")
	number, err := strconv.ParseInt(revision, 10, 64)
	if !isShort || !isHead || name == "" || number < 0 || err != nil || len(hash) != hex.EncodedLen(sha256.Size) {
		return Record{}, false
	}
	return Record{Head: head, Name: name, Revision: number, Hash: hash}, true
}

// Data returns the data of the record in a whole annotation, or nil if its hash is another one.
func Data(annotation, hash string) []byte {
	_, data, found := strings.Cut(annotation, " ")
	if !found || len(annotation) > MaxBytes || hashOf(annotation) != hash {
		return nil
	}
	return []byte(data)
}

func hashOf(annotation string) string {
	sum := sha256.Sum256([]byte(annotation))
	return hex.EncodeToString(sum[:])
}
