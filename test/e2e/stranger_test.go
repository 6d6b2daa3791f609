package e2e

// A stranger is a Pod without a ServiceAccount token and without permissions. It relays connections
// (test/stranger), so that the requests of a test come from the Pod's address.

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// strangerPort is the port of test/stranger.
	strangerPort = 3128
	// strangerTimeout bounds a request of a stranger.
	strangerTimeout = 30 * time.Second
)

// stranger is one relay Pod.
type stranger struct {
	// pod is the Pod object. relay is the host and port of its relay.
	pod   *corev1.Pod
	relay string
}

// newStrangers starts Pods in a new namespace and waits until they are ready. Only tests in the
// cluster's network can use the Pods (suite.local).
func newStrangers(t *testing.T, pods int) []*stranger {
	t.Helper()
	namespace := newNamespace(t, restricted)
	out := make([]*stranger, pods)
	for i := range out {
		out[i] = &stranger{pod: strangerPod(namespace, fmt.Sprintf("stranger-%d", i))}
		must(t, suite.admin.Create(t.Context(), out[i].pod))
	}
	for _, s := range out {
		waitFor(t, namespace, s.pod.Name+" to be ready", patience, s.ready)
	}
	return out
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

func (s *stranger) ready(ctx context.Context) error {
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(s.pod), s.pod); err != nil {
		return err
	}
	for _, condition := range s.pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			s.relay = net.JoinHostPort(s.pod.Status.PodIP, fmt.Sprint(strangerPort))
			return nil
		}
	}
	return fmt.Errorf("it is %s: %v", s.pod.Status.Phase, s.pod.Status.ContainerStatuses)
}

// dial opens a connection from inside the Pod.
func (s *stranger) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, s.relay)
	if err != nil {
		return nil, fmt.Errorf("failed to reach the stranger: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = connect(conn, address)
	if !stop() {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// connect requests a connection from the relay. The target sends nothing before the client does, so
// the buffered reader loses no data.
func connect(conn net.Conn, address string) error {
	request := &http.Request{Method: http.MethodConnect, Host: address}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return fmt.Errorf("failed to write to the stranger: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return fmt.Errorf("failed to read from the stranger: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		text, err := readText(response)
		return errors.Join(fmt.Errorf("the stranger cannot connect to %s: %s", address, text), err)
	}
	return nil
}

// client returns a client that sends requests from the Pod, each on a new connection. It verifies
// no certificate.
func (s *stranger) client() *http.Client {
	return &http.Client{Timeout: strangerTimeout, Transport: &http.Transport{
		DialContext:       s.dial,
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // #nosec G402 -- a stranger trusts nobody
	}}
}

// webhookAddress returns the host and port of the operator's webhook Service.
func webhookAddress() string {
	return fmt.Sprintf("%s-service.%s.svc.cluster.local:443", operatorName, suite.operatorNamespace)
}

// webhookURL returns the URL of a path of the operator's webhook Service.
func webhookURL(path string) string { return "https://" + webhookAddress() + path }
