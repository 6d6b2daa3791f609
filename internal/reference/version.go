package reference

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/types"
)

// version identifies a resourceVersion.
type version uint64

// No resourceVersion has these versions: that of an object that does not exist, and that of an object
// of which several versions were read.
const (
	noObject version = iota
	severalVersions
	firstVersion
)

var seed = maphash.MakeSeed()

func versionOf(resourceVersion string) version {
	return max(version(maphash.String(seed, resourceVersion)), firstVersion)
}

func hashOf(key types.NamespacedName) uint64 { return maphash.Comparable(seed, key) }
