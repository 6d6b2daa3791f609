package health

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// secretWords is the content of the Secrets in these tests.
const secretWords = "hunter2"

// seeing returns a Pod of the instance web. The change adds a Secret to the Pod.
func seeing(change func(*corev1.PodSpec), container string, status corev1.ContainerStatus) *corev1.Pod {
	pod := fixture.NewPod(status)
	pod.Labels = wellknown.Selector("web")
	pod.Status.ContainerStatuses[0].Name = container
	pod.Spec.Containers = []corev1.Container{{Name: "nginx"}}
	change(&pod.Spec)
	return pod
}

func secretVolume(spec *corev1.PodSpec) {
	source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "web-tls"}}
	spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: source})
}

func crashed(message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", Message: message,
	}}}
}

// TestNoWordOfASecretIsReported verifies that no message about a container quotes a Secret,
// wherever the Pod references the Secret. A process in the container could try that.
func TestNoWordOfASecretIsReported(t *testing.T) {
	env := []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}}
	places := map[string]func(*corev1.PodSpec){
		"spec.tls, spec.volumes[].secret": secretVolume,
		"spec.files, projected": func(spec *corev1.PodSpec) {
			sources := []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{}}, {Secret: &corev1.SecretProjection{}}}
			source := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
			spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: source})
		},
		"spec.volumes[].csi": func(spec *corev1.PodSpec) {
			spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}})
		},
		"spec.env": func(spec *corev1.PodSpec) { spec.Containers[0].Env = env },
		"spec.initContainers, spec.sidecars": func(spec *corev1.PodSpec) {
			spec.InitContainers = []corev1.Container{{Name: "init", Env: env}}
		},
		"a patch with envFrom": func(spec *corev1.PodSpec) {
			spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
		},
		"a patch with a container": func(spec *corev1.PodSpec) { spec.Containers = append(spec.Containers, corev1.Container{Env: env}) },
	}
	const stamp = "2026/01/01 00:00:00 [emerg] 1#1: "
	statuses := map[string]corev1.ContainerStatus{
		"the last line":              crashed("password " + secretWords),
		"an unknown directive":       crashed(stamp + `unknown directive "` + secretWords + `" in /etc/nginx/files/a.conf:3`),
		"located in the spec":        crashed(stamp + `invalid value "` + secretWords + `" in /etc/nginx-operator/servers.conf:3`),
		"located in a key":           crashed(stamp + `invalid value "a" in /etc/nginx-operator/servers-` + secretWords + `/:3`),
		"located in nginx.conf":      crashed(stamp + `duplicate location "/` + secretWords + `" in /etc/nginx-operator/nginx.conf:50`),
		"a location inside the text": crashed(stamp + `unknown directive "a in /` + secretWords + ":3\nmore\" in /etc/nginx/files/a.conf:3"),
		"a quoted location":          crashed(stamp + `unknown directive "a" in /` + secretWords + `:3`),
		"outside of quotes":          crashed(stamp + "bind() to " + secretWords + ":80 failed (13: Permission denied)"),
		"an unknown form":            crashed(stamp + secretWords + ` in /etc/nginx-operator/servers.conf:3`),
		"a command": fixture.Waiting("RunContainerError", `failed to create containerd task: exec: "`+secretWords+
			`": executable file not found in $PATH`),
		"a path": fixture.Waiting("CreateContainerConfigError", "error SubPath `/"+secretWords+"` must not be an absolute path"),
	}
	for place, change := range places {
		for what, status := range statuses {
			for _, container := range []string{"nginx", "init", "sidecar"} {
				t.Run(place+", "+what+", "+container, func(t *testing.T) {
					found := PodFailure(seeing(change, container, status))
					if found == nil || strings.Contains(found.Message, secretWords) {
						t.Fatalf("reported %+v", found)
					}
					for _, want := range []string{"because it may quote a Secret; see: kubectl ", " -n shop -l app.kubernetes.io/instance=web"} {
						if !strings.Contains(found.Message, want) {
							t.Errorf("%q is not in %s", want, found.Message)
						}
					}
				})
			}
		}
	}
}

// TestFormsOfMessages verifies that a message without the withheld words still has nginx's error
// message and the line. Each situation is the log of nginx in a Pod that may see a Secret.
func TestFormsOfMessages(t *testing.T) {
	var messages strings.Builder
	for _, log := range []string{
		`unknown directive "hunter2" in /etc/nginx/files/a.conf:3`,
		"unknown directive \"hunter2\nmore\" in /etc/nginx/files/a.conf:3",
		`invalid value "a" in /etc/nginx-operator/servers.conf:3`,
		`"root" directive is duplicate in /etc/nginx-operator/servers.conf:14`,
		`invalid value "hunter2" in /etc/nginx-operator/servers-20-files.conf:8`,
		`unknown directive "hunter2" in /etc/nginx-operator/servers-a b.conf:8`,
		`unexpected end of file, expecting ";" or "}" in /etc/nginx-operator/servers.conf:14`,
		`open() "/x" failed (2: No such file or directory) in /etc/nginx-operator/servers.conf:1`,
		`bind() to hunter2:80 failed (13: Permission denied)`,
		`invalid event type "kqueue" in /etc/nginx-operator/events.conf:1`,
		`dlopen() "/usr/lib/nginx/modules/a.so" failed (a.so: cannot open shared object file) in /etc/nginx-operator/modules.conf:1`,
		`hunter2 in /etc/nginx-operator/modules.conf:1`,
	} {
		failed := PodFailure(seeing(secretVolume, "nginx", crashed("2026/01/01 00:00:00 [emerg] 1#1: "+log)))
		addMessage(&messages, "[emerg] "+strings.ReplaceAll(log, "\n", " "), failed)
	}
	addMessage(&messages, "a message of the kubelet that may quote a Secret", PodFailure(seeing(secretVolume, "nginx",
		fixture.Waiting("RunContainerError", `failed to create containerd task: exec: "hunter2": executable file not found in $PATH`))))

	fixture.Golden(t, "messages-withheld.txt", messages.String())
	if found := PodFailure(seeing(secretVolume, "nginx", crashed(""))); found == nil || strings.Contains(found.Message, "withheld") {
		t.Errorf("%+v", found)
	}
}

// TestMessagesOfTheKubeletAreReported verifies that the kubelet's message about a missing Secret is
// not withheld.
func TestMessagesOfTheKubeletAreReported(t *testing.T) {
	for _, message := range []string{
		`secret "web-tls" not found`, `configmap "web" not found`, "couldn't find key password in Secret shop/web",
		"container has runAsNonRoot and image will run as root",
		"container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root",
	} {
		want := failure.Failure{Reason: v1alpha2.ReasonContainerConfigError, Message: `cannot start container "nginx": ` + message}
		if strings.Contains(message, "runAsNonRoot") {
			want.Message += runAsUserRemedy
		}
		found := PodFailure(seeing(secretVolume, "nginx", fixture.Waiting("CreateContainerConfigError", message)))
		if found == nil || *found != want {
			t.Errorf("reported %+v", found)
		}
	}
}
