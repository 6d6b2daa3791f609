package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	confDirectory = "/etc/nginx/conf.d"
	mainFile      = "/etc/nginx/nginx.conf"
	htmlDirectory = "/usr/share/nginx/html"
	cacheRoot     = "/var/cache"
)

// hints say where fields belong that are not carried over.
var hints = map[string]string{
	"command":         "the operator starts nginx; what it sets belongs into spec.nginx or spec.config",
	"args":            "the operator starts nginx; what it sets belongs into spec.nginx or spec.config",
	"envFrom":         "name each variable in spec.env",
	"hostNetwork":     "Pod Security restricted forbids it; spec.service.type NodePort or LoadBalancer takes its place",
	"hostPort":        "Pod Security restricted forbids it; spec.service.type NodePort or LoadBalancer takes its place",
	"securityContext": "the operator's is that of Pod Security restricted; see spec.securityContext",
	"loadBalancerIP":  "it is deprecated in Kubernetes; use an annotation of your load balancer in spec.service.annotations",
	"hostPath":        "Pod Security restricted forbids it; see spec.volumes for what takes its place",
	"postStart":       "use spec.initContainers or spec.sidecars",
}

// mounted is a volume of a Pod, and where nginx has it.
type mounted struct {
	volume            source
	name, at, subPath string
}

// fromDeployment carries a Deployment over, with the ConfigMap and the Service that the manifests have of it.
func fromDeployment(manifest *unstructured.Unstructured, manifests []*unstructured.Unstructured) (Result, error) {
	out := newResult(manifest)
	from := newSource(manifest, &out.Lost)
	template := from.in("spec", "template")
	podLabels := map[string]string{}
	template.into(&podLabels, "metadata", "labels")
	service := findService(manifests, manifest.GetNamespace(), podLabels)
	out.deploymentSpec(from, podLabels)
	pod := template.in("spec")
	nginx, err := out.containers(pod)
	if err != nil {
		return out, err
	}
	out.podSpec(template, pod)
	ports := nginx.list("ports")
	nginx.into(&out.Object.Spec.Image, "image")
	nginx.into(&out.Object.Spec.Resources, "resources")
	nginx.into(&out.Object.Spec.Env, "env")
	nginx.in("lifecycle").drop("preStop")
	nginx.drop("name", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")
	nginx.drop("livenessProbe", "readinessProbe", "startupProbe") // the operator's go to a server of their own
	if err := out.volumes(pod, nginx, manifests, manifest.GetNamespace()); err != nil {
		return out, err
	}
	out.service(service, ports)
	nginx.rest()
	from.rest()
	return out, nil
}

func (r *Result) deploymentSpec(from source, podLabels map[string]string) {
	spec, deployment := &r.Object.Spec, from.in("spec")
	deployment.into(&spec.Replicas, "replicas")
	selected := map[string]string{}
	deployment.into(&selected, "selector", "matchLabels")
	deployment.drop("selector", "revisionHistoryLimit")
	maps.DeleteFunc(podLabels, func(key, value string) bool { return selected[key] == value })
	rollout := v1alpha2.Rollout{}
	deployment.into(&rollout.MaxSurge, "strategy", "rollingUpdate", "maxSurge")
	deployment.into(&rollout.MaxUnavailable, "strategy", "rollingUpdate", "maxUnavailable")
	deployment.into(&rollout.ProgressDeadlineSeconds, "progressDeadlineSeconds")
	if kind := deployment.text("strategy", "type"); kind != "" && kind != "RollingUpdate" {
		deployment.lose("strategy.type", kind+": the operator always rolls")
	}
	// What the API server fills in is nobody's wish, and the operator's defaults lose no request.
	defaulted := func(value fmt.Stringer, isGiven bool, byDefault string) bool {
		return isGiven && value.String() == byDefault
	}
	if defaulted(rollout.MaxSurge, rollout.MaxSurge != nil, "25%") && defaulted(rollout.MaxUnavailable, rollout.MaxUnavailable != nil, "25%") {
		rollout.MaxSurge, rollout.MaxUnavailable = nil, nil
	}
	if ptr.Deref(rollout.ProgressDeadlineSeconds, 0) == 600 {
		rollout.ProgressDeadlineSeconds = nil
	}
	if rollout != (v1alpha2.Rollout{}) {
		spec.Rollout = &rollout
	}
	from.in("metadata").drop("labels", "annotations")
	if len(podLabels) > 0 {
		r.podTemplate().Labels = podLabels
	}
}

func (r *Result) podTemplate() *v1alpha2.PodTemplate {
	if r.Object.Spec.PodTemplate == nil {
		r.Object.Spec.PodTemplate = &v1alpha2.PodTemplate{}
	}
	return r.Object.Spec.PodTemplate
}

// podSpec carries over what a Pod has beside containers and volumes.
func (r *Result) podSpec(template, pod source) {
	spec := &r.Object.Spec
	template.take("metadata", "creationTimestamp")
	var placed v1alpha2.PodTemplate
	template.into(&placed.Annotations, "metadata", "annotations")
	delete(placed.Annotations, "kubectl.kubernetes.io/restartedAt")
	pod.into(&placed.NodeSelector, "nodeSelector")
	pod.into(&placed.Tolerations, "tolerations")
	pod.into(&placed.Affinity, "affinity")
	pod.into(&placed.TopologySpreadConstraints, "topologySpreadConstraints")
	pod.into(&placed.PriorityClassName, "priorityClassName")
	pod.into(&placed.ImagePullSecrets, "imagePullSecrets")
	if len(placed.Annotations)+len(placed.NodeSelector)+len(placed.Tolerations)+len(placed.TopologySpreadConstraints)+
		len(placed.ImagePullSecrets)+len(placed.PriorityClassName) > 0 || placed.Affinity != nil {
		placed.Labels = r.podTemplate().Labels
		spec.PodTemplate = &placed
	}
	pod.into(&spec.ServiceAccountName, "serviceAccountName")
	pod.drop("serviceAccount", "automountServiceAccountToken", "enableServiceLinks")
	for field, byDefault := range map[string]string{
		"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
	} {
		if pod.fields[field] == byDefault {
			pod.drop(field)
		}
	}
	r.drain(pod, "terminationGracePeriodSeconds")
}

// drain carries a grace period over: the operator's is 5 seconds longer than drainSeconds. 30 seconds are the default of both.
func (r *Result) drain(pod source, field string) {
	var grace *int64
	pod.into(&grace, field)
	if grace == nil || *grace == int64(v1alpha2.DefaultDrainSeconds)+5 {
		return
	}
	r.Object.Spec.DrainSeconds = ptr.To(int32(min(max(*grace-5, 5), 3600))) //nolint:gosec // it is bounded
}

// containers carries over all containers but that of nginx, which it returns.
func (r *Result) containers(pod source) (source, error) {
	all := pod.list("containers")
	at := slices.IndexFunc(all, func(one source) bool { return one.fields["name"] == wellknown.OperandContainer })
	if at < 0 {
		at = slices.IndexFunc(all, func(one source) bool { return strings.Contains(fmt.Sprint(one.fields["image"]), "nginx") })
	}
	if at < 0 && len(all) == 1 {
		at = 0
	}
	if at < 0 {
		return source{}, errors.New("no container is called nginx or has an image of that name, so it is not known which one serves")
	}
	for i, one := range all {
		if i != at {
			r.Object.Spec.Sidecars = append(r.Object.Spec.Sidecars, other(one))
		}
	}
	for _, one := range pod.list("initContainers") {
		r.Object.Spec.InitContainers = append(r.Object.Spec.InitContainers, other(one))
	}
	return all[at], nil
}

// other carries a container over that is not that of nginx.
func other(from source) (out v1alpha2.Container) {
	from.drop("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "securityContext")
	from.all(&out)
	return out
}

// volumes carries over what nginx has mounted.
func (r *Result) volumes(pod, nginx source, manifests []*unstructured.Unstructured, namespace string) error {
	volumes := map[string]source{}
	for _, volume := range pod.list("volumes") {
		volumes[volume.text("name")] = volume
	}
	for _, mount := range nginx.list("volumeMounts") {
		name := mount.text("name")
		volume, found := volumes[name]
		if !found {
			continue
		}
		one := mounted{volume, name, mount.text("mountPath"), mount.text("subPath")}
		if one.at == "/tmp" && volume.fields["emptyDir"] != nil {
			delete(volumes, name) // the operator has one there
			continue
		}
		known, err := r.knownMount(one, manifests, namespace)
		if err != nil {
			return err
		}
		if !known {
			target := v1alpha2.Volume{MountPath: one.at, SubPath: one.subPath, ReadOnly: mount.take("readOnly") == true}
			r.addVolume(target, name, volume)
		}
		mount.drop("readOnly")
		mount.rest()
		delete(volumes, name)
	}
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		r.addVolume(v1alpha2.Volume{}, name, volumes[name])
	}
	return nil
}

// addVolume adds a volume with its source, unless that is none that the operator knows.
func (r *Result) addVolume(target v1alpha2.Volume, name string, from source) {
	from.all(&target)
	target.Name = name
	without := v1alpha2.Volume{Name: name, MountPath: target.MountPath, SubPath: target.SubPath, ReadOnly: target.ReadOnly}
	if target != without {
		r.Object.Spec.Volumes = append(r.Object.Spec.Volumes, target)
	}
}

// knownMount carries over a mount that has a field of its own: the configuration, static files, a cache.
func (r *Result) knownMount(one mounted, manifests []*unstructured.Unstructured, namespace string) (bool, error) {
	spec := &r.Object.Spec
	configMap, _, _ := unstructured.NestedString(one.volume.fields, "configMap", "name")
	emptyDir, isEmptyDir := one.volume.fields["emptyDir"].(map[string]any)
	switch {
	case configMap != "" && slices.Contains([]string{mainFile, path.Dir(mainFile), confDirectory, confDirectory + "/" + one.subPath}, one.at):
		return true, r.config(configMap, one, manifests, namespace)
	case configMap != "" && one.at == htmlDirectory && one.subPath == "":
		spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: configMap}}
		r.Keep = append(r.Keep, "ConfigMap "+configMap)
		return true, nil
	case isEmptyDir && spec.Cache == nil && strings.HasPrefix(one.at, cacheRoot+"/"):
		size, _ := emptyDir["sizeLimit"].(string)
		if size == "" {
			return false, nil
		}
		spec.Cache = &v1alpha2.Cache{Path: one.at, Size: size, InMemory: emptyDir["medium"] == string(corev1.StorageMediumMemory)}
		return true, nil
	}
	return false, nil
}

// config carries over a configuration in a ConfigMap: servers, or a whole nginx.conf.
func (r *Result) config(name string, one mounted, manifests []*unstructured.Unstructured, namespace string) error {
	isWhole := one.at == mainFile || one.at == path.Dir(mainFile)
	at := slices.IndexFunc(manifests, func(other *unstructured.Unstructured) bool {
		return other.GetKind() == "ConfigMap" && other.GetName() == name && other.GetNamespace() == namespace
	})
	if at < 0 {
		return fmt.Errorf("it mounts ConfigMap %q at %s: give that ConfigMap with -f too", name, one.at)
	}
	data, _, err := unstructured.NestedStringMap(manifests[at].Object, "data")
	if err != nil {
		return fmt.Errorf("failed to read ConfigMap %q: %w", name, err)
	}
	if isWhole {
		key := cmp.Or(one.subPath, path.Base(mainFile))
		if _, found := data[key]; !found {
			return fmt.Errorf("ConfigMap %q has no key %q", name, key)
		}
		for other := range data {
			if other != key && one.subPath == "" {
				r.Lost = append(r.Lost, fmt.Sprintf(
					"ConfigMap %s, key %s: what nginx.conf includes of it belongs into spec.config or spec.files", name, other))
			}
		}
		return r.setWhole(data[key])
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if strings.HasSuffix(key, ".conf") && (one.subPath == "" || one.subPath == key) {
			texts = append(texts, data[key])
		}
	}
	if r.Object.Spec.Config == nil {
		r.Object.Spec.Config = &v1alpha2.Config{}
	}
	r.Object.Spec.Config.Inline += strings.Join(texts, "\n")
	return nil
}

// findService returns the Service that selects Pods with these labels, nil where the manifests have none.
func findService(manifests []*unstructured.Unstructured, namespace string, podLabels map[string]string) *unstructured.Unstructured {
	at := slices.IndexFunc(manifests, func(one *unstructured.Unstructured) bool {
		selector, found, err := unstructured.NestedStringMap(one.Object, "spec", "selector")
		return one.GetKind() == "Service" && one.GetNamespace() == namespace && err == nil && found && len(selector) > 0 &&
			labels.SelectorFromSet(selector).Matches(labels.Set(podLabels))
	})
	if at < 0 {
		return nil
	}
	return manifests[at]
}
