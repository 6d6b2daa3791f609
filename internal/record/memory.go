package record

import (
	"container/list"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxRemembered is the number of records of an object that are remembered: the last good one, and
	// the applied one.
	maxRemembered = 2
	// maxRememberedBytes bounds the data of all remembered records.
	maxRememberedBytes = 4 << 20
)

// Memory remembers records of objects whose spec is not applied or rolls out, without their files. It
// drops those of the objects that did not use them for the longest time. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	bytes   int
	objects map[types.NamespacedName]*list.Element
	// order has the *memoryOf of each object, the most recently used one first.
	order list.List
}

// memoryOf has the remembered records of an object.
type memoryOf struct {
	object  types.NamespacedName
	records []remembered
}

// remembered is a record that was read, without its files.
type remembered struct {
	uid      types.UID
	revision Data
	// size is the size of the stored data in bytes.
	size int
}

// Forget drops the records of an object.
func (m *Memory) Forget(object types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.objects[object]; found != nil {
		m.drop(found)
	}
}

// find returns a record of an object.
func (m *Memory) find(object types.NamespacedName, uid types.UID) (Data, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.objects[object]
	if found == nil {
		return Data{}, false
	}
	m.order.MoveToFront(found)
	records := found.Value.(*memoryOf).records
	at := slices.IndexFunc(records, func(one remembered) bool { return one.uid == uid })
	if at < 0 {
		return Data{}, false
	}
	return records[at].revision, true
}

// add adds a record of an object. It drops other records of the object, and other objects, if there
// are too many.
func (m *Memory) add(object types.NamespacedName, record remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := []remembered{record}
	if found := m.objects[object]; found != nil {
		known := found.Value.(*memoryOf).records
		records = append(records, known[:min(len(known), maxRemembered-1)]...)
		m.drop(found)
	}
	if m.objects == nil {
		m.objects = map[types.NamespacedName]*list.Element{}
	}
	m.objects[object] = m.order.PushFront(&memoryOf{object, records})
	for _, one := range records {
		m.bytes += one.size
	}
	for m.bytes > maxRememberedBytes {
		m.drop(m.order.Back())
	}
}

// drop drops the records of an object. The caller holds the lock.
func (m *Memory) drop(of *list.Element) {
	dropped := m.order.Remove(of).(*memoryOf)
	delete(m.objects, dropped.object)
	for _, one := range dropped.records {
		m.bytes -= one.size
	}
}
