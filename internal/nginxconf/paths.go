package nginxconf

import (
	"path"
	"slices"
	"strings"
)

// imageFiles are the files of nginx's image that configurations include.
var imageFiles = []string{MimeTypes, "/etc/nginx/fastcgi_params", "/etc/nginx/scgi_params", "/etc/nginx/uwsgi_params"}

// linkedLogs are links to the container's output in nginx's image.
var linkedLogs = []string{"/var/log/nginx/access.log", "/var/log/nginx/error.log"}

// checkFiles finds files that nginx would write to the read-only file system.
func (c *checker) checkFiles() {
	for _, d := range c.all {
		switch file := d.first(); {
		case d.name == "access_log" || d.name == "error_log":
			c.checkLog(d)
		case strings.HasSuffix(d.name, "_temp_path") || strings.HasSuffix(d.name, "_cache_path"):
			c.checkCachePath(d)
		case strings.HasSuffix(d.name, "_store"):
			if file != "on" && file != "off" && !c.isWritable(file) {
				c.refuse(d, "%s is on a read-only file system; write below /tmp", file)
			}
		case d.name == "state":
			if !c.isWritable(file) {
				c.refuse(d, "%s is on a read-only file system; write below /tmp, where it is as long as the Pod", file)
			}
		case d.name == "auth_basic_user_file":
			if isBelow(file, ContentDirectory) && !strings.Contains(file, "$") {
				c.warn(d, "%s is among the static files, so that anybody may be able to fetch it; deny its location", file)
			}
		}
	}
}

func (c *checker) checkLog(d *directive) {
	target := d.first()
	switch {
	case slices.Contains([]string{"/dev/stdout", "/dev/stderr", "/dev/null"}, target),
		isBelow(target, "/dev/fd"), isBelow(target, "/proc/self/fd"),
		strings.HasPrefix(target, "syslog:"), c.isWritable(target), slices.Contains(linkedLogs, target),
		d.name == "access_log" && target == "off",
		d.name == "error_log" && (target == "stderr" || strings.HasPrefix(target, "memory:")):
	default:
		output := "/dev/stdout"
		if d.name == "error_log" {
			output = "/dev/stderr"
		}
		c.refuse(d, "%s is on a read-only file system; write %s", target, output)
	}
}

// checkIncludes finds includes of files that do not exist.
func (c *checker) checkIncludes() {
	for _, d := range c.named["include"] {
		c.checkInclude(d, d.first())
	}
}

func (c *checker) checkInclude(d *directive, file string) {
	inImage := path.Join(imageDirectory, path.Base(file))
	again := d.context == contextHTTP && inImage == MimeTypes
	switch {
	case again && file == MimeTypes:
		c.warn(d, "the operator includes it already, and nginx warns of each type that it reads again; remove it")
	case again && !path.IsAbs(file):
		c.refuse(d, "nginx looks for %s in %s, where it does not exist; remove it, because the operator includes %s already",
			file, Directory, MimeTypes)
	case slices.Contains(imageFiles, file):
	case !path.IsAbs(file) && slices.Contains(imageFiles, inImage):
		c.refuse(d, "nginx looks for %s in %s, where it does not exist; write include %s", file, Directory, inImage)
	case !path.IsAbs(file):
		c.refuse(d, "nginx looks for %s in %s, where it does not exist; put its text here", file, Directory)
	case c.mountAt(file) != nil:
		c.setUnseen(d)
		c.warn(d, "%s is in volume %s, so that it is not checked before nginx reads it", file, c.mountAt(file).volume)
	case isBelow(file, Directory), isBelow(file, "/tmp"):
		c.refuse(d, "%s does not exist when nginx starts; put its text here", file)
	case c.inFiles(file) && len(c.filesOf(file)) > 0:
	case c.inFiles(file) && isMask(file):
		c.warn(d, "%s names no file of spec.files", file)
	case c.inFiles(file):
		c.refuseUndeclared(d, file)
	case isBelow(file, ContentDirectory) && c.spec.Content != nil:
		c.setUnseen(d)
		c.warn(d, "%s is not checked before nginx reads it, and is served as a static file; put its text here", file)
	default:
		c.setUnseen(d)
		c.warn(d, "%s is in the image, so that it is not checked before nginx reads it", file)
	}
}

// isBelow reports whether a file is in a directory. The value of a variable is assumed not to leave
// the directory before it.
func isBelow(file, directory string) bool {
	return strings.HasPrefix(path.Clean(file), directory+"/")
}

// isWithin reports whether a file is a directory or is in it.
func isWithin(file, directory string) bool {
	return path.Clean(file) == directory || isBelow(file, directory)
}
