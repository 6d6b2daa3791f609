package storage

import (
	"bytes"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// manage records the managers of the fields that a write changes. Only updates have managers,
// because no client of the simulation uses server-side apply. A list is one field, because the
// model has no schemas of the built-in kinds.
func (s *Store) manage(of *Resource, before, after map[string]any, options Options) {
	u := &unstructured.Unstructured{Object: after}
	entries := u.GetManagedFields()
	if len(before) > 0 && len(entries) == 0 {
		// If no manager owned a field at the creation, the API server does not start to track the
		// object.
		return
	}
	changed, removed := differing(before, after)
	if changed.Empty() && removed.Empty() {
		return
	}
	version := of.GroupVersion().String()
	own := -1
	for i := range entries {
		entry := &entries[i]
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			continue
		}
		set = set.Difference(removed)
		if entry.Manager == options.Manager && entry.Subresource == options.Subresource {
			own = i
			set = set.Union(changed)
			entry.Time = new(metav1.Time)
			*entry.Time = s.now()
		} else {
			set = set.Difference(changed)
		}
		setFields(entry, set)
	}
	if own < 0 && !changed.Empty() {
		at := s.now()
		entry := metav1.ManagedFieldsEntry{
			Manager: options.Manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version, Time: &at,
			FieldsType: "FieldsV1", Subresource: options.Subresource,
		}
		setFields(&entry, changed)
		entries = append(entries, entry)
	}
	entries = slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1.GetRawString() == "{}" })
	u.SetManagedFields(entries)
}

func setFields(entry *metav1.ManagedFieldsEntry, set *fieldpath.Set) {
	raw, err := set.ToJSON()
	if err != nil {
		panic(err)
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
}

// differing returns the fields that a write sets or changes, and the fields that it removes.
func differing(before, after map[string]any) (changed, removed *fieldpath.Set) {
	old, now := owned(before), owned(after)
	if reflect.DeepEqual(old, now) {
		return fieldpath.NewSet(), fieldpath.NewSet()
	}
	a, err := typed.DeducedParseableType.FromUnstructured(old)
	if err != nil {
		panic(err)
	}
	b, err := typed.DeducedParseableType.FromUnstructured(now)
	if err != nil {
		panic(err)
	}
	compared, err := a.Compare(b)
	if err != nil {
		panic(err)
	}
	return ownable(compared.Added.Union(compared.Modified)), ownable(compared.Removed)
}

// owned returns the part of an object whose fields have managers.
func owned(object map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range object {
		switch name {
		case "apiVersion", "kind":
		case "metadata":
			meta := map[string]any{}
			for name, value := range value.(map[string]any) {
				switch name {
				case "labels", "annotations", "ownerReferences", "finalizers":
					meta[name] = runtime.DeepCopyJSONValue(value)
				}
			}
			if len(meta) > 0 {
				out[name] = meta
			}
		default:
			out[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	dropEmpty(out)
	return out
}

// dropEmpty removes empty maps, which no manager owns.
func dropEmpty(object map[string]any) {
	for name, value := range object {
		if inner, ok := value.(map[string]any); ok {
			dropEmpty(inner)
			if len(inner) == 0 {
				delete(object, name)
			}
		}
	}
}

// mapFields has the fields with arbitrary keys. A manager owns such a map in addition to its keys.
var mapFields = []string{"labels", "annotations", "data", "binaryData", "matchLabels", "nodeSelector"}

// ownable returns the fields of a set that have managers: maps, and fields without fields of their
// own.
func ownable(set *fieldpath.Set) *fieldpath.Set {
	out := set.Leaves()
	set.Iterate(func(path fieldpath.Path) {
		if name := path[len(path)-1].FieldName; name != nil && slices.Contains(mapFields, *name) {
			out.Insert(path.Copy())
		}
	})
	return out
}
