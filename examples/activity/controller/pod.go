package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/activity/api/v1"
	"github.com/example/nginx-operator/internal/metadata"
)

const (
	// managedBy is the value of the label by which the cache knows the Pods of Activities.
	managedBy = "activity-operator"
	// containerName is the name of the container in which the command runs.
	containerName = "activity"
	// finalizer keeps a Pod, deleted or not, until the status of its Activity says that there was one. So a Pod that is not
	// there and of which the status knows nothing was never made.
	finalizer = "ego.example.com/unrecorded"
	// longestPodName is that of a DNS label, because the name is also the host name in the Pod.
	longestPodName = 63
)

// podName returns the name of an Activity's Pod: the beginning of the Activity's name and what stands for its UID. It is
// the same whenever it is asked for, and another one for an Activity that takes the name of one that was deleted.
func podName(activity *v1.Activity) string {
	sum := sha256.Sum256([]byte(activity.UID))
	suffix := "-" + hex.EncodeToString(sum[:5])
	prefix := activity.Name[:min(len(activity.Name), longestPodName-len(suffix))]
	return strings.TrimRight(prefix, "-.") + suffix
}

// desiredPod returns the Pod in which an Activity runs, without its owner. It takes nothing from what runs beside it: no
// API token, no variables of Services, no capability, and root only where execuser or the image says so.
func desiredPod(activity *v1.Activity, image string) *corev1.Pod {
	spec := &activity.Spec
	uid, gid := user(spec.Execuser)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  activity.Namespace,
			Name:       podName(activity),
			Labels:     map[string]string{metadata.LabelName: "activity", metadata.LabelManagedBy: managedBy},
			Finalizers: []string{finalizer},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: ptr.To(false),
			EnableServiceLinks:           ptr.To(false),
			Affinity:                     onNode(spec.Host),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser:      uid,
				RunAsGroup:     gid,
				RunAsNonRoot:   nonRoot(uid),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:       containerName,
				Image:      image,
				Command:    []string{"/bin/sh", "-c", literal(spec.Command)},
				WorkingDir: spec.Execcwd,
				Env:        environment(spec.Envs),
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// user returns the numbers of an execuser, nil for each that it does not give. The API has checked that they are numbers.
func user(execuser string) (uid, gid *int64) {
	number := func(text string) *int64 {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return &n
		}
		return nil
	}
	first, second, _ := strings.Cut(execuser, ":")
	return number(first), number(second)
}

// nonRoot asks the kubelet to check that the user is not root, where one is given that is not.
func nonRoot(uid *int64) *bool {
	if ptr.Deref(uid, 0) == 0 {
		return nil
	}
	return ptr.To(true)
}

// onNode leaves the choice of the node to the scheduler, who keeps to the one that is named and to its taints and
// resources as well; spec.nodeName would pass over them. It returns nil for any node.
func onNode(host string) *corev1.Affinity {
	if host == "" {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{host},
			}},
		}}},
	}}
}

// environment returns the variables of KEY=VALUE pairs, which the API has checked.
func environment(envs []string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, env := range envs {
		key, value, _ := strings.Cut(env, "=")
		out = append(out, corev1.EnvVar{Name: key, Value: literal(value)})
	}
	return out
}

// literal keeps the kubelet from what it does with commands and variables: it makes $$ one $, and puts the value of a
// variable in the place of $(NAME), which for a shell is the output of a command.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }
