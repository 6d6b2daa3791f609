package nginxconf

import (
	"path"
	"slices"
	"strings"

	"github.com/example/nginx-operator/internal/defaults"
)

// readsFile are the directives whose last argument may be a file of spec.files, beside include.
var readsFile = slices.Concat(readAtStart, []string{"auth_basic_user_file", "js_import", "js_include"})

// maxMasks bounds how many masks of includes are compared with the paths of spec.files.
const maxMasks = 64

// ownsFiles reports whether nothing of the image can be in the directory of spec.files: they hide it, or it is known to be empty.
func (c *checker) ownsFiles() bool { return len(c.spec.Files) > 0 || c.release.certain }

// inFiles reports whether a file could only come from spec.files.
func (c *checker) inFiles(file string) bool { return c.ownsFiles() && isBelow(file, FilesDirectory) }

// checkDeclaredFiles finds files that are not among spec.files.
func (c *checker) checkDeclaredFiles() {
	for _, name := range readsFile {
		for _, d := range c.named[name] {
			if len(d.args) == 0 {
				continue
			}
			file := d.args[len(d.args)-1]
			switch {
			case !c.inFiles(file), strings.Contains(file, "$"), len(c.filesOf(file)) > 0:
			case len(c.spec.Files) == 0 && !slices.Contains(readAtStart, name):
				// nginx starts without it.
				c.warn(d, "%s does not exist; declare it in spec.files", file)
			default:
				c.refuseUndeclared(d, file)
			}
		}
	}
}

// checkIncludedFiles looks at an include of files of spec.files.
func (c *checker) checkIncludedFiles(d *directive, file string) {
	switch {
	case len(c.filesOf(file)) > 0:
	case isMask(file):
		c.warn(d, "%s names no file of spec.files", file)
	default:
		c.refuseUndeclared(d, file)
	}
}

func (c *checker) refuseUndeclared(d *directive, file string) {
	c.refuse(d, "%s is not among spec.files; add `- path: %s` there, with a configMapRef or a secretRef", file, below(file))
}

// filesOf returns the paths of the files of spec.files that a name or a mask stands for.
func (c *checker) filesOf(file string) []string {
	wanted, masked := below(file), isMask(file)
	if masked {
		c.masks++
	}
	var out []string
	for i := range c.spec.Files {
		declared := c.spec.Files[i].Path
		matches := declared == wanted
		switch {
		case masked && c.masks > maxMasks: // it may be there
			matches = true
		case masked:
			matched, err := path.Match(wanted, declared)
			matches = matched && err == nil
		}
		if matches {
			out = append(out, declared)
		}
	}
	return out
}

// below returns the path of a file in the directory of spec.files.
func below(file string) string { return strings.TrimPrefix(path.Clean(file), FilesDirectory+"/") }

// isMask reports whether nginx looks for the files that a name stands for, and is content with none.
func isMask(file string) bool { return strings.ContainsAny(file, "*?[") }

// isWritable reports whether nginx may write a file. What begins with a variable nobody can know.
func (c *checker) isWritable(file string) bool {
	if volume := c.volumeAt(file); volume != nil {
		return isWritableVolume(volume)
	}
	return isBelow(file, "/tmp") || isBelow(file, "/dev/shm") || strings.HasPrefix(file, "$") || c.inCache(file)
}

// inCache reports whether a file is in the volume of spec.cache.
func (c *checker) inCache(file string) bool {
	if c.spec.Cache == nil {
		return false
	}
	mounted := defaults.CachePath(c.spec.Cache)
	return path.Clean(file) == mounted || isBelow(file, mounted)
}

// checkCachePath looks at where a cache or temporary files are.
func (c *checker) checkCachePath(d *directive) {
	isCache := strings.HasSuffix(d.name, "_cache_path")
	hasMaxSize := slices.ContainsFunc(d.args, func(arg string) bool { return strings.HasPrefix(arg, "max_size=") })
	switch file := d.first(); {
	case file == "off":
	case !c.isWritable(file) && isCache:
		c.refuse(d, "%s is on a read-only file system; declare a volume there in spec.cache, or write below /tmp, for example %s",
			file, path.Join("/tmp", path.Base(file)))
	case !c.isWritable(file):
		c.refuse(d, "%s is on a read-only file system; write below /tmp, for example %s", file, path.Join("/tmp", path.Base(file)))
	case isCache && c.inCache(file) && !hasMaxSize:
		c.warn(d, "it has no max_size, and a Pod is evicted once the volume of spec.cache is full; add one that is less than its size")
	}
}
