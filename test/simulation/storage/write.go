package storage

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DeleteOptions are the preconditions and options of a deletion.
type DeleteOptions struct {
	UID             types.UID
	ResourceVersion string
	// Now deletes a Pod immediately.
	Now bool
}

// Create stores a new object.
func (s *Store) Create(key Key, object map[string]any) (*Version, error) {
	object = runtime.DeepCopyJSON(object)
	u := &unstructured.Unstructured{Object: object}
	if u.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if key.Name == "" && u.GetGenerateName() != "" {
		key.Name = fmt.Sprintf("%s%05d", u.GetGenerateName(), s.uids+1)
	}
	if !key.Resource.Cluster && s.Get(Key{Namespaces, "", key.Namespace}) == nil {
		return nil, apierrors.NewNotFound(Namespaces.GroupResource(), key.Namespace)
	}
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	u.SetUID("")
	u.SetCreationTimestamp(s.now())
	u.SetDeletionTimestamp(nil)
	u.SetSelfLink("")
	u.SetGroupVersionKind(key.Resource.GroupVersionKind())
	if key.Resource.HasStatus {
		delete(object, "status")
	}
	if key.Resource.Counts {
		u.SetGeneration(1)
	} else {
		u.SetGeneration(0)
	}
	// The API server validates the object before it returns that the name exists.
	if err := s.complete(key, nil, object); err != nil {
		return nil, err
	}
	if err := s.admit(key.Resource, nil, object); err != nil {
		return nil, err
	}
	if s.live[key] != nil {
		return nil, apierrors.NewAlreadyExists(key.Resource.GroupResource(), key.Name)
	}
	u.SetUID(s.newUID())
	return s.put(key, object, false), nil
}

// Update replaces an object or its subresource: status, scale, or "" for the object.
func (s *Store) Update(key Key, object map[string]any, subresource string) (*Version, error) {
	live := s.live[key]
	if live == nil {
		return nil, apierrors.NewNotFound(key.Resource.GroupResource(), key.Name)
	}
	u := &unstructured.Unstructured{Object: object}
	if uid := u.GetUID(); uid != "" && uid != live.Meta().GetUID() {
		return nil, conflict(key, fmt.Errorf( //nolint:staticcheck // the API server's words
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, live.Meta().GetUID()))
	}
	if subresource == "" && u.GetResourceVersion() == "" && !updatesUnconditionally(key.Resource) {
		return nil, invalid(key, field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	return s.replace(live, runtime.DeepCopyJSON(object), subresource)
}

// updatesUnconditionally reports whether an update without a resource version is allowed.
func updatesUnconditionally(of *Resource) bool {
	return of != NginxOperators && of != PodDisruptionBudgets && of != CustomResourceDefs
}

// replace stores a changed object. It returns the stored version if nothing changes.
func (s *Store) replace(live *Version, object map[string]any, subresource string) (*Version, error) {
	key, before := live.Key, &unstructured.Unstructured{Object: live.Object}
	u := &unstructured.Unstructured{Object: object}
	if version := u.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
		return nil, conflict(key, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := u.GetUID(); uid != "" && uid != before.GetUID() {
		return nil, invalid(key, field.Invalid(field.NewPath("metadata", "uid"), string(uid), "field is immutable"))
	}
	object = merged(key.Resource, live.Object, object, subresource)
	if subresource == "" {
		if err := s.complete(key, live.Object, object); err != nil {
			return nil, err
		}
		if err := s.admit(key.Resource, live.Object, object); err != nil {
			return nil, err
		}
	}
	u = &unstructured.Unstructured{Object: object}
	if key.Resource.Counts && generationChanges(key.Resource, live.Object, object) {
		u.SetGeneration(before.GetGeneration() + 1)
	}
	if reflect.DeepEqual(live.Object, object) {
		return live, nil
	}
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 && len(before.GetFinalizers()) > 0 {
		return s.put(key, object, true), nil
	}
	return s.put(key, object, false), nil
}

// merged returns the object that a write stores: the fields that the request may change, and the
// other fields as they are.
func merged(of *Resource, live, object map[string]any, subresource string) map[string]any {
	if subresource != "" {
		out := runtime.DeepCopyJSON(live)
		name := map[string]string{"status": "status", "scale": "spec"}[subresource]
		if value, found := object[name]; found {
			out[name] = value
		} else {
			delete(out, name)
		}
		return out
	}
	if status, found := live["status"]; of.HasStatus && found {
		object["status"] = runtime.DeepCopyJSONValue(status)
	} else if of.HasStatus {
		delete(object, "status")
	}
	u, before := &unstructured.Unstructured{Object: object}, &unstructured.Unstructured{Object: live}
	u.SetNamespace(before.GetNamespace())
	u.SetName(before.GetName())
	u.SetUID(before.GetUID())
	u.SetResourceVersion(before.GetResourceVersion())
	u.SetCreationTimestamp(before.GetCreationTimestamp())
	u.SetDeletionTimestamp(before.GetDeletionTimestamp())
	u.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	u.SetGeneration(before.GetGeneration())
	u.SetGroupVersionKind(before.GroupVersionKind())
	return object
}

// generationChanges reports whether a write changes a part of an object that increments its
// generation.
func generationChanges(of *Resource, before, after map[string]any) bool {
	if of == EndpointSlices || of == Deployments {
		// The generation of these kinds also increments with labels or annotations.
		b, a := &unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after}
		if of == Deployments && !reflect.DeepEqual(b.GetAnnotations(), a.GetAnnotations()) ||
			of == EndpointSlices && !reflect.DeepEqual(b.GetLabels(), a.GetLabels()) {
			return true
		}
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for name := range names {
		if name != "metadata" && name != "status" && !reflect.DeepEqual(before[name], after[name]) {
			return true
		}
	}
	return false
}

// Delete deletes an object. An object with finalizers, or a Pod on a node, is only marked as
// deleted.
func (s *Store) Delete(key Key, options DeleteOptions) (*Version, error) {
	live := s.live[key]
	if live == nil {
		return nil, apierrors.NewNotFound(key.Resource.GroupResource(), key.Name)
	}
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(live.Object)}
	if options.UID != "" && options.UID != object.GetUID() {
		return nil, conflict(key, fmt.Errorf( //nolint:staticcheck // the API server's words
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", options.UID, object.GetUID()))
	}
	if options.ResourceVersion != "" && options.ResourceVersion != object.GetResourceVersion() {
		return nil, conflict(key, fmt.Errorf( //nolint:staticcheck // the API server's words
			"Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v",
			options.ResourceVersion, object.GetResourceVersion()))
	}
	if err := s.admit(key.Resource, live.Object, nil); err != nil {
		return nil, err
	}
	node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
	graceful := key.Resource == Pods && node != "" && !options.Now
	if !graceful && len(object.GetFinalizers()) == 0 {
		return s.put(key, object.Object, true), nil
	}
	if object.GetDeletionTimestamp() != nil {
		return live, nil
	}
	deleted := s.now()
	if graceful {
		grace, found, _ := unstructured.NestedInt64(object.Object, "spec", "terminationGracePeriodSeconds")
		if !found {
			grace = 30
		}
		deleted = metav1.NewTime(deleted.Add(seconds(grace)))
		object.SetDeletionGracePeriodSeconds(&grace)
	}
	object.SetDeletionTimestamp(&deleted)
	if key.Resource.Counts {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	return s.put(key, object.Object, false), nil
}

func conflict(key Key, err error) error {
	return apierrors.NewConflict(key.Resource.GroupResource(), key.Name, err)
}

func invalid(key Key, errs ...*field.Error) error {
	return apierrors.NewInvalid(key.Resource.GroupVersionKind().GroupKind(), key.Name, errs)
}

// ToMap encodes a typed object.
func ToMap(object any) map[string]any {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return decode(raw)
}

func parseRevision(text string) int64 {
	out, _ := strconv.ParseInt(text, 10, 64)
	return out
}
