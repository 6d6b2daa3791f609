// Package images creates the images that the cluster itself needs, builds others from Dockerfiles,
// and pushes both into the cluster's registry. The cluster's own images have the names under which
// users pull them. They consist of tools of this repository and packages of the distribution.
package images

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/example/nginx-operator/test/cluster/internal/debian"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

// OLM, OPM, Catalogd, and OperatorController are the repositories of the images of OLM and OLM v1.
const (
	OLM                = "quay.io/operator-framework/olm"
	OPM                = "quay.io/operator-framework/opm"
	Catalogd           = "quay.io/operator-framework/catalogd"
	OperatorController = "quay.io/operator-framework/operator-controller"
)

// exporter is the program that exports nginx's metrics to Prometheus.
const exporter = "nginx-prometheus-exporter"

// nginxUser is the user ID in the image nginxinc/nginx-unprivileged.
const nginxUser = 101

//go:embed nginx
var nginxFiles embed.FS

// recipe describes how to create an image. write writes its layer.
type recipe struct {
	names  []string
	config imageConfig
	write  func(w *layerWriter) error
}

// clusterImages returns the recipes of the cluster's own images. nginxPackages are the .deb files
// of nginx and its libraries.
func clusterImages(l layout.Layout, nginxPackages []string) ([]recipe, error) {
	olmVersion, err := tools.OLM.Version(l)
	if err != nil {
		return nil, err
	}
	opmVersion, err := tools.Registry.Version(l)
	if err != nil {
		return nil, err
	}
	sdkVersion, err := tools.OperatorSDK.Version(l)
	if err != nil {
		return nil, err
	}
	return []recipe{
		programImage(l, layout.PauseImage, "pause"),
		{
			// `operator-sdk run bundle` uses registry.access.redhat.com/ubi9/ubi:9.7 for its init
			// container, which needs a shell and gzip. A Pod in the document of an example
			// (examples/foo) runs sleep in ubuntu.
			names: []string{
				"docker.io/library/busybox:1.36", "docker.io/library/busybox:latest", "docker.io/library/ubuntu:latest",
				"registry.access.redhat.com/ubi9/ubi:9.7",
			},
			config: imageConfig{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}},
			write:  writeBusybox,
		},
		nginxImage(nginxPackages, slices.Concat(standIns, []string{NginxOf(debian.DefaultSuite)})...),
		rootImage(nginxPackages),
		{
			names:  []string{"docker.io/nginx/nginx-prometheus-exporter:1.5.1"},
			config: imageConfig{User: "1001:1001", Entrypoint: []string{"/usr/bin/" + exporter}},
			write:  func(w *layerWriter) error { return w.program("usr/bin/"+exporter, l.Bin(exporter)) },
		},
		toolImage(l,
			[]string{OLM + ":" + olmVersion},
			imageConfig{Entrypoint: []string{"/bin/olm"}},
			"olm", "catalog", "package-server", "copy-content", "cpb"),
		// `operator-sdk run bundle` uses the latest tag as its default index image. OLM finds the
		// catalog by the label.
		toolImage(l,
			[]string{OPM + ":" + opmVersion, OPM + ":latest"},
			imageConfig{
				Entrypoint: []string{"/bin/opm"},
				Cmd:        []string{"serve", "/configs"},
				WorkingDir: "/work",
				Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
			},
			"opm", "grpc_health_probe"),
		toolImage(l,
			[]string{"quay.io/operator-framework/scorecard-test:" + sdkVersion},
			imageConfig{Entrypoint: []string{"/bin/scorecard-test"}},
			"scorecard-test"),
	}, nil
}

// olmV1 has the images of OLM v1 and of cert-manager, which signs its certificates. Each image has
// a program with the name of the image.
var olmV1 = []struct {
	source     tools.Dependency
	repository string
}{
	{tools.OLMv1, Catalogd},
	{tools.OLMv1, OperatorController},
	{tools.CertManager, "quay.io/jetstack/cert-manager-controller"},
	{tools.CertManager, "quay.io/jetstack/cert-manager-cainjector"},
	{tools.CertManager, "quay.io/jetstack/cert-manager-webhook"},
}

// olmV1Images returns the recipes of these images, and the programs to build for them.
func olmV1Images(l layout.Layout) (recipes []recipe, programs []string, err error) {
	for _, image := range olmV1 {
		version, err := image.source.Version(l)
		if err != nil {
			return nil, nil, err
		}
		program := path.Base(image.repository)
		programs = append(programs, program)
		recipes = append(recipes, programImage(l, image.repository+":"+version, program))
	}
	return recipes, programs, nil
}

// programImage returns the recipe of an image with only one static program, in the root directory.
func programImage(l layout.Layout, name, program string) recipe {
	return recipe{
		names:  []string{name},
		config: imageConfig{User: "65535:65535", Entrypoint: []string{"/" + program}},
		write:  func(w *layerWriter) error { return w.program(program, l.Bin(program)) },
	}
}

// toolImage returns the recipe of an image with busybox and tools of this repository in /bin.
func toolImage(l layout.Layout, names []string, config imageConfig, programs ...string) recipe {
	config.User = "1001"
	config.Env = []string{"PATH=/bin"}
	return recipe{names: names, config: config, write: func(w *layerWriter) error {
		for _, program := range programs {
			if err := w.program("bin/"+program, l.Bin(program)); err != nil {
				return err
			}
		}
		// A catalog without operators, and a directory that all users can write to.
		if err := w.text("configs/.indexignore", ""); err != nil {
			return err
		}
		if err := w.dir("work", 0o1777, 0); err != nil {
			return err
		}
		return writeBusybox(w)
	}}
}

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
		config: imageConfig{
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
			for _, file := range packages {
				if err := w.debianPackage(file, skipNginxFile); err != nil {
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
		},
	}
}

// rootImage returns the recipe of a replacement for the image nginx: it starts as root, listens on
// port 80, and its workers run as the user nginx.
func rootImage(packages []string) recipe {
	out := nginxImage(packages, "docker.io/library/nginx:1.30")
	out.config.User, out.config.ExposedPorts = "", map[string]struct{}{"80/tcp": {}}
	write := out.write
	out.write = func(w *layerWriter) error {
		main, err := nginxFiles.ReadFile("nginx/nginx.conf")
		if err != nil {
			return fmt.Errorf("failed to read nginx.conf: %w", err)
		}
		// The first file under a name is the one in the image.
		for _, file := range [][2]string{
			{"etc/nginx/nginx.conf", "user nginx;\n" + string(main)},
			{"etc/nginx/conf.d/default.conf", "server {\n    listen 80;\n    root /usr/share/nginx/html;\n}\n"},
		} {
			if err := w.text(file[0], file[1]); err != nil {
				return err
			}
		}
		return write(w)
	}
	return out
}

// skipNginxFile reports whether nginx does not need a file in a container.
func skipNginxFile(name string) bool {
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

// busyboxCommands are the commands that Pods of the cluster and its tests run.
var busyboxCommands = []string{
	"[", "awk", "basename", "cat", "chmod", "chown", "cp", "cut", "date", "dirname", "echo", "env", "expr", "false", "find", "grep",
	"gunzip", "gzip", "head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mktemp", "mv", "nc", "nslookup", "printf", "ps", "pwd",
	"readlink", "rm", "rmdir", "sed", "seq", "sh", "sleep", "sort", "stat", "sync", "tail", "tar", "tee", "test", "time", "timeout",
	"touch", "tr", "true", "uname", "uniq", "vi", "wc", "wget", "which", "whoami", "xargs", "yes", "zcat",
}

const (
	passwdFile = `root:x:0:0:root:/root:/bin/sh
nginx:x:%[1]d:%[1]d:nginx:/nonexistent:/bin/false
user:x:1001:0:user:/tmp:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
`
	groupFile = `root:x:0:
nginx:x:%d:
nogroup:x:65534:
`
)

// writeBusybox adds a shell with the usual commands, and the files for user and host name lookups.
func writeBusybox(w *layerWriter) error {
	if err := w.program("bin/busybox", debian.Busybox); err != nil {
		return err
	}
	for _, command := range busyboxCommands {
		if err := w.link("bin/"+command, "busybox"); err != nil {
			return err
		}
	}
	for _, file := range [][2]string{
		{"etc/passwd", fmt.Sprintf(passwdFile, nginxUser)},
		{"etc/group", fmt.Sprintf(groupFile, nginxUser)},
		{"etc/nsswitch.conf", "hosts: files dns\n"},
	} {
		if err := w.text(file[0], file[1]); err != nil {
			return err
		}
	}
	return w.dir("tmp", 0o1777, 0)
}
