package images

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/example/nginx-operator/test/cluster/internal/debian"
)

// peer is a program that recipes of the documentation run next to nginx. Its image has the name of
// the published one, and consists of a package of Debian's default suite.
type peer struct {
	image, pkg string
	config     v1.Config
	// files are those in which the published image differs from the package. They replace files of
	// the package.
	files [][2]string
	// links are further names of programs.
	links [][2]string
}

// peers have the ports, commands, and users of the published images.
var peers = []peer{
	{
		image:  "docker.io/library/php:8.4-fpm",
		pkg:    "php8.4-fpm",
		config: v1.Config{Cmd: []string{"php-fpm"}},
		files: [][2]string{{"etc/php/8.4/fpm/php-fpm.conf", `[global]
error_log = /proc/self/fd/2
daemonize = no
[www]
user = www-data
group = www-data
listen = 9000
pm = dynamic
pm.max_children = 5
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3
access.log = /proc/self/fd/2
clear_env = no
catch_workers_output = yes
decorate_workers_output = no
`}},
		links: [][2]string{{"usr/local/sbin/php-fpm", "/usr/sbin/php-fpm8.4"}},
	},
	{
		image:  "docker.io/library/haproxy:3.0",
		pkg:    "haproxy",
		config: v1.Config{User: "99", Cmd: []string{"haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"}},
	},
	{
		image:  "docker.io/library/registry:2.8.3",
		pkg:    "docker-registry",
		config: v1.Config{Entrypoint: []string{"docker-registry", "serve"}, Cmd: []string{"/etc/docker/registry/config.yml"}},
		files: [][2]string{{"etc/docker/registry/config.yml", `version: 0.1
storage:
  cache:
    blobdescriptor: inmemory
  filesystem:
    rootdirectory: /var/lib/registry
http:
  addr: :5000
`}},
	},
}

// packages are those that the image of the peer consists of.
func (p peer) packages() debian.Packages {
	return debian.Packages{Suite: debian.Stable, Names: []string{p.pkg}, Libraries: true}
}

// recipe returns the recipe of the image, from the .deb files of its packages.
func (p peer) recipe(packages []string) recipe {
	config := p.config
	config.Env = []string{"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return recipe{names: []string{p.image}, config: config, write: func(w *layerWriter) error {
		for _, file := range p.files {
			if err := w.text(file[0], file[1]); err != nil {
				return err
			}
		}
		for _, link := range p.links {
			if err := w.link(link[0], link[1]); err != nil {
				return err
			}
		}
		return w.userland(packages)
	}}
}
