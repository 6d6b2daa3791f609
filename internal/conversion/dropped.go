package conversion

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// RemoveDropped completes a server-side apply at v1alpha2. The old object is the stored one, and
// the other one is the API server's merge.
//
// To remove fields that an applier dropped, the API server compares the object before and after the
// removal in the version of every field manager. In v1alpha1, which some manager nearly always
// used, most of the spec is one annotation. The annotation exists before and after, so the API
// server restores all of it and removes nothing. The field managers are correct, though, and show
// the fields to remove: an applier owned them, and no manager owns them now.
func RemoveDropped(old, object *v1alpha2.NginxOperator) error {
	if hasLongList(&old.Spec) || hasLongList(&object.Spec) {
		return nil // the schema rejects it afterwards
	}

	applies := sets.New[string]()
	for i := range object.ManagedFields {
		if entry := &object.ManagedFields[i]; isApply(entry) && entry.APIVersion == v1alpha2.GroupVersion.String() {
			applies.Insert(entry.Manager)
		}
	}

	kept, err := ownedFields(object, nil)
	if err != nil {
		return err
	}

	applied, err := ownedFields(old, applies)
	if err != nil {
		return err
	}

	dropped := applied.Difference(kept)
	if dropped.Empty() {
		return nil
	}

	// The merged v1alpha1 form has only the number of a port, which gets the default name.
	for _, port := range object.Spec.Ports {
		isStored := slices.ContainsFunc(old.Spec.Ports, func(stored v1alpha2.Port) bool { return stored.Name == port.Name })
		if item := portPath(port.Name); !isStored && !kept.Has(item) {
			dropped.Insert(item)
		}
	}

	return removeFields(&object.Spec, dropped)
}

// maxItems is more than the schema allows for lists whose items have keys. The time to look up each
// item grows with the square of their number.
const maxItems = 64

func hasLongList(spec *v1alpha2.NginxOperatorSpec) bool {
	secrets := 0
	if spec.PodTemplate != nil {
		secrets = len(spec.PodTemplate.ImagePullSecrets)
	}
	return max(len(spec.Ports), len(spec.TLS), secrets) > maxItems
}

func isApply(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// ownedFields returns the v1alpha2 fields of these appliers, or of all managers for nil.
func ownedFields(object *v1alpha2.NginxOperator, appliers sets.Set[string]) (*fieldpath.Set, error) {
	var owned []*fieldpath.Set
	for i := range object.ManagedFields {
		entry := &object.ManagedFields[i]
		if appliers != nil && (!isApply(entry) || !appliers.Has(entry.Manager)) {
			continue
		}

		set, err := readFields(entry)
		if err != nil {
			return nil, fmt.Errorf("failed to read the fields of manager %q: %w", entry.Manager, err)
		}
		if entry.APIVersion == v1alpha1.GroupVersion.String() {
			set = upgradeFields(set, &object.Spec)
		}

		owned = append(owned, set)
	}

	return union(owned), nil
}

// union merges two halves, because the cost of a union depends on the size of its result.
func union(parts []*fieldpath.Set) *fieldpath.Set {
	switch len(parts) {
	case 0:
		return fieldpath.NewSet()
	case 1:
		return parts[0]
	}
	return union(parts[:len(parts)/2]).Union(union(parts[len(parts)/2:]))
}

func readFields(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(entry.FieldsV1.GetRawReader())
}

func upgradeFields(set *fieldpath.Set, spec *v1alpha2.NginxOperatorSpec) *fieldpath.Set {
	upgraded := fieldpath.NewSet()
	for _, name := range inBoth {
		if path := fieldpath.MakePathOrDie("spec", name); set.Has(path) {
			upgraded.Insert(path)
		}
	}

	if ports := defaults.Ports(spec); len(ports) > 0 && set.Has(fieldpath.MakePathOrDie("spec", "port")) {
		item := portPath(ports[0].Name)
		upgraded.Insert(item)
		for _, name := range []string{"name", "port"} {
			upgraded.Insert(append(item.Copy(), fieldpath.MakePathOrDie(name)...))
		}
	}

	return upgraded
}

// LosesPort returns the field manager whose server-side apply at v1alpha1 would lose its declared
// port. This manager applied at v1alpha2 before, with a port name other than http. The API server
// treats that port as dropped and the v1alpha1 port as the same one, so it removes both, and the
// object would get the default port.
func LosesPort(before, now []metav1.ManagedFieldsEntry) (manager string, loses bool) {
	declares := sets.New[string]()
	for i := range now {
		if appliedAt(&now[i], v1alpha1.GroupVersion).Has(fieldpath.MakePathOrDie("spec", "port")) {
			declares.Insert(now[i].Manager)
		}
	}

	for i := range before {
		if !declares.Has(before[i].Manager) {
			continue
		}
		appliedAt(&before[i], v1alpha2.GroupVersion).Iterate(func(path fieldpath.Path) {
			if len(path) == 3 && path[:2].Equals(fieldpath.MakePathOrDie("spec", "ports")) && !path.Equals(portPath(v1alpha2.DefaultPortName)) {
				manager, loses = before[i].Manager, true
			}
		})
	}

	return manager, loses
}

// appliedAt returns the fields of a server-side apply at a version. It returns no fields if the
// entry is not an apply at this version, or if it cannot be read.
func appliedAt(entry *metav1.ManagedFieldsEntry, version schema.GroupVersion) *fieldpath.Set {
	if isApply(entry) && entry.APIVersion == version.String() {
		if set, err := readFields(entry); err == nil {
			return set
		}
	}
	return fieldpath.NewSet()
}

func portPath(name string) fieldpath.Path {
	return fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("name", name))
}

func removeFields(spec *v1alpha2.NginxOperatorSpec, set *fieldpath.Set) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return fmt.Errorf("failed to convert the spec to fields: %w", err)
	}

	var paths []fieldpath.Path
	set.Iterate(func(path fieldpath.Path) { paths = append(paths, path.Copy()) })

	// Remove a list item before its key, because the key identifies the item.
	slices.SortStableFunc(paths, func(a, b fieldpath.Path) int { return cmp.Compare(len(a), len(b)) })
	root := map[string]any{"spec": fields}
	for _, path := range paths {
		remove(root, path)
	}

	fields, _ = root["spec"].(map[string]any)
	*spec = v1alpha2.NginxOperatorSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, spec); err != nil {
		return fmt.Errorf("failed to convert the fields to a spec: %w", err)
	}

	return nil
}

// remove removes a field from a value and returns the rest, or nil if the rest is empty. A
// structure without remaining fields is removed too, because no manager declares it.
func remove(value any, path fieldpath.Path) any {
	if len(path) == 0 {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		name := ptr.Deref(path[0].FieldName, "")
		child, isSet := value[name]
		if !isSet {
			return value
		}
		if value[name] = remove(child, path[1:]); value[name] == nil {
			delete(value, name)
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		i := slices.IndexFunc(value, func(item any) bool { return hasKey(item, path[0]) })
		if i < 0 {
			return value
		}
		if value[i] = remove(value[i], path[1:]); value[i] == nil {
			value = slices.Delete(value, i, i+1)
		}
		if len(value) == 0 {
			return nil
		}
		return value
	}

	return value
}

func hasKey(item any, element fieldpath.PathElement) bool {
	fields, isMap := item.(map[string]any)
	return isMap && element.Key != nil && !slices.ContainsFunc(*element.Key, func(key smdvalue.Field) bool {
		return fields[key.Name] != key.Value.Unstructured()
	})
}
