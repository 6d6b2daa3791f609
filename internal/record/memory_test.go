package record

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestMemoryIsBounded verifies that the memory has two records of an object, and drops the objects
// that were not used for the longest time.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := &Memory{}
	key := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("web-", i)}
	}
	require := func(i int, uid types.UID, want bool) {
		t.Helper()
		if data, found := m.find(key(i), uid); found != want || found && data.Edition != i {
			t.Errorf("object %d, record %s: found %t with edition %d", i, uid, found, data.Edition)
		}
	}
	add := func(i int, uid types.UID, size int) { m.add(key(i), remembered{uid, Data{Edition: i}, size}) }

	add(0, "a", 1)
	add(0, "b", 1)
	add(0, "c", 1)
	require(0, "a", false)
	require(0, "b", true)
	require(0, "c", true)

	const each = maxRememberedBytes / 4
	for i := range 3 {
		add(i+1, "a", each)
	}
	require(0, "b", true) // used again
	add(4, "a", each)
	require(1, "a", false)
	require(0, "b", true)
	require(4, "a", true)
	add(5, "a", 2*maxRememberedBytes)
	for i := range 6 {
		require(i, "a", false)
	}
	if m.bytes != 0 || len(m.objects) != 0 {
		t.Errorf("%d bytes, %d objects", m.bytes, len(m.objects))
	}
	add(6, "a", 5)
	m.Forget(key(6))
	m.Forget(key(7))
	if m.bytes != 0 || m.order.Len() != 0 {
		t.Errorf("%d bytes, %d objects after Forget", m.bytes, m.order.Len())
	}
}
