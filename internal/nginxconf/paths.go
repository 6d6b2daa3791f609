package nginxconf

import (
	"path"
	"slices"
	"strings"
)

// imageFiles are the files of nginx's image that a configuration includes.
var imageFiles = []string{"/etc/nginx/mime.types", "/etc/nginx/fastcgi_params", "/etc/nginx/scgi_params", "/etc/nginx/uwsgi_params"}

// linkedLogs are links to the container's output in nginx's image.
var linkedLogs = []string{"/var/log/nginx/access.log", "/var/log/nginx/error.log"}

// checkFiles finds files that nginx would write where the operand's file system is read-only.
func (c *checker) checkFiles() {
	for _, d := range c.all {
		switch name := d.Directive.Directive; {
		case name == "access_log" || name == "error_log":
			c.checkLog(d)
		case strings.HasSuffix(name, "_temp_path") || strings.HasSuffix(name, "_cache_path"):
			if !isBelow(d.arg(0), "/tmp") {
				c.refuse(d, "%s is on a read-only file system; write below /tmp, for example %s", d.arg(0), path.Join("/tmp", path.Base(d.arg(0))))
			}
		case strings.HasSuffix(name, "_store"):
			if value := d.arg(0); value != "on" && value != "off" && !isBelow(value, "/tmp") && !strings.HasPrefix(value, "$") {
				c.refuse(d, "%s is on a read-only file system; write below /tmp", value)
			}
		case name == "auth_basic_user_file":
			if isBelow(d.arg(0), ContentDirectory) && !strings.Contains(d.arg(0), "$") {
				c.warn(d, "%s is among the static files, so that anybody may be able to fetch it; deny its location", d.arg(0))
			}
		}
	}
}

func (c *checker) checkLog(d *directive) {
	target := d.arg(0)
	switch {
	case slices.Contains([]string{"/dev/stdout", "/dev/stderr", "/dev/null", "/proc/self/fd/1", "/proc/self/fd/2"}, target),
		strings.HasPrefix(target, "syslog:"), isBelow(target, "/tmp"),
		d.Directive.Directive == "access_log" && target == "off",
		d.Directive.Directive == "error_log" && (target == "stderr" || strings.HasPrefix(target, "memory:")):
	case slices.Contains(linkedLogs, target):
		c.warn(d, "%s is only a link to the container's output in nginx's own image; write %s", target, standardLog(d))
	default:
		c.refuse(d, "%s is on a read-only file system, and nobody would read it; write %s", target, standardLog(d))
	}
}

func standardLog(d *directive) string {
	if d.Directive.Directive == "error_log" {
		return "/dev/stderr"
	}
	return "/dev/stdout"
}

// checkIncludes finds files that nginx would look for and not find.
func (c *checker) checkIncludes() {
	for _, d := range c.all {
		if d.Directive.Directive == "include" {
			c.checkInclude(d, d.arg(0))
			continue
		}
		if !slices.Contains(mapBlocks, d.Directive.Directive) {
			continue
		}
		for _, line := range d.Block {
			if line.Directive == "include" && len(line.Args) == 1 {
				inner := *line
				c.checkInclude(&directive{Directive: &inner, parent: d}, line.Args[0])
			}
		}
	}
}

func (c *checker) checkInclude(d *directive, file string) {
	inImage := path.Join("/etc/nginx", path.Base(file))
	switch {
	case slices.Contains(imageFiles, file):
	case !path.IsAbs(file) && slices.Contains(imageFiles, inImage):
		c.refuse(d, "%s is looked for in %s, where it is not; write include %s", file, Directory, inImage)
	case !path.IsAbs(file):
		c.refuse(d, "%s is looked for in %s, where it is not; put its text here", file, Directory)
	case isBelow(file, Directory), isBelow(file, "/tmp"):
		c.refuse(d, "%s does not exist when nginx starts; put its text here", file)
	case isBelow(file, ContentDirectory) && c.spec.Content != nil:
		c.unseen = true
		c.warn(d, "%s is not checked before nginx reads it, and is served as a static file; put its text here", file)
	case c.release.certain:
		c.refuse(d, "%s is no file of nginx's image that servers are configured with; put its text here", file)
	default:
		c.unseen = true
		c.warn(d, "%s is in the image, so that it is not checked before nginx reads it", file)
	}
}

// isBelow tells whether a file is in a folder. What stands in a variable does not leave the folder before it.
func isBelow(file, folder string) bool {
	return strings.HasPrefix(path.Clean(file), folder+"/")
}
