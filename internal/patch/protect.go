package patch

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/wellknown"
)

// nginxContainer is the name of the operator's container.
const nginxContainer = "nginx"

// reservedAnnotations are prefixes of annotations that controllers and kubectl write to patched
// objects.
var reservedAnnotations = []string{"deployment.kubernetes.io/", "kubectl.kubernetes.io/last-applied-configuration"}

// changed returns a message for each forbidden change of a patch to a child.
func (k kind) changed(before, after map[string]any) []string {
	var out []string
	fault := func(field, instead string) {
		out = append(out, fmt.Sprintf("a patch cannot change %s: %s", field, instead))
	}
	// The other top-level fields identify the child or are its status.
	for _, name := range slices.Sorted(maps.Keys(merged(before, after))) {
		if name != "metadata" && name != "spec" && !reflect.DeepEqual(before[name], after[name]) {
			fault(name, ownContract)
		}
	}
	for _, at := range []string{"metadata", "spec.template.metadata"} {
		out = append(out, changedMetadata(get(before, at), get(after, at), at)...)
	}
	for _, own := range k.kept {
		if !reflect.DeepEqual(get(before, own.field), get(after, own.field)) {
			fault(own.field, own.instead)
		}
	}
	for _, own := range k.added {
		if lacks(get(after, own.field), get(before, own.field)) {
			fault(own.field, own.instead)
		}
	}
	return out
}

func merged(a, b map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

func get(object map[string]any, at string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(at, ".")...)
	return value
}

// lacks reports whether a list lacks an element of another list.
func lacks(list, elements any) bool {
	has, _ := list.([]any)
	wanted, _ := elements.([]any)
	return slices.ContainsFunc(wanted, func(element any) bool {
		return !slices.ContainsFunc(has, func(one any) bool { return reflect.DeepEqual(one, element) })
	})
}

// changedMetadata returns a message for each forbidden change. A patch may only add labels and
// annotations, and only with keys that are not reserved.
func changedMetadata(before, after any, at string) []string {
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(merged(was, is))) {
		switch {
		case reflect.DeepEqual(was[name], is[name]):
		case name != "labels" && name != "annotations":
			out = append(out, fmt.Sprintf("a patch cannot change %s.%s: %s", at, name, ownContract))
		default:
			had, _ := was[name].(map[string]any)
			has, _ := is[name].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(merged(had, has))) {
				_, there := had[key]
				switch {
				case there && !reflect.DeepEqual(had[key], has[key]):
					out = append(out, fmt.Sprintf("a patch cannot change %s.%s[%s]: another field or the operator sets it; leave it out", at, name, key))
				case !there && reserved(key):
					out = append(out, fmt.Sprintf("a patch cannot set %s.%s[%s]: it is the operator's; use a prefix of your own", at, name, key))
				}
			}
		}
	}
	return out
}

func reserved(key string) bool {
	return wellknown.IsReserved(key) || strings.HasPrefix(key, "app.kubernetes.io/") ||
		slices.ContainsFunc(reservedAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// tidy restores the operator's order in a patched Deployment, and returns a message for each
// forbidden change of the nginx container. kustomize puts new elements first. The first container
// must be nginx, because kubectl and the API server's messages refer to it.
func tidy(before, after client.Object) []string {
	was, isDeployment := before.(*appsv1.Deployment)
	if !isDeployment {
		return nil
	}
	is, into := &was.Spec.Template.Spec, &after.(*appsv1.Deployment).Spec.Template.Spec
	// The API server copies each of the two fields to the other. If only one were set, removing it
	// later would have no effect.
	into.DeprecatedServiceAccount = into.ServiceAccountName
	foremost(into.Containers, is.Containers, func(c *corev1.Container) string { return c.Name })
	foremost(into.InitContainers, is.InitContainers, func(c *corev1.Container) string { return c.Name })
	foremost(into.Volumes, is.Volumes, func(v *corev1.Volume) string { return v.Name })
	if len(into.Containers) == 0 || into.Containers[0].Name != nginxContainer {
		return []string{"a patch cannot remove or rename the container nginx: " + ownContract}
	}
	nginx, own := &into.Containers[0], &is.Containers[0]
	foremost(nginx.VolumeMounts, own.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
	out := append(changedContainer(own, nginx), changedMounts(own.VolumeMounts, nginx.VolumeMounts)...)
	return append(out, takenPorts(nginx.Ports, slices.Concat(into.Containers[1:], into.InitContainers))...)
}

// foremost moves the elements that own also has to the beginning of the list, in the order of own.
func foremost[T any](list, own []T, name func(*T) string) {
	rank := map[string]int{}
	for i := range own {
		rank[name(&own[i])] = i
	}
	place := func(one *T) int {
		if at, found := rank[name(one)]; found {
			return at
		}
		return len(own)
	}
	slices.SortStableFunc(list, func(a, b T) int { return place(&a) - place(&b) })
}

func changedContainer(before, after *corev1.Container) []string {
	var out []string
	was, is := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for _, own := range keptOfNginx {
		at, _ := typeOf(was.Type(), own.field)
		if !equality.Semantic.DeepEqual(was.FieldByIndex(at.Index).Interface(), is.FieldByIndex(at.Index).Interface()) {
			out = append(out, fmt.Sprintf("a patch cannot change %s of the container nginx: %s", own.field, own.instead))
		}
	}
	return out
}

// changedMounts returns a message for each of the operator's mounts that was changed, and for each
// other mount that hides one or is inside of a read-only one.
func changedMounts(before, after []corev1.VolumeMount) []string {
	var out []string
	for i := range before {
		own := &before[i]
		if i >= len(after) || !equality.Semantic.DeepEqual(*own, after[i]) {
			out = append(out, fmt.Sprintf("a patch cannot change volumeMounts of the container nginx (%s): %s", own.MountPath, ownContract))
			continue
		}
		for _, other := range after[len(before):] {
			if within(own.MountPath, other.MountPath) || own.ReadOnly && within(other.MountPath, own.MountPath) {
				out = append(out, fmt.Sprintf("a patch cannot mount %s in the container nginx, where the operator mounts %s: choose another path",
					other.MountPath, own.MountPath))
			}
		}
	}
	return out
}

// within reports whether a path is the directory or is below it.
func within(inner, directory string) bool {
	inner, directory = path.Clean("/"+inner), path.Clean("/"+directory)
	return inner == directory || directory == "/" || strings.HasPrefix(inner, directory+"/")
}

// takenPorts returns a message for each port of nginx that another container declares. The Service
// references ports by name, and the NetworkPolicy by number.
func takenPorts(own []corev1.ContainerPort, others []corev1.Container) []string {
	names, numbers := sets.New[string](), sets.New[int32]()
	for _, port := range own {
		names.Insert(port.Name)
		numbers.Insert(port.ContainerPort)
	}
	var out []string
	for i := range others {
		for _, port := range others[i].Ports {
			if names.Has(port.Name) && port.Name != "" || numbers.Has(port.ContainerPort) {
				out = append(out, fmt.Sprintf("port %d (%s) of the container %s is nginx's: choose another name and number",
					port.ContainerPort, port.Name, others[i].Name))
			}
		}
	}
	return out
}
