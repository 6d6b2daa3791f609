package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestWorkloadIsRefused verifies that the schema, the webhook, or the API server that the webhook
// asks rejects invalid containers and volumes. The message names the field that the user wrote.
func TestWorkloadIsRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	many := func(list, element string, n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(element, i))
		}
		return list + ": [" + strings.Join(out, ", ") + "]"
	}
	const apart = ", which nginx needs; choose another directory"
	for title, test := range map[string]struct{ spec, want string }{
		// Rejected by the schema.
		"65 variables":   {many("env", "{name: A%d}", 65), "spec.env: Too many: 65: must have at most 64 items"},
		"variable twice": {"env: [{name: A}, {name: A}]", `spec.env[1]: Duplicate value: {"name":"A"}`},
		"long value": {
			"env: [{name: A, value: " + strings.Repeat("a", 4097) + "}]", "spec.env[0].value: Too long: may not be more than 4096",
		},
		"17 volumes": {many("volumes", "{name: a%d, emptyDir: {}}", 17), "spec.volumes: Too many: 17: must have at most 16 items"},
		"volume of two things": {
			"volumes: [{name: a, emptyDir: {}, configMap: {name: a}}]",
			"spec.volumes[0]: Invalid value: an entry of volumes has more than one source",
		},
		"path on the host": {"volumes: [{name: a, hostPath: {path: /}}]", `unknown field "spec.volumes[0].hostPath"`},
		"medium":           {"volumes: [{name: a, emptyDir: {medium: Tape}}]", `spec.volumes[0].emptyDir.medium: Unsupported value: "Tape"`},
		"endless volume": {
			"volumes: [{name: a, emptyDir: {sizeLimit: 1e1.5}}]",
			`spec.volumes[0].emptyDir.sizeLimit: Invalid value: "1e1.5": spec.volumes[0].emptyDir.sizeLimit in body should match`,
		},
		"mode of files": {
			"volumes: [{name: a, secret: {secretName: a, defaultMode: 512}}]", "spec.volumes[0].secret.defaultMode: Invalid value: 512",
		},
		"short token": {
			"volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a, expirationSeconds: 599}}]}}]",
			"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599",
		},
		"root":           {"securityContext: {runAsUser: 0}", "spec.securityContext.runAsUser: Invalid value: 0"},
		"negative group": {"securityContext: {fsGroup: -1}", "spec.securityContext.fsGroup: Invalid value: -1"},
		"endless group":  {"securityContext: {supplementalGroups: [2147483648]}", "spec.securityContext.supplementalGroups[0]: Invalid value"},
		"change policy": {
			"securityContext: {fsGroupChangePolicy: Never}", `spec.securityContext.fsGroupChangePolicy: Unsupported value: "Never"`,
		},
		"9 init containers": {many("initContainers", "{name: a%d}", 9), "spec.initContainers: Too many: 9: must have at most 8 items"},
		"9 sidecars":        {many("sidecars", "{name: a%d}", 9), "spec.sidecars: Too many: 9: must have at most 8 items"},
		"endless request": {
			"sidecars: [{name: a, resources: {requests: {cpu: '1e-1000000000'}}}]",
			`spec.sidecars[0].resources.requests.cpu: Invalid value: "1e-1000000000": spec.sidecars[0].resources.requests.cpu in body should match`,
		},

		// Rejected by the webhook.
		"volume of nothing":  {"volumes: [{name: a}]", "spec.volumes[0]: Required value: a volume requires a source"},
		"variable of nginx":  {"env: [{name: NGINX}]", "spec.env[0].name: Forbidden: nginx uses this variable internally"},
		"name of a variable": {"env: [{name: 'A; daemon on'}]", `spec.env[0].name: Invalid value: "A; daemon on": must contain only letters`},
		"ServiceAccount":     {"serviceAccountName: Web", `spec.serviceAccountName: Invalid value: "Web"`},
		"volume of the operator": {
			"volumes: [{name: tmp, emptyDir: {}}]",
			"spec.volumes[0].name: Forbidden: the names config, tmp, content, files, and cache and the prefixes tls- and operator- are reserved",
		},
		"over the configuration": {
			"volumes: [{name: a, mountPath: /etc, emptyDir: {}}]",
			"spec.volumes[0].mountPath: Forbidden: conflicts with /etc/nginx-operator" + apart,
		},
		"into the content": {
			"{content: {configMapRef: {name: a}}, volumes: [{name: a, mountPath: /usr/share/nginx/html/a, emptyDir: {}}]}",
			"spec.volumes[0].mountPath: Forbidden: conflicts with /usr/share/nginx/html" + apart,
		},
		"subPath without a path": {"volumes: [{name: a, subPath: a, emptyDir: {}}]", "spec.volumes[0].mountPath: Required value"},
		"name of nginx":          {"sidecars: [{name: nginx}]", `spec.sidecars[0].name: Duplicate value: "nginx"`},
		"volume that is not declared": {
			"initContainers: [{name: a, volumeMounts: [{name: config, mountPath: /a}]}]",
			`spec.initContainers[0].volumeMounts[0].name: Not found: "config": add the volume to spec.volumes, or correct the name`,
		},
		"cache that nginx may not write": {
			"volumes: [{name: a, mountPath: /cache, readOnly: true, emptyDir: {}}]\n" + inline("proxy_temp_path /cache/a;"),
			"line 3: proxy_temp_path /cache/a: Read-only file system. Use /tmp/a",
		},

		// Rejected by the API server.
		"two sources of a value": {
			"env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: a, key: a}}}]",
			"spec.env[0].valueFrom: Invalid value",
		},
		"driver": {"volumes: [{name: b, emptyDir: {}}, {name: a, csi: {driver: A_b}}]", "spec.volumes[1].csi.driver: Invalid value"},
		"resource of an init container": {
			"initContainers: [{name: a, resources: {limits: {disk: 1}}}]", `spec.initContainers[0].resources.limits[disk]: Invalid value: "disk"`,
		},
		"field of a sidecar": {
			"{initContainers: [{name: a}], sidecars: [{name: b, env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.containers}}}]}]}",
			`spec.sidecars[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.containers"`,
		},
	} {
		t.Run(title, func(t *testing.T) {
			refused(t, namespace, v1alpha2.GroupVersion.Version, test.spec, test.want)
		})
	}
}

// TestSidecarThatCrashesIsTakenBack verifies that the operator rolls back a change to a sidecar
// that crashes, and that the status names the container.
func TestSidecarThatCrashesIsTakenBack(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newReadyWeb(t, nil)

	sidecars := func(n int, seconds int32) {
		t.Helper()
		waitForWeb(t, namespace, func(got children) error {
			if now, settle := len(podOf(got).InitContainers), got.deployment.Spec.MinReadySeconds; now != n || settle != seconds {
				return fmt.Errorf("%d sidecars, a Pod counts after %d seconds", now, settle)
			}
			return nil
		})
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Sidecars = []v1alpha2.Container{{Name: "ship"}} })
	sidecars(1, 10)
	status := waitingPod("PodInitializing", "")
	status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: "ship", RestartCount: 2,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 2, Reason: "Error", Message: "no target",
		}},
	}}
	newestFails(t, namespace, "2", status)
	degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	if want := `container "ship" keeps crashing with exit code 2 (Error): no target`; !strings.Contains(degraded.Message, want) {
		t.Errorf("the message does not say %s: %s", want, degraded.Message)
	}
	sidecars(0, 0)
}
