package migrate

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	confDirectory = "/etc/nginx/conf.d"
	mainFile      = "/etc/nginx/nginx.conf"
	htmlDirectory = "/usr/share/nginx/html"
	cacheRoot     = "/var/cache"
)

// mounted is a volume of a Pod, and its mount path in the nginx container.
type mounted struct {
	volume            source
	name, at, subPath string
}

// volumes converts the volumes of the nginx container.
func (r *Result) volumes(pod, nginx source, manifests []*unstructured.Unstructured, namespace string) error {
	volumes := map[string]source{}
	for _, volume := range pod.list("volumes") {
		volumes[volume.text("name")] = volume
	}
	for _, mount := range nginx.list("volumeMounts") {
		name := mount.text("name")
		volume, found := volumes[name]
		if !found {
			continue
		}
		one := mounted{volume, name, mount.text("mountPath"), mount.text("subPath")}
		if one.at == "/tmp" && volume.fields["emptyDir"] != nil {
			delete(volumes, name) // the operator mounts its own
			continue
		}
		known, err := r.knownMount(one, manifests, namespace)
		if err != nil {
			return err
		}
		if !known {
			target := v1alpha2.Volume{MountPath: one.at, SubPath: one.subPath, ReadOnly: mount.take("readOnly") == true}
			r.addVolume(target, name, volume)
		}
		mount.drop("readOnly")
		mount.rest()
		delete(volumes, name)
	}
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		r.addVolume(v1alpha2.Volume{}, name, volumes[name])
	}
	return nil
}

// addVolume adds a volume, unless spec.volumes does not support its source.
func (r *Result) addVolume(target v1alpha2.Volume, name string, from source) {
	from.all(&target)
	target.Name = name
	without := v1alpha2.Volume{Name: name, MountPath: target.MountPath, SubPath: target.SubPath, ReadOnly: target.ReadOnly}
	if target != without {
		r.Object.Spec.Volumes = append(r.Object.Spec.Volumes, target)
	}
}

// knownMount converts a mount that has its own field: configuration, static files, or a cache.
func (r *Result) knownMount(one mounted, manifests []*unstructured.Unstructured, namespace string) (bool, error) {
	spec := &r.Object.Spec
	configMap, _, _ := unstructured.NestedString(one.volume.fields, "configMap", "name")
	emptyDir, isEmptyDir := one.volume.fields["emptyDir"].(map[string]any)
	switch {
	case configMap != "" && slices.Contains([]string{mainFile, path.Dir(mainFile), confDirectory, confDirectory + "/" + one.subPath}, one.at):
		return true, r.config(configMap, one, manifests, namespace)
	case configMap != "" && one.at == htmlDirectory && one.subPath == "":
		spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: configMap}}
		r.Keep = append(r.Keep, "ConfigMap "+configMap)
		return true, nil
	case isEmptyDir && spec.Cache == nil && strings.HasPrefix(one.at, cacheRoot+"/"):
		size, _ := emptyDir["sizeLimit"].(string)
		if size == "" {
			return false, nil
		}
		spec.Cache = &v1alpha2.Cache{Path: one.at, Size: size, InMemory: emptyDir["medium"] == string(corev1.StorageMediumMemory)}
		return true, nil
	}
	return false, nil
}
