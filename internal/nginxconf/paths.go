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
				c.refuse(d, readOnly+"Use a directory below /tmp", d.name, file)
			}
		case d.name == "state":
			if !c.isWritable(file) {
				c.refuse(d, readOnly+"Use a file below /tmp, which is lost with the Pod", d.name, file)
			}
		case d.name == "auth_basic_user_file":
			if isBelow(file, ContentDirectory) && !strings.Contains(file, "$") {
				c.warn(d, "auth_basic_user_file %s is a static file that clients may read. Add it to spec.files instead, or deny its location",
					file)
			}
		}
	}
}

// readOnly is the start of messages about a directive and its file. nginx's messages have the same
// words.
const readOnly = "%s %s: Read-only file system. "

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
		c.refuse(d, readOnly+"Use %s", d.name, target, output)
	}
}

// relative is the start of messages about an include. nginx looks for its file in Directory.
const relative = "include %s: relative path. "

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
		c.warn(d, "include %s: the operator already includes it, and nginx warns of each duplicate extension. Remove this line",
			file)
	case again && !path.IsAbs(file):
		c.refuse(d, relative+"Remove this line, because the operator includes %s", file, MimeTypes)
	case slices.Contains(imageFiles, file):
	case !path.IsAbs(file) && slices.Contains(imageFiles, inImage):
		c.refuse(d, relative+"Use %s", file, inImage)
	case !path.IsAbs(file):
		c.refuse(d, relative+"Add the file to spec.files and include %s, or put its text here",
			file, path.Join(FilesDirectory, path.Base(file)))
	case c.mountAt(file) != nil:
		c.setUnseen(d)
		c.warn(d, "include %s is in volume %s and is not checked here; nginx checks it when the first new Pod starts",
			file, c.mountAt(file).volume)
	case isBelow(file, Directory), isBelow(file, "/tmp"):
		c.refuse(d, "include %s: the file does not exist when nginx starts. Add it to spec.files, or put its text here", file)
	case c.inFiles(file) && len(c.filesOf(file)) > 0:
	case c.inFiles(file) && isMask(file):
		c.warn(d, "include %s matches no file of spec.files. Correct it, or add a file", file)
	case c.inFiles(file):
		c.refuseUndeclared(d, file)
	case isBelow(file, ContentDirectory) && c.spec.Content != nil:
		c.setUnseen(d)
		c.warn(d, "include %s is a static file that clients may read, and is not checked here. Put its text here", file)
	default:
		c.setUnseen(d)
		c.warn(d, "include %s is in the image and is not checked here; nginx checks it when the first new Pod starts", file)
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
