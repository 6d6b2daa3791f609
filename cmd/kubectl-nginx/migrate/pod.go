package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

func (r *Result) podSpec(template, pod source) {
	spec := &r.Object.Spec
	template.in("metadata").drop("creationTimestamp")
	template.in("metadata", "annotations").drop("kubectl.kubernetes.io/restartedAt")
	placed := v1alpha2.PodTemplate{Annotations: r.usersOwn(template, "metadata", "annotations")}
	pod.pick(&placed, "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
	pod.pick(&placed, "priorityClassName", "imagePullSecrets")
	r.place(placed)

	spec.ServiceAccountName = pod.text("serviceAccount") // the API server copies each of the two fields to the other
	pod.pick(spec, "serviceAccountName")
	pod.drop("enableServiceLinks") // nginx has no use for the variables
	pod.dropDefault(map[string]any{"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"})
	if pod.fields["hostUsers"] == false {
		pod.lose("hostUsers", whyNot("hostUsers"))
	}

	r.drain(pod)
}

func (r *Result) place(placed v1alpha2.PodTemplate) {
	if affinity := placed.Affinity; affinity != nil && *affinity == (corev1.Affinity{}) {
		placed.Affinity = nil
	}
	if template := r.Object.Spec.PodTemplate; template != nil {
		placed.Labels = template.Labels
	}
	r.Object.Spec.PodTemplate = unlessEmpty(placed)
}

func unlessEmpty[T any](value T) *T {
	if equality.Semantic.DeepEqual(value, *new(T)) {
		return nil
	}
	return &value
}

// podLabels omits those by which the old Service would select the new Pods, too.
func (r *Result) podLabels(path string, labels, selected map[string]string) {
	labels = maps.Clone(labels)
	if len(selected) > 0 {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(selected)) {
			pairs = append(pairs, key+"="+selected[key])
		}
		r.check("the Pods have app.kubernetes.io/instance: %s instead of the labels %s. If another object selects the Pods by them, for example "+
			"a NetworkPolicy, a monitor, or an affinity, change it", r.Object.Name, strings.Join(pairs, " and "))
	}

	maps.DeleteFunc(labels, func(key, value string) bool {
		match, isSelected := selected[key]
		return isSelected && match == value
	})

	r.Object.Spec.PodTemplate = unlessEmpty(v1alpha2.PodTemplate{Labels: r.withoutReserved(path, labels)})
}

func (r *Result) usersOwn(from source, path ...string) map[string]string {
	var all map[string]string
	from.into(&all, path...)
	return r.withoutReserved(from.path+"."+strings.Join(path, "."), all)
}

// withoutReserved removes keys of the operator, and of Helm, which does not manage the new objects.
func (r *Result) withoutReserved(path string, all map[string]string) map[string]string {
	var removed []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if wellknown.IsReserved(key) || strings.HasPrefix(key, "app.kubernetes.io/") || strings.Contains(key, "helm.sh/") {
			delete(all, key)
			removed = append(removed, key)
		}
	}

	if len(removed) > 0 {
		r.Lost = append(r.Lost, fmt.Sprintf("%s: the operator sets its own instead of %s", path, strings.Join(removed, ", ")))
	}
	return all
}

func (r *Result) ownMetadata(from source) {
	for _, name := range []string{"labels", "annotations"} {
		if all := from.in("metadata", name); len(all.fields) > 0 {
			r.check("%s: they are not copied; add those that you need to the NginxOperator, or to its children with spec.patches", all.path)
		}
	}
	from.in("metadata").drop("labels", "annotations")
}

// drain converts the grace period, which is 5 seconds longer than drainSeconds.
func (r *Result) drain(pod source) {
	const field = "terminationGracePeriodSeconds"
	var grace *int64
	pod.into(&grace, field)
	if grace == nil || *grace == int64(v1alpha2.DefaultDrainSeconds)+5 {
		return
	}

	drain := min(max(*grace-5, 5), 3600)
	if drain != *grace-5 {
		pod.lose(field, fmt.Sprintf("it is %d, and spec.drainSeconds is between 5 and 3600", *grace))
	}

	r.Object.Spec.DrainSeconds = ptr.To(int32(drain)) //nolint:gosec // it is bounded
}

func findNginx(pod source) (nginx source, others []source, err error) {
	all := pod.list("containers")
	at := slices.IndexFunc(all, func(one source) bool { return one.fields["name"] == wellknown.OperandContainer })
	if at < 0 {
		at = slices.IndexFunc(all, func(one source) bool { return strings.Contains(fmt.Sprint(one.fields["image"]), "nginx") })
	}
	if at < 0 && len(all) == 1 {
		at = 0
	}
	if at < 0 {
		return source{}, nil, errors.New("cannot find the nginx container: no container is named nginx or has nginx in its image name")
	}
	return all[at], slices.Delete(slices.Clone(all), at, at+1), nil
}

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
