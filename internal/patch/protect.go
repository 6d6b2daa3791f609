package patch

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/wellknown"
)

// reservedAnnotations are prefixes of what controllers and kubectl write.
var reservedAnnotations = []string{"deployment.kubernetes.io/", "kubectl.kubernetes.io/last-applied-configuration"}

func (k kind) changed(before, after map[string]any) []string {
	var faults []string
	fault := func(field, instead string) {
		faults = append(faults, fmt.Sprintf("a patch cannot change %s; %s", field, instead))
	}

	// The other top-level fields identify the child or are its status.
	for _, name := range keysOf(before, after) {
		if name != "metadata" && name != "spec" && !reflect.DeepEqual(before[name], after[name]) {
			fault(name, removeIt)
		}
	}

	for _, at := range []string{"metadata", "spec.template.metadata"} {
		faults = append(faults, changedMetadata(mapAt(before, at), mapAt(after, at), at)...)
	}

	for _, own := range k.kept {
		if !reflect.DeepEqual(get(before, own.field), get(after, own.field)) {
			fault(own.field, own.instead)
		}
	}

	for _, own := range k.added {
		if len(missing(get(after, own.field), get(before, own.field))) > 0 {
			faults = append(faults, fmt.Sprintf("a patch cannot change or remove items of %s; %s", own.field, own.instead))
		}
	}

	return faults
}

func keysOf(before, after map[string]any) []string {
	return sets.List(sets.KeySet(before).Union(sets.KeySet(after)))
}

func mapAt(object map[string]any, at string) map[string]any {
	fields, _ := get(object, at).(map[string]any)
	return fields
}

func get(object map[string]any, at string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(at, ".")...)
	return value
}

func missing(list, elements any) []any {
	existing, _ := list.([]any)
	wanted, _ := elements.([]any)
	return slices.DeleteFunc(slices.Clone(wanted), func(element any) bool {
		return slices.ContainsFunc(existing, func(other any) bool { return reflect.DeepEqual(other, element) })
	})
}

// changedMetadata returns a message for each forbidden change. A patch may only add labels and
// annotations, and only with keys that are not reserved.
func changedMetadata(before, after map[string]any, at string) []string {
	var faults []string
	for _, name := range keysOf(before, after) {
		if name != "labels" && name != "annotations" {
			if !reflect.DeepEqual(before[name], after[name]) {
				faults = append(faults, fmt.Sprintf("a patch cannot change %s.%s; %s", at, name, removeIt))
			}
			continue
		}

		was, is := mapAt(before, name), mapAt(after, name)
		for _, key := range keysOf(was, is) {
			_, existed := was[key]
			field := fmt.Sprintf("%s.%s[%s]", at, name, key)
			switch {
			case existed && !reflect.DeepEqual(was[key], is[key]):
				faults = append(faults, "a patch cannot change "+field+", which the operator or the spec sets; "+removeIt)
			case !existed && reserved(key):
				faults = append(faults, "a patch cannot set "+field+": this key is reserved; use your own prefix")
			}
		}
	}

	return faults
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

	// The API server copies each of the two fields to the other, so a removal needs both.
	into.DeprecatedServiceAccount = into.ServiceAccountName

	foremost(into.Containers, is.Containers, func(c *corev1.Container) string { return c.Name })
	foremost(into.InitContainers, is.InitContainers, func(c *corev1.Container) string { return c.Name })
	foremost(into.Volumes, is.Volumes, func(v *corev1.Volume) string { return v.Name })
	if len(into.Containers) == 0 || into.Containers[0].Name != "nginx" {
		return []string{"a patch cannot remove or rename the container nginx; " + removeIt}
	}

	nginx, own := &into.Containers[0], &is.Containers[0]
	foremost(nginx.VolumeMounts, own.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
	return slices.Concat(
		changedContainer(own, nginx), changedMounts(own.VolumeMounts, nginx.VolumeMounts),
		takenPorts(nginx.Ports, slices.Concat(into.Containers[1:], into.InitContainers)),
	)
}

func foremost[T any](list, own []T, name func(*T) string) {
	place := func(element *T) int {
		if at := slices.IndexFunc(own, func(mine T) bool { return name(&mine) == name(element) }); at >= 0 {
			return at
		}
		return len(own)
	}

	slices.SortStableFunc(list, func(a, b T) int { return place(&a) - place(&b) })
}

func changedContainer(before, after *corev1.Container) []string {
	var faults []string
	was, is := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for _, own := range keptOfNginx {
		at, _ := typeOf(was.Type(), own.field)
		if !equality.Semantic.DeepEqual(was.FieldByIndex(at.Index).Interface(), is.FieldByIndex(at.Index).Interface()) {
			faults = append(faults, fmt.Sprintf("a patch cannot change %s of the container nginx; %s", own.field, own.instead))
		}
	}

	return faults
}

// changedMounts returns the changed mounts of the operator, and those that hide one.
func changedMounts(before, after []corev1.VolumeMount) []string {
	var faults []string
	for i := range before {
		own := &before[i]
		if i >= len(after) || !equality.Semantic.DeepEqual(*own, after[i]) {
			faults = append(faults, fmt.Sprintf("a patch cannot change the volumeMount %s of the container nginx; %s",
				own.MountPath, removeIt))
			continue
		}
		for _, other := range after[len(before):] {
			if within(own.MountPath, other.MountPath) || own.ReadOnly && within(other.MountPath, own.MountPath) {
				faults = append(faults, fmt.Sprintf("mountPath %s of the container nginx conflicts with the operator's mountPath %s; "+
					"choose another mountPath", other.MountPath, own.MountPath))
			}
		}
	}

	return faults
}

func within(inner, directory string) bool {
	inner, directory = path.Clean("/"+inner), path.Clean("/"+directory)
	return inner == directory || directory == "/" || strings.HasPrefix(inner, directory+"/")
}

// takenPorts returns the ports of others that the Service or NetworkPolicy would reference.
func takenPorts(own []corev1.ContainerPort, others []corev1.Container) []string {
	var faults []string
	for i := range others {
		for _, port := range others[i].Ports {
			if slices.ContainsFunc(own, func(mine corev1.ContainerPort) bool {
				return mine.Name == port.Name && port.Name != "" || mine.ContainerPort == port.ContainerPort
			}) {
				faults = append(faults, fmt.Sprintf("containerPort %d of the container %s has the name or the number of a port of "+
					"the container nginx; choose another name and number", port.ContainerPort, others[i].Name))
			}
		}
	}

	return faults
}

var standard = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// lessSecure returns the rules of the Pod Security Standard "restricted" that a patched Pod
// violates and the original Pod does not, in the words of the API server. No namespace can enforce
// a stricter level, so a Pod that violates none of them is admitted everywhere.
func lessSecure(before, after client.Object) []string {
	was, isDeployment := before.(*appsv1.Deployment)
	if !isDeployment {
		return nil
	}

	evaluator, err := standard()
	if err != nil {
		return []string{"failed to create the checks of Pod Security: " + err.Error()}
	}

	evaluate := func(deployment *appsv1.Deployment) []policy.CheckResult {
		template := deployment.Spec.Template
		// The effect of these fields depends on the version of the API server and its nodes.
		template.Spec.HostUsers, template.Spec.OS = nil, nil
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		return evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec)
	}

	original, patched := evaluate(was), evaluate(after.(*appsv1.Deployment))
	var faults []string
	for i, check := range patched {
		if !check.Allowed && (i >= len(original) || original[i].Allowed) {
			faults = append(faults, fmt.Sprintf("violates PodSecurity \"restricted:latest\": %s (%s)", check.ForbiddenReason, check.ForbiddenDetail))
		}
	}

	return faults
}
