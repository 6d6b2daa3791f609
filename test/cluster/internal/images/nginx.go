package images

import (
	"embed"
	"fmt"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// nginxUser is the user ID in the image nginxinc/nginx-unprivileged.
const nginxUser = 101

//go:embed nginx
var nginxFiles embed.FS

// standIns are the image names under which the nginx of Debian's default suite runs on the local
// cluster:
//   - the default images of this release and of the releases before 0.5.1
//   - another tag for the same files, to test a change of the image
//   - the applications in the documents of the examples (examples/sidecarset, examples/myapp)
var standIns = []string{
	nginxRepository + ":1.30.7", nginxRepository + ":1.28.0", nginxRepository + ":1.31.9",
	"docker.io/library/nginx:1.15.1", "docker.io/library/myapp:latest",
}

const nginxRepository = "docker.io/nginxinc/nginx-unprivileged"

// NginxOf returns the image name for the nginx of a Debian suite.
func NginxOf(suite string) string { return nginxRepository + ":debian-" + suite }

// nginxImage returns the recipe of a replacement for nginxinc/nginx-unprivileged: Debian's nginx
// with the same user, port, paths, and signals.
func nginxImage(packages []string, names ...string) recipe {
	return recipe{
		names: names,
		config: v1.Config{
			User:         fmt.Sprint(nginxUser),
			ExposedPorts: map[string]struct{}{"8080/tcp": {}},
			Env:          []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
			// No entrypoint, because Pods can set a command of their own.
			Cmd:        []string{"nginx", "-g", "daemon off;"},
			StopSignal: "SIGQUIT",
		},
		write: func(w *layerWriter) error {
			for _, file := range [][2]string{
				{"etc/nginx/nginx.conf", "nginx.conf"},
				{"etc/nginx/conf.d/default.conf", "default.conf"},
				{"usr/share/nginx/html/index.html", "index.html"},
			} {
				data, err := nginxFiles.ReadFile("nginx/" + file[1])
				if err != nil {
					return fmt.Errorf("failed to read %s: %w", file[1], err)
				}
				if err := w.text(file[0], string(data)); err != nil {
					return err
				}
			}
			for _, link := range [][2]string{{"access.log", "/dev/stdout"}, {"error.log", "/dev/stderr"}} {
				if err := w.link("var/log/nginx/"+link[0], link[1]); err != nil {
					return err
				}
			}
			for _, dir := range []string{"var/cache/nginx", "var/lib/nginx"} {
				if err := w.dir(dir, 0o755, nginxUser); err != nil {
					return err
				}
			}
			return w.userland(packages)
		},
	}
}

// userland adds packages, and a shell with the usual commands.
func (w *layerWriter) userland(packages []string) error {
	for _, file := range packages {
		if err := w.debianPackage(file, isUnused); err != nil {
			return err
		}
	}
	// Another Debian package installs these links. Some packages rely on them.
	for _, link := range [][2]string{{"lib", "usr/lib"}, {"lib64", "usr/lib64"}} {
		if err := w.link(link[0], link[1]); err != nil {
			return err
		}
	}
	return writeBusybox(w)
}

// rootImage returns the recipe of a replacement for the image nginx: it starts as root, listens on
// port 80, and its workers run as the user nginx.
func rootImage() recipe {
	out := nginxImage(nil, "docker.io/library/nginx:1.30")
	out.config.User, out.config.ExposedPorts = "", map[string]struct{}{"80/tcp": {}}
	out.base = standIns[0]
	out.write = func(w *layerWriter) error {
		main, err := nginxFiles.ReadFile("nginx/nginx.conf")
		if err != nil {
			return fmt.Errorf("failed to read nginx.conf: %w", err)
		}
		if err := w.text("etc/nginx/nginx.conf", "user nginx;\n"+string(main)); err != nil {
			return err
		}
		return w.text("etc/nginx/conf.d/default.conf", "server {\n    listen 80;\n    root /usr/share/nginx/html;\n}\n")
	}
	return out
}

// isUnused reports whether no program of an image needs a file of its packages.
func isUnused(name string) bool {
	for _, dir := range []string{
		"/usr/share/doc", "/usr/share/locale", "/usr/share/man", "/usr/share/lintian", "/etc/init.d", "/etc/logrotate.d", "/etc/ufw",
		"/etc/nginx/sites-available", "/etc/nginx/sites-enabled", "/etc/nginx/modules-enabled",
	} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	// The static busybox would load these plug-ins, which belong to another build of the C library,
	// and crash.
	return strings.Contains(name, "/gconv") || strings.HasPrefix(path.Base(name), "libnss_")
}
