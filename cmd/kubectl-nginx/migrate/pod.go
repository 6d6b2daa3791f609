package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// podSpec converts the fields of a Pod other than containers and volumes.
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

func (r *Result) podTemplate() *v1alpha2.PodTemplate {
	if r.Object.Spec.PodTemplate == nil {
		r.Object.Spec.PodTemplate = &v1alpha2.PodTemplate{}
	}
	return r.Object.Spec.PodTemplate
}

// drain converts a grace period, which is 5 seconds longer than drainSeconds. 30 seconds is the
// default of Kubernetes and of the operator.
func (r *Result) drain(pod source, field string) {
	var grace *int64
	pod.into(&grace, field)
	if grace == nil || *grace == int64(v1alpha2.DefaultDrainSeconds)+5 {
		return
	}
	r.Object.Spec.DrainSeconds = ptr.To(int32(min(max(*grace-5, 5), 3600))) //nolint:gosec // it is bounded
}

// containers converts all containers except the nginx container, which it returns.
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
		return source{}, errors.New("cannot find the nginx container: no container is named nginx or has nginx in its image name")
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

// other converts a container other than the nginx container.
func other(from source) (out v1alpha2.Container) {
	from.drop("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "securityContext")
	from.all(&out)
	return out
}
