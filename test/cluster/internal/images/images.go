// Package images creates the images that the cluster itself needs, builds others from Dockerfiles,
// and pushes both into the cluster's registry. The cluster's own images have the names under which
// users pull them. They consist of tools of this repository and packages of the distribution.
package images

import (
	"fmt"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

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

// recipe describes how to create an image: write writes its layer, on top of the layers of base if
// that is set. base is an image that the registry already has.
type recipe struct {
	names  []string
	base   string
	config v1.Config
	write  func(w *layerWriter) error
}

// recipesOf returns the recipes of the images that a part of the cluster needs. nginxPackages are
// the .deb files of nginx and its libraries, for the base.
func recipesOf(l layout.Layout, part layout.Part, nginxPackages []string) ([]recipe, error) {
	switch part {
	case layout.Base:
		return baseImages(l, nginxPackages), nil
	case layout.Exporter:
		return []recipe{{
			names:  []string{"docker.io/nginx/nginx-prometheus-exporter:1.5.1"},
			config: v1.Config{User: "1001:1001", Entrypoint: []string{"/usr/bin/" + exporter}},
			write:  func(w *layerWriter) error { return w.program("usr/bin/"+exporter, l.Bin(exporter)) },
		}}, nil
	case layout.Scorecard:
		version, err := tools.OperatorSDK.Version(l)
		if err != nil {
			return nil, err
		}
		return []recipe{toolImage(l,
			[]string{"quay.io/operator-framework/scorecard-test:" + version},
			v1.Config{Entrypoint: []string{"/bin/scorecard-test"}},
			"scorecard-test")}, nil
	case layout.Catalogs:
		return catalogImages(l)
	case layout.OLM:
		return olmImages(l)
	case layout.OLMv1:
		return olmV1Images(l)
	default:
		return nil, nil
	}
}

// baseImages returns the recipes of the images that every cluster has.
func baseImages(l layout.Layout, nginxPackages []string) []recipe {
	return []recipe{
		programImage(l, layout.PauseImage, "pause"),
		{
			// `operator-sdk run bundle` uses registry.access.redhat.com/ubi9/ubi:9.8 for its init
			// container, which needs a shell and gzip. A Pod in the document of an example
			// (examples/foo) runs sleep in ubuntu.
			names: []string{
				"docker.io/library/busybox:1.36", "docker.io/library/busybox:latest", "docker.io/library/ubuntu:latest",
				"registry.access.redhat.com/ubi9/ubi:9.8",
			},
			config: v1.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}},
			write:  writeBusybox,
		},
		nginxImage(nginxPackages, slices.Concat(standIns, []string{NginxOf(debian.Stable)})...),
		rootImage(),
	}
}

// olmImages returns the recipe of the image of OLM.
func olmImages(l layout.Layout) ([]recipe, error) {
	version, err := tools.OLM.Version(l)
	if err != nil {
		return nil, err
	}
	return []recipe{toolImage(l,
		[]string{OLM + ":" + version},
		v1.Config{Entrypoint: []string{"/bin/olm"}},
		"olm", "catalog", "package-server", "copy-content", "cpb")}, nil
}

// baseTags are the tags of opm in catalog.Dockerfile: of the releases up to 0.7.0, and of this one.
var baseTags = []string{"v1.65.0", "v1.73.0"}

// catalogImages returns the recipe of the base image of catalogs. `operator-sdk run bundle` uses
// its latest tag as the default index image. OLM finds the catalog by the label.
func catalogImages(l layout.Layout) ([]recipe, error) {
	version, err := tools.Registry.Version(l)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tag := range append([]string{version, "latest"}, baseTags...) {
		if name := OPM + ":" + tag; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return []recipe{toolImage(l,
		names,
		v1.Config{
			Entrypoint: []string{"/bin/opm"},
			Cmd:        []string{"serve", "/configs"},
			WorkingDir: "/work",
			Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		},
		"opm", "grpc_health_probe")}, nil
}

// olmV1 has the repositories of the images of OLM v1 and of cert-manager, which signs its
// certificates. Each image has a program with the name of the image. The cainjector is of a later
// release than the tag of its image (hack/tools/cainjector).
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

// olmV1Images returns the recipes of these images.
func olmV1Images(l layout.Layout) (recipes []recipe, err error) {
	for _, image := range olmV1 {
		version, err := image.source.Version(l)
		if err != nil {
			return nil, err
		}
		recipes = append(recipes, programImage(l, image.repository+":"+version, path.Base(image.repository)))
	}
	return recipes, nil
}

// programImage returns the recipe of an image with only one static program, in the root directory.
func programImage(l layout.Layout, name, program string) recipe {
	return recipe{
		names:  []string{name},
		config: v1.Config{User: "65535:65535", Entrypoint: []string{"/" + program}},
		write:  func(w *layerWriter) error { return w.program(program, l.Bin(program)) },
	}
}

// toolImage returns the recipe of an image with busybox and tools of this repository in /bin.
func toolImage(l layout.Layout, names []string, config v1.Config, programs ...string) recipe {
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
