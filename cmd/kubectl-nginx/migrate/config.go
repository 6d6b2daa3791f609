package migrate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	mainFile      = "/etc/nginx/nginx.conf"
	confDirectory = "/etc/nginx/conf.d"
	bitnami       = "/opt/bitnami/nginx/conf"
)

// Places of the configuration in the official image and in Bitnami's: nginx.conf, and the directory
// whose files it includes in its http block.
var (
	mainFiles   = []string{mainFile, bitnami + "/nginx.conf"}
	directories = []string{confDirectory, bitnami + "/server_blocks"}
)

// isConfiguration reports whether nginx in an image reads a mount as its configuration.
func isConfiguration(mount mounted) bool {
	at := path.Clean(mount.at)
	return slices.Contains(mainFiles, at) || at == path.Dir(mainFile) || slices.Contains(directories, at) ||
		slices.Contains(directories, path.Dir(at)) && mount.subPath != ""
}

func matches(masks []string, file string) bool {
	return slices.ContainsFunc(masks, func(mask string) bool {
		matched, err := path.Match(mask, file)
		return matched && err == nil
	})
}

func (r *Result) configMap(name string) (data map[string]string, exists bool, err error) {
	for _, manifest := range r.manifests {
		if manifest.GetKind() == "ConfigMap" && manifest.GetName() == name && manifest.GetNamespace() == r.Object.Namespace {
			data, _, err = unstructured.NestedStringMap(manifest.Object, "data")
			return data, true, err
		}
	}
	return nil, false, nil
}

func (r *Result) config(name string, mount mounted) error {
	data, exists, err := r.configMap(name)
	if err != nil {
		return fmt.Errorf("failed to read ConfigMap %q: %w", name, err)
	}
	if !exists {
		const missing = "it mounts ConfigMap %q at %s, which the manifests do not have. Add that ConfigMap with -f"
		return fmt.Errorf(missing, name, mount.at)
	}

	files, err := filesOf(data, mount)
	if err != nil {
		return fmt.Errorf("ConfigMap %q %w", name, err)
	}

	for _, file := range slices.Sorted(maps.Keys(files)) {
		switch {
		case slices.Contains(mainFiles, file):
			if r.whole, err = read(file, files[file], false); err != nil {
				return err
			}
		case slices.Contains(directories, path.Dir(file)) && path.Ext(file) == ".conf":
			r.included[file] = files[file]
		default:
			r.Lost = append(r.Lost, fmt.Sprintf("ConfigMap %s, %s: if the configuration includes it, move it to spec.config or spec.files",
				name, file))
		}
	}

	return nil
}

func filesOf(data map[string]string, mount mounted) (map[string]string, error) {
	texts := data
	if items := itemsOf(mount.volume); items != nil {
		texts = map[string]string{}
		for file, key := range items {
			text, exists := data[key]
			if !exists {
				return nil, fmt.Errorf("has no key %q", key)
			}
			texts[file] = text
		}
	}

	if mount.subPath != "" {
		text, exists := texts[path.Clean(mount.subPath)]
		if !exists {
			return nil, fmt.Errorf("has no key %q", mount.subPath)
		}
		return map[string]string{path.Clean(mount.at): text}, nil
	}

	files := map[string]string{}
	for file, text := range texts {
		files[path.Join(mount.at, file)] = text
	}
	if at := path.Clean(mount.at); at == path.Dir(mainFile) && files[mainFile] == "" {
		return nil, fmt.Errorf("has no key %q", path.Base(mainFile))
	}

	return files, nil
}

func (r *Result) assemble() error {
	files := slices.Sorted(maps.Keys(r.included))
	var text string
	// The nginx.conf of an image includes these files, and the operator's does not.
	masks := []string{directories[0] + "/*.conf", directories[1] + "/*.conf"}
	if r.whole != nil {
		var err error
		if text, masks, err = r.whole.http(files); err != nil {
			return err
		}
		if err := r.outside(r.whole); err != nil {
			return err
		}
	}

	var texts []string
	for _, file := range files {
		if matches(masks, file) {
			texts = append(texts, r.included[file])
			continue
		}
		r.Lost = append(r.Lost, file+": the http block of nginx.conf does not include it; if another block or file does, move it to spec.files")
	}

	text += strings.Join(texts, "\n")
	for _, include := range r.volumeIncludes(masks) {
		if text = strings.TrimSuffix(text, "\n"); text != "" {
			text += "\n"
		}
		text += fmt.Sprintf("include %s;\n", include)
	}

	if text != "" {
		r.Object.Spec.Config = &v1alpha2.Config{Inline: text}
	}

	return nil
}

func (r *Result) volumeIncludes(masks []string) []string {
	var includes []string
	for i := range r.Object.Spec.Volumes {
		at := path.Clean(r.Object.Spec.Volumes[i].MountPath)
		if matches(masks, at) {
			includes = append(includes, at)
		}
		for _, mask := range masks {
			if path.Dir(mask) == at {
				includes = append(includes, mask)
			}
		}
	}

	return includes
}
