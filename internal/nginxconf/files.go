package nginxconf

import (
	"path"
	"slices"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// readsFile are the directives, in addition to include, whose last argument can be a file of
// spec.files.
var readsFile = slices.Concat(readAtStart, []string{"auth_basic_user_file", "js_import", "js_include"})

// maxMasks is the maximum number of masks that are compared with the paths of spec.files.
const maxMasks = 64

// ownsFiles reports whether the image has no visible file in FilesDirectory: spec.files hides the
// directory, or the image is known not to have it.
func (c *checker) ownsFiles() bool { return len(c.spec.Files) > 0 || c.release.certain }

// inFiles reports whether only spec.files can have a file.
func (c *checker) inFiles(file string) bool {
	return c.ownsFiles() && isBelow(file, FilesDirectory) && c.mountAt(file) == nil
}

// checkDeclaredFiles finds references to files that spec.files does not have.
func (c *checker) checkDeclaredFiles() {
	for _, d := range c.withNames(readsFile...) {
		if len(d.args) == 0 {
			continue
		}

		file := d.args[len(d.args)-1]
		switch {
		case !c.inFiles(file), strings.Contains(file, "$"), len(c.filesOf(file)) > 0:
		case len(c.spec.Files) == 0 && !slices.Contains(readAtStart, d.name):
			// nginx starts without the file.
			c.warn(d, "%s %s does not exist. Add `- path: %s` to spec.files", d.name, file, below(file))
		default:
			c.refuseUndeclared(d, file)
		}
	}
}

func (c *checker) refuseUndeclared(d *directive, file string) {
	if !c.mountsKnown { // a patch may mount the file
		if isInclude(d) {
			c.setUnseen(d)
		}
		return
	}

	if mask := c.directoryOf(below(file)); mask != nil {
		c.refuse(d, "%s %s does not exist: no key of ConfigMap %s that matches %s has this name. Add the key, or change the mask in spec.files",
			d.name, file, mask.ConfigMapRef.Name, mask.ConfigMapRef.Key)
		return
	}
	c.refuse(d, "%s %s is not in spec.files. Add `- path: %s` with a configMapRef or a secretRef",
		d.name, file, below(file))
}

// directoryOf returns the entry of spec.files with a mask whose directory has a file, or nil.
func (c *checker) directoryOf(file string) *v1alpha2.File {
	for i := range c.directories {
		if path.Dir(file) == c.directories[i].Path {
			return &c.directories[i]
		}
	}
	return nil
}

// unknownFile represents files of spec.files that may exist, and whose text is unknown.
const unknownFile = ""

// filesOf returns the paths of spec.files that a name or a mask matches. Before the ConfigMaps are
// read, the keys in the directory of a mask are unknown.
func (c *checker) filesOf(file string) []string {
	wanted := below(file)
	var paths []string
	if c.texts == nil && slices.ContainsFunc(c.directories, func(entry v1alpha2.File) bool { return mayHave(entry, wanted) }) {
		paths = append(paths, unknownFile)
	}
	if c.files.Has(wanted) {
		return append(paths, wanted)
	}
	if !isMask(file) {
		return paths
	}

	if c.masks++; c.masks > maxMasks && len(c.files) > 0 {
		return append(paths, unknownFile) // not compared
	}

	for i := range c.spec.Files {
		declared := c.spec.Files[i].Path
		if matches, _ := path.Match(wanted, declared); matches && c.files.Has(declared) {
			paths = append(paths, declared)
		}
	}

	return paths
}

// mayHave reports whether the directory of a mask can have a file, or a file that a mask of nginx
// matches.
func mayHave(entry v1alpha2.File, wanted string) bool {
	inDirectory, _ := path.Match(path.Dir(wanted), entry.Path)
	isKey, _ := path.Match(entry.ConfigMapRef.Key, path.Base(wanted))
	return inDirectory && (isKey || isMask(path.Base(wanted)))
}

// below returns the path of a file relative to FilesDirectory.
func below(file string) string { return strings.TrimPrefix(path.Clean(file), FilesDirectory+"/") }

// isMask reports whether a name is a mask. nginx accepts a mask that matches no file.
func isMask(file string) bool { return strings.ContainsAny(file, "*?[") }

// isWritable reports whether nginx can write a file. A path that starts with a variable is unknown,
// and accepted.
func (c *checker) isWritable(file string) bool {
	if mount := c.mountAt(file); mount != nil {
		return mount.writable
	}
	return !c.mountsKnown || isBelow(file, "/tmp") || isBelow(file, "/dev/shm") || strings.HasPrefix(file, "$") || c.inCache(file)
}

// inCache reports whether a file is in the volume of spec.cache.
func (c *checker) inCache(file string) bool {
	return c.spec.Cache != nil && isWithin(file, defaults.CachePath(c.spec.Cache))
}

// checkCachePath checks the directory of a cache or of temporary files.
func (c *checker) checkCachePath(d *directive) {
	isCache := strings.HasSuffix(d.name, "_cache_path")
	hasMaxSize := slices.ContainsFunc(d.args, func(arg string) bool { return strings.HasPrefix(arg, "max_size=") })
	switch file := d.first(); {
	case file == "off":
	case !c.isWritable(file) && isCache:
		c.refuse(d, readOnly+"Mount a volume there with spec.cache, or use %s",
			d.name, file, path.Join("/tmp", path.Base(file)))
	case !c.isWritable(file):
		c.refuse(d, readOnly+"Use %s", d.name, file, path.Join("/tmp", path.Base(file)))
	case isCache && c.inCache(file) && !hasMaxSize:
		c.warn(d, "%s %s has no max_size: when the volume of spec.cache is full, the Pod is evicted (with inMemory, writes fail). "+
			"Add a max_size below the size of the volume", d.name, file)
	}
}
