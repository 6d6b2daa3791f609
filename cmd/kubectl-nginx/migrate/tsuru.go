package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// Comments with file:line refer to tsuru/nginx-operator at commit 77f209d1101e.

// Mount paths of tsuru's operator (pkg/k8s/k8s.go:55 and 58).
const (
	tsuruCertificates = "/etc/nginx/certs"
	tsuruFiles        = "/etc/nginx/extra_files"
)

// tsuruCacheFactor is the size of tsuru's volume, relative to cache.size (pkg/k8s/k8s.go:44, 587).
const tsuruCacheFactor = 1.05

func (r *Result) fromTsuru(manifest *unstructured.Unstructured) error {
	from := newSource(manifest, &r.notes)
	r.ownMetadata(from)
	spec, nginx := &r.Object.Spec, from.in("spec")
	nginx.pick(spec, "replicas", "image", "resources")
	if spec.Image == "" {
		r.check("spec.image: tsuru's default is nginx:latest, and the operator's default is the image of its release")
	}
	if path := nginx.text("healthcheckPath"); path != "" {
		r.check("%s.healthcheckPath: the operator's probes ask a server of the operator instead of %s, so a Pod is ready "+
			"as soon as nginx runs", nginx.path, path)
	}

	listens, err := r.tsuruConfig(nginx.in("config"))
	if err != nil {
		return err
	}

	r.tsuruCache(nginx.in("cache"))

	pod := nginx.in("podTemplate")
	selected := map[string]string{ // pkg/k8s/k8s.go:311
		"nginx.tsuru.io/resource-name": manifest.GetName(), "nginx.tsuru.io/app": "nginx",
	}

	labels := map[string]string{}
	pod.into(&labels, "labels")
	maps.Copy(labels, selected)
	if err := r.tsuruPod(pod, labels, selected); err != nil {
		return err
	}

	r.tsuruFiles(nginx.in("extraFiles"))
	hosts := r.tsuruCertificates(nginx.list("tls"))
	service := manifest.GetName() + "-service" // pkg/k8s/k8s.go:228
	r.tsuruPorts(nginx, service, listens)
	r.tsuruService(nginx.in("service"))
	if nginx.fields["ingress"] != nil {
		r.tsuruIngress(nginx.in("ingress"), hosts)
	}

	from.rest()
	r.others(dependents{labels, selected, manifest.GetKind(), manifest.GetName(), service})
	return nil
}

// listening reports whether the servers of a configuration listen on a port, and serve TLS there,
// as nginxconf.Listening returns it. It is nil if the configuration is unknown.
type listening func(port int32) (listens, tls bool)

// tsuruConfig converts the configuration, and returns on which ports its servers listen.
func (r *Result) tsuruConfig(config source) (listening, error) {
	kind, name, text := config.text("kind"), config.text("name"), config.text("value")
	switch {
	case kind+name+text == "":
		return nil, nil
	case kind == "Inline":
		var err error
		if r.whole, err = read(mainFile, text, false); err != nil {
			return nil, err
		}
		if err := r.assemble(); err != nil {
			return nil, err
		}
		return nginxconf.Listening(r.Object.Spec.Config.Inline), nil
	case kind == "ConfigMap":
		r.Object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: name}}
		r.check("%s: key %s of ConfigMap %s must have only the content of the http block; move the rest to spec.nginx. Its paths below %s "+
			"change to %s, and below %s to %s", config.path, v1alpha2.DefaultConfigKey, name, tsuruFiles, nginxconf.FilesDirectory,
			tsuruCertificates, nginxconf.TLSDirectory)
		return r.listeningIn(name), nil
	}

	return nil, fmt.Errorf("spec.config.kind is %q, must be Inline or ConfigMap", kind)
}

// listeningIn returns the ports of a complete nginx.conf in a ConfigMap, or nil if it is unknown.
func (r *Result) listeningIn(name string) listening {
	data, exists, err := r.configMap(name)
	if err != nil || !exists {
		return nil
	}

	whole, err := read(mainFile, data[v1alpha2.DefaultConfigKey], false)
	if err != nil {
		return nil
	}

	http, _, err := whole.http(nil)
	if err != nil {
		return nil
	}

	return nginxconf.Listening(http)
}

// tsuruFiles mounts all keys of the ConfigMap if there are no files, as tsuru (pkg/k8s/k8s.go:532).
func (r *Result) tsuruFiles(from source) {
	name, files := from.text("name"), map[string]string{}
	from.into(&files, "files")
	if name != "" && len(files) == 0 {
		r.Object.Spec.Volumes = append(r.Object.Spec.Volumes, v1alpha2.Volume{
			Name: "extra-files", MountPath: tsuruFiles, ReadOnly: true, ConfigMap: &v1alpha2.ConfigMapVolume{Name: name},
		})
		return
	}

	for _, key := range slices.Sorted(maps.Keys(files)) {
		r.Object.Spec.Files = append(r.Object.Spec.Files, v1alpha2.File{
			Path: files[key], ConfigMapRef: &v1alpha2.FileReference{Name: name, Key: key},
		})
	}

	if len(files) > 0 {
		r.movePath(tsuruFiles, nginxconf.FilesDirectory)
	}
}

// tsuruCertificates converts the certificates, and returns the Secrets by their host names.
func (r *Result) tsuruCertificates(certificates []source) map[string]string {
	hosts := map[string]string{}
	for _, certificate := range certificates {
		name := certificate.text("secretName")
		var named []string
		certificate.into(&named, "hosts") // server_name in the configuration
		for _, host := range named {
			hosts[host] = name
		}

		certificate.rest()
		r.Object.Spec.TLS = append(r.Object.Spec.TLS, v1alpha2.TLS{SecretName: name})
		r.movePath(tsuruCertificates+"/"+name, nginxconf.TLSDirectory+"/"+name)
	}

	if config := r.Object.Spec.Config; config != nil && strings.Contains(config.Inline, tsuruCertificates+"/") {
		r.check("spec.config: certificates are in %s/SECRET instead of %s; correct the paths", nginxconf.TLSDirectory, tsuruCertificates)
	}
	return hosts
}

// tsuruCache converts the cache. tsuru ignores it without a path (pkg/k8s/k8s.go:566).
func (r *Result) tsuruCache(from source) {
	path, inMemory, size := from.text("path"), from.take("inMemory") == true, resource.Quantity{}
	isSized := from.fields["size"] != nil
	from.into(&size, "size")
	switch {
	case path == "":
	case !isSized || size.Sign() <= 0:
		from.lose("size", "a cache requires a size; set spec.cache")
	default:
		r.Object.Spec.Cache = &v1alpha2.Cache{Path: path, Size: cacheSize("", size, tsuruCacheFactor), InMemory: inMemory}
	}
}

// tsuruPod converts the Pod template (pkg/k8s/k8s.go:143), except for its ports.
func (r *Result) tsuruPod(pod source, labels, selected map[string]string) error {
	r.podLabels(pod.path+".labels", labels, selected)
	placed := v1alpha2.PodTemplate{Annotations: r.usersOwn(pod, "annotations")}
	pod.pick(&placed, "nodeSelector", "affinity", "topologySpreadConstraints")
	pod.into(&placed.Tolerations, "toleration")
	r.place(placed)
	pod.pick(&r.Object.Spec, "serviceAccountName")
	var rollout v1alpha2.Rollout
	pod.in("rollingUpdate").pick(&rollout, "maxSurge", "maxUnavailable")
	r.Object.Spec.Rollout = unlessEmpty(rollout)
	r.drain(pod)
	r.securityContext(pod.in("podSecurityContext"), pod.in("containerSecurityContext"))
	r.otherContainers(pod.list("initContainers"), pod.list("containers"))
	known := func(mount mounted) (bool, error) { return isTemporary(mount), nil }
	return r.volumes(pod.list("volumes"), pod.list("volumeMounts"), known)
}
