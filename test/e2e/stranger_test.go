package e2e

// A stranger is a Pod without a ServiceAccount token and without permissions. It relays connections
// (test/stranger), so that the requests of a test come from the Pod's address.

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/stranger/attack"
)

// strangerPort is the port of test/stranger.
const strangerPort = 3128

// newStrangers starts Pods in a new namespace and waits until they are ready. Only tests in the
// cluster's network can use the Pods (suite.local).
func newStrangers(t *testing.T, count int) []attack.Dial {
	t.Helper()
	namespace := newNamespace(t, restricted)
	pods, dials := make([]*corev1.Pod, count), make([]attack.Dial, count)
	for i := range pods {
		pods[i] = strangerPod(namespace, fmt.Sprintf("stranger-%d", i))
		must(t, suite.admin.Create(t.Context(), pods[i]))
	}
	for i, pod := range pods {
		waitFor(t, namespace, pod.Name+" to be ready", patience, func(ctx context.Context) error {
			if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("it is %s: %v", pod.Status.Phase, pod.Status.ContainerStatuses)
		})
		dials[i] = attack.Through(net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(strangerPort)))
	}
	return dials
}

func strangerPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:  "stranger",
				Image: os.Getenv("IMAGES") + "-stranger:v" + suite.version,
				Ports: []corev1.ContainerPort{{Name: "relay", ContainerPort: strangerPort}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					ReadOnlyRootFilesystem:   ptr.To(true),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				ReadinessProbe: &corev1.Probe{
					PeriodSeconds: 1,
					ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("relay")}},
				},
			}},
		},
	}
}

// webhookAddress returns the host and port of the operator's webhook Service.
func webhookAddress() string {
	return fmt.Sprintf("%s-service.%s.svc.cluster.local:443", operatorName, suite.operatorNamespace)
}

// webhookURL returns the URL of a path of the operator's webhook Service.
func webhookURL(path string) string { return "https://" + webhookAddress() + path }
