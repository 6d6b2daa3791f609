package operatormanager

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// An NginxOperator is found by the names that its spec references, and a Deployment by those that its
// Pods need. An index of the names would take 0.3 KiB for each name, and a spec can have more than a
// thousand. Therefore the packed form has the hashes of its references, and the store has one index with
// buckets of hashes.

const (
	// referenceIndex is the name of the index in the store.
	referenceIndex = "references"
	// referenceBuckets is the number of buckets.
	referenceBuckets = 4096
	// maxHashes is the maximum number of hashes of an object. An object with more references counts
	// as a referrer of every object of its namespace.
	maxHashes = 64
	// maxBuckets is the maximum number of buckets of an object. An object with more references is in
	// the bucket of its namespace.
	maxBuckets = 8
	hashBytes  = 4
	// anyReference is the index value of an object with more than maxHashes references.
	anyReference = "*"
)

// Indexes has functions that return the names of referenced objects, by the names of indexes.
type Indexes = map[string]func(client.Object) []string

// hasReferences reports whether a kind has the index of references.
func hasReferences(kind client.Object) bool {
	switch kind.(type) {
	case *v1alpha2.NginxOperator, *appsv1.Deployment:
		return true
	}
	return false
}

// referencesOf returns the function that returns the index value of an object: the hashes of its
// references.
func referencesOf(indexes Indexes) func(metav1.Object) string {
	return func(in metav1.Object) string {
		object, ok := in.(client.Object)
		if !ok {
			return ""
		}
		var hashes []uint32
		for index, names := range indexes {
			for _, name := range names(object) {
				hashes = append(hashes, referenceHash(fieldPrefix+index, object.GetNamespace()+"/"+name))
			}
		}
		slices.Sort(hashes)
		hashes = slices.Compact(hashes)
		if len(hashes) > maxHashes {
			return anyReference
		}
		out := make([]byte, 0, len(hashes)*hashBytes)
		for _, hash := range hashes {
			out = binary.BigEndian.AppendUint32(out, hash)
		}
		return string(out)
	}
}

// referenceHash returns the hash of a value of an index: a namespace, a slash, and a name.
func referenceHash(index, value string) uint32 {
	return uint32(maphash.String(bucketSeed, index+" "+value) >> 32) //nolint:gosec // half of the hash
}

func referenceBucket(hash uint32) string {
	return strconv.FormatUint(uint64(hash%referenceBuckets), 10)
}

// hashes returns the hashes of the references of an object, and whether it has more.
func (p *packed) hashes() (out []uint32, more bool) {
	value := p.index()
	if value == anyReference {
		return nil, true
	}
	for ; len(value) >= hashBytes; value = value[hashBytes:] {
		out = append(out, binary.BigEndian.Uint32([]byte(value[:hashBytes])))
	}
	return out, false
}

// bucketsOfReferences is the index function of referenceIndex.
func bucketsOfReferences(in any) ([]string, error) {
	stored, ok := in.(*packed)
	if !ok {
		return nil, nil
	}
	hashes, more := stored.hashes()
	if more || len(hashes) > maxBuckets {
		return []string{"/" + stored.text[:stored.afterNamespace]}, nil
	}
	var out []string
	for _, hash := range hashes {
		out = append(out, referenceBucket(hash))
	}
	return out, nil
}

// referrers returns the objects that reference a value of an index, packed.
func (p packedIndexer) referrers(index, value string) ([]any, error) {
	hash := referenceHash(index, value)
	namespace, _, _ := strings.Cut(value, "/")
	var out []any
	for _, bucket := range []string{referenceBucket(hash), "/" + namespace} {
		items, err := p.Indexer.ByIndex(referenceIndex, bucket)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if hashes, more := item.(*packed).hashes(); more || slices.Contains(hashes, hash) {
				out = append(out, item)
			}
		}
	}
	return out, nil
}
