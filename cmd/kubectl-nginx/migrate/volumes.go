package migrate

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

const (
	htmlDirectory = "/usr/share/nginx/html"
	cacheRoot     = "/var/cache"
	temporary     = "/tmp"
)

// unread has the reason why files and directories have no effect in the operator's Pods.
var unread = map[string]string{
	mainFile:                          ownMain,
	bitnami + "/nginx.conf":           ownMain,
	"/etc/nginx/templates":            template,
	"/docker-entrypoint.d":            noEntry,
	bitnami + "/context.d":            notIncluded,
	bitnami + "/stream_server_blocks": onlyHTTP,
}

// mounted is a volume of a Pod, and its mount path in the nginx container.
type mounted struct {
	volume            source
	name, at, subPath string
}

// volumes converts the volumes of the nginx container. known converts a mount that has its own
// field, and returns false for other mounts.
func (r *Result) volumes(declared, mounts []source, known func(mounted) (bool, error)) error {
	volumes := map[string]source{}
	for _, volume := range declared {
		volumes[volume.text("name")] = volume
	}

	used, added := sets.New[string](), sets.New[string]()
	for _, from := range mounts {
		name := from.text("name")
		volume, exists := volumes[name]
		if !exists {
			from.lose("name", fmt.Sprintf("the Pod has no volume %q", name))
			continue
		}

		mount := mounted{volume, name, from.text("mountPath"), from.text("subPath")}
		readOnly := from.take("readOnly") == true
		isKnown, err := known(mount)
		if err != nil {
			return err
		}

		used.Insert(name)
		switch at := path.Clean(mount.at); {
		case isKnown && at == temporary && r.mounts(name):
			from.lose("", at+": the operator mounts its own volume here, which other containers do not share; use another path")
		case isKnown:
		case added.Has(name):
			from.lose("", mount.at+": spec.volumes mounts a volume only once; add a volume with another name")
			loseUnread(from, at)
		default:
			added.Insert(name)
			r.addVolume(v1alpha2.Volume{MountPath: mount.at, SubPath: mount.subPath, ReadOnly: readOnly}, name, volume)
			loseUnread(from, at)
		}

		from.rest()
	}

	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		if !added.Has(name) && (!used.Has(name) || r.mounts(name)) {
			r.addVolume(v1alpha2.Volume{}, name, volumes[name])
		}
	}

	return nil
}

func loseUnread(mount source, at string) {
	for file, why := range unread {
		if at == file || strings.HasPrefix(at, file+"/") || file == mainFile && at == path.Dir(file) {
			mount.lose("", at+": "+why)
		}
	}
}

// addVolume adds a volume, unless spec.volumes does not support its source.
func (r *Result) addVolume(target v1alpha2.Volume, name string, from source) {
	if _, isEmptyDir := from.fields["emptyDir"]; isEmptyDir && from.fields["emptyDir"] == nil {
		from.fields["emptyDir"] = map[string]any{}
	}

	from.all(&target)
	target.Name = name
	without := v1alpha2.Volume{Name: name, MountPath: target.MountPath, SubPath: target.SubPath, ReadOnly: target.ReadOnly}
	if target != without {
		r.Object.Spec.Volumes = append(r.Object.Spec.Volumes, target)
	}
}

// isTemporary reports whether the operator's own volume replaces a mount.
func isTemporary(mount mounted) bool {
	emptyDir, isEmptyDir := mount.volume.fields["emptyDir"].(map[string]any)
	if path.Clean(mount.at) != temporary || !isEmptyDir {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(emptyDir)) {
		mount.volume.lose("emptyDir."+name, "the operator mounts its own volume at /tmp, which has no settings")
	}
	return true
}

// knownMount converts a mount that has its own field: configuration, static files, or a cache.
func (r *Result) knownMount(mount mounted) (bool, error) {
	spec := &r.Object.Spec
	isWhole := mount.subPath == ""
	configMap, _, _ := unstructured.NestedString(mount.volume.fields, "configMap", "name")
	emptyDir, isEmptyDir := mount.volume.fields["emptyDir"].(map[string]any)
	switch {
	case isTemporary(mount):
		return true, nil
	case configMap != "" && isConfiguration(mount):
		return true, r.config(configMap, mount)
	case configMap != "" && mount.at == htmlDirectory && isWhole && spec.Content == nil && !hasModes(mount.volume):
		spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: configMap}}
		items := itemsOf(mount.volume)
		for _, file := range slices.Sorted(maps.Keys(items)) {
			item := v1alpha2.ContentItem{Key: items[file], Path: file}
			spec.Content.ConfigMapRef.Items = append(spec.Content.ConfigMapRef.Items, item)
		}
		return true, nil
	// spec.volumes can share a volume with other containers, and spec.cache cannot.
	case isEmptyDir && spec.Cache == nil && strings.HasPrefix(mount.at, cacheRoot+"/") && isWhole && !r.mounts(mount.name):
		if isNothing(emptyDir["sizeLimit"]) {
			return false, nil // spec.cache requires a size
		}

		limit := fmt.Sprint(emptyDir["sizeLimit"])
		size, err := resource.ParseQuantity(limit)
		if err != nil {
			return false, fmt.Errorf("failed to read sizeLimit %q of volume %q: %w", limit, mount.name, err)
		}

		inMemory := emptyDir["medium"] == string(corev1.StorageMediumMemory)
		spec.Cache = &v1alpha2.Cache{Path: path.Clean(mount.at), Size: cacheSize(limit, size, 1), InMemory: inMemory}
		return true, nil
	}

	return false, nil
}

// cacheSize returns the size of spec.cache for a quantity, multiplied by a factor and rounded up.
func cacheSize(text string, size resource.Quantity, factor float64) string {
	if _, valid := defaults.CacheSize(&v1alpha2.Cache{Size: text}); valid && factor == 1 {
		return text
	}

	const mebibyte, most = 1 << 20, 99_999
	if number := math.Ceil(size.AsApproximateFloat64() * factor / mebibyte); number <= most {
		return fmt.Sprintf("%.0fMi", number)
	}
	return fmt.Sprintf("%.0fGi", math.Ceil(size.AsApproximateFloat64()*factor/(mebibyte<<10)))
}

// itemsOf returns the keys in a volume by their path, or nil if it has all keys of the ConfigMap.
func itemsOf(volume source) map[string]string {
	var items map[string]string
	list, _, _ := unstructured.NestedSlice(volume.fields, "configMap", "items")
	for _, item := range list {
		fields, _ := item.(map[string]any)
		key, _ := fields["key"].(string)
		file, _ := fields["path"].(string)
		if items == nil {
			items = map[string]string{}
		}

		items[file] = key
	}

	return items
}

// hasModes reports whether a key in a volume has a mode. spec.volumes reports it as lost.
func hasModes(volume source) bool {
	list, _, _ := unstructured.NestedSlice(volume.fields, "configMap", "items")
	return slices.ContainsFunc(list, func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["mode"] != nil
	})
}
