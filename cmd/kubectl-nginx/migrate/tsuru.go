package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// Mount paths of tsuru's operator.
const (
	tsuruFiles        = "/etc/nginx/extra_files"
	tsuruCertificates = "/etc/nginx/certs"
)

// fromTsuru converts an Nginx of tsuru/nginx-operator.
func fromTsuru(manifest *unstructured.Unstructured) (Result, error) {
	out := newResult(manifest)
	from := newSource(manifest, &out.Lost)
	from.in("metadata").drop("labels", "annotations")
	spec, nginx := &out.Object.Spec, from.in("spec")
	nginx.into(&spec.Replicas, "replicas")
	nginx.into(&spec.Image, "image")
	nginx.into(&spec.Resources, "resources")
	nginx.drop("healthcheckPath") // the operator's probes use a separate server
	if err := out.tsuruConfig(nginx.in("config")); err != nil {
		return out, err
	}
	out.tsuruFiles(nginx.in("extraFiles"))
	out.tsuruCertificates(nginx.list("tls"))
	out.tsuruCache(nginx.in("cache"))
	out.tsuruService(nginx.in("service"))
	nginx.in("lifecycle").drop("preStop")
	out.tsuruPod(nginx.in("podTemplate"))
	from.rest()
	return out, nil
}

func (r *Result) tsuruConfig(config source) error {
	kind, name, value := config.text("kind"), config.text("name"), config.text("value")
	switch kind {
	case "":
		return nil
	case "Inline":
		return r.setWhole(value)
	case "ConfigMap":
		r.Object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: name}}
		r.Keep = append(r.Keep, "ConfigMap "+name)
		config.lose("name", fmt.Sprintf(
			"key %s of ConfigMap %s must have only the content of the http block; move the rest to spec.nginx", v1alpha2.DefaultConfigKey, name))
		return nil
	}
	return fmt.Errorf("spec.config.kind is %q, must be Inline or ConfigMap", kind)
}

func (r *Result) tsuruFiles(from source) {
	name, files := from.text("name"), map[string]string{}
	from.into(&files, "files")
	for _, key := range slices.Sorted(maps.Keys(files)) {
		r.Object.Spec.Files = append(r.Object.Spec.Files, v1alpha2.File{
			Path: files[key], ConfigMapRef: &v1alpha2.FileReference{Name: name, Key: key},
		})
	}
	if len(files) > 0 {
		r.Keep = append(r.Keep, "ConfigMap "+name)
		r.moveFiles(tsuruFiles)
	}
}

func (r *Result) tsuruCertificates(certificates []source) {
	for _, one := range certificates {
		name := one.text("secretName")
		r.Object.Spec.TLS = append(r.Object.Spec.TLS, v1alpha2.TLS{SecretName: name})
		r.Keep = append(r.Keep, "Secret "+name)
		one.drop("hosts") // server_name in the configuration
		one.rest()
		r.movePath(tsuruCertificates+"/"+name, nginxconf.TLSDirectory+"/"+name)
	}
	if config := r.Object.Spec.Config; config != nil && strings.Contains(config.Inline, tsuruCertificates+"/") {
		r.Lost = append(r.Lost, fmt.Sprintf(
			"spec.config: certificates are in %s/SECRET instead of %s; correct the paths", nginxconf.TLSDirectory, tsuruCertificates))
	}
}

func (r *Result) tsuruCache(from source) {
	var cache v1alpha2.Cache
	from.all(&cache)
	switch {
	case cache.Path == "":
	case cache.Size == "":
		from.lose("size", "a cache requires a size; set spec.cache")
	default:
		r.Object.Spec.Cache = &cache
	}
}

func (r *Result) tsuruService(from source) {
	if use, found := from.fields["usePodSelector"]; found && use == true {
		from.drop("usePodSelector")
	}
	service := v1alpha2.Service{}
	from.into(&service.Type, "type")
	from.into(&service.Labels, "labels")
	from.into(&service.Annotations, "annotations")
	from.into(&service.ExternalTrafficPolicy, "externalTrafficPolicy")
	if len(service.Type)+len(service.Labels)+len(service.Annotations)+len(service.ExternalTrafficPolicy) > 0 {
		r.Object.Spec.Service = &service
	}
}

func (r *Result) tsuruPod(from source) {
	spec, pod := &r.Object.Spec, v1alpha2.PodTemplate{}
	from.into(&pod.Labels, "labels")
	from.into(&pod.Annotations, "annotations")
	from.into(&pod.NodeSelector, "nodeSelector")
	from.into(&pod.Affinity, "affinity")
	if len(pod.Labels)+len(pod.Annotations)+len(pod.NodeSelector) > 0 || pod.Affinity != nil {
		spec.PodTemplate = &pod
	}
	r.drain(from, "terminationGracePeriodSeconds")
	for i, port := range from.list("ports") {
		one := v1alpha2.Port{}
		port.into(&one.Port, "containerPort")
		one.Name = nameOf(port.text("name"), one.Port, 1+i)
		port.drop("protocol")
		port.rest()
		spec.Ports = append(spec.Ports, one)
	}
	for _, container := range from.list("initContainers") {
		spec.InitContainers = append(spec.InitContainers, other(container))
	}
	mounts := from.list("volumeMounts")
	for _, volume := range from.list("volumes") {
		target, name := v1alpha2.Volume{}, volume.text("name")
		for _, mount := range mounts {
			if mount.fields["name"] == name {
				target.MountPath, target.SubPath, target.ReadOnly = mount.text("mountPath"), mount.text("subPath"), mount.take("readOnly") == true
			}
		}
		r.addVolume(target, name, volume)
	}
}
