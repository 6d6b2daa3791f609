package migrate

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// fromDeployment converts a Deployment, with its ConfigMaps and its Service from the manifests.
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
	nginx.drop("livenessProbe", "readinessProbe", "startupProbe") // the operator's probes use a separate server
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
		deployment.lose("strategy.type", kind+": the operator always uses rolling updates")
	}
	// Ignore the API server's defaults: the operator's defaults lose no request.
	defaulted := func(value fmt.Stringer, isGiven bool, byDefault string) bool {
		return isGiven && value.String() == byDefault
	}
	if defaulted(rollout.MaxSurge, rollout.MaxSurge != nil, "25%") && defaulted(rollout.MaxUnavailable, rollout.MaxUnavailable != nil, "25%") {
		rollout.MaxSurge, rollout.MaxUnavailable = nil, nil
	}
	if ptr.Deref(rollout.ProgressDeadlineSeconds, 0) == v1alpha2.DefaultProgressDeadlineSeconds {
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
