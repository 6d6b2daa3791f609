package migrate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// fromDeployment converts a Deployment, with its ConfigMaps and its Service from the manifests.
func (r *Result) fromDeployment(manifest *unstructured.Unstructured) error {
	from := newSource(manifest, &r.notes)
	template := from.in("spec", "template")
	podLabels := map[string]string{}
	template.into(&podLabels, "metadata", "labels")
	r.deploymentSpec(from, podLabels)

	pod := template.in("spec")
	nginx, others, err := findNginx(pod)
	if err != nil {
		return err
	}

	r.podSpec(template, pod)
	r.securityContext(pod.in("securityContext"), nginx.in("securityContext"))
	ports := nginx.list("ports")
	r.nginxContainer(nginx)
	r.otherContainers(pod.list("initContainers"), others)
	if err := r.volumes(pod.list("volumes"), nginx.list("volumeMounts"), r.knownMount); err != nil {
		return err
	}
	if err := r.assemble(); err != nil {
		return err
	}

	service := r.findService(podLabels)
	r.service(service, ports)
	nginx.rest()
	from.rest()

	related := dependents{podLabels: podLabels, kind: "Deployment", name: manifest.GetName()}
	if service != nil {
		related.service, related.serviceLabels = service.GetName(), service.GetLabels()
	}

	r.others(related)
	return nil
}

func (r *Result) deploymentSpec(from source, podLabels map[string]string) {
	deployment := from.in("spec")
	deployment.pick(&r.Object.Spec, "replicas")
	selected := map[string]string{}
	deployment.into(&selected, "selector", "matchLabels")
	deployment.drop("selector")
	if kind := deployment.text("strategy", "type"); kind != "" && kind != "RollingUpdate" {
		deployment.lose("strategy.type", kind+": the operator always uses rolling updates")
	}

	// Ignore the API server's defaults: the operator's defaults lose no request.
	deployment.dropDefault(map[string]any{
		"revisionHistoryLimit": int64(10), "progressDeadlineSeconds": int64(v1alpha2.DefaultProgressDeadlineSeconds),
	})

	update := deployment.in("strategy", "rollingUpdate")
	if update.fields["maxSurge"] == "25%" && update.fields["maxUnavailable"] == "25%" {
		update.drop("maxSurge", "maxUnavailable")
	}

	var rollout v1alpha2.Rollout
	update.pick(&rollout, "maxSurge", "maxUnavailable")
	deployment.pick(&rollout, "progressDeadlineSeconds")
	r.Object.Spec.Rollout = unlessEmpty(rollout)

	r.ownMetadata(from)
	r.podLabels(from.path+".spec.template.metadata.labels", podLabels, selected)
}
