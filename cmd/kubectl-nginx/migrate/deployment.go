package migrate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// fromDeployment converts a Deployment, with its ConfigMaps and its Service from the manifests.
func fromDeployment(out *Result, manifest *unstructured.Unstructured, manifests []*unstructured.Unstructured) error {
	from := newSource(manifest, &out.notes)
	template := from.in("spec", "template")
	podLabels := map[string]string{}
	template.into(&podLabels, "metadata", "labels")
	out.deploymentSpec(from, podLabels)

	pod := template.in("spec")
	nginx, others, err := findNginx(pod)
	if err != nil {
		return err
	}
	out.podSpec(template, pod)
	out.securityContext(pod.in("securityContext"), nginx.in("securityContext"))
	ports := nginx.list("ports")
	out.nginxContainer(nginx)
	out.otherContainers(pod.list("initContainers"), others)
	known := func(one mounted) (bool, error) { return out.knownMount(one, manifests, manifest.GetNamespace()) }
	if err := out.volumes(pod.list("volumes"), nginx.list("volumeMounts"), known); err != nil {
		return err
	}
	if err := out.assemble(); err != nil {
		return err
	}

	service := findService(manifests, manifest.GetNamespace(), podLabels)
	out.service(service, ports)
	nginx.rest()
	from.rest()

	related := dependents{podLabels: podLabels, kind: "Deployment", name: manifest.GetName()}
	if service != nil {
		related.service, related.serviceLabels = service.GetName(), service.GetLabels()
	}
	out.others(manifests, related)
	return nil
}

func (r *Result) deploymentSpec(from source, podLabels map[string]string) {
	spec, deployment := &r.Object.Spec, from.in("spec")
	deployment.into(&spec.Replicas, "replicas")
	selected := map[string]string{}
	deployment.into(&selected, "selector", "matchLabels")
	deployment.drop("selector")
	deployment.dropDefault(map[string]any{"revisionHistoryLimit": int64(10)})
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
	r.ownMetadata(from)
	r.podLabels(from.path+".spec.template.metadata.labels", podLabels, selected)
}
