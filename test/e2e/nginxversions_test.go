package e2e

// Real nginx versions from Debian suites: the default suite of the local cluster in the gate, and
// all suites in nightly.
//
//   - An instance serves HTTP and HTTPS, applies another configuration, and exposes metrics,
//     without a failed request.
//   - The operator rolls back a configuration that nginx rejects.
//   - It also rolls back a directive that admission accepts because a later nginx version knows it.
//     A version that has the directive serves it.

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/test/harness/mutate"
)

// nginxSuites are the Debian suites and the oldest nginx minor version that each may have. The
// local cluster starts with the image of defaultSuite. The Makefile builds the others.
var nginxSuites = map[string]int{"bookworm": 22, "trixie": 26, "sid": 30}

const defaultSuite = "trixie"

// newDirective was added in nginx 1.29.3, so it exists from 1.30 on. max_headers is unsuitable,
// because Debian backported it to 1.26.
const (
	newDirective      = "add_header_inherit merge;"
	newDirectiveMinor = 30
)

func testNginxVersions(t *testing.T) {
	for debian := range nginxSuites {
		t.Run(debian, func(t *testing.T) { t.Parallel(); testNginxVersion(t, debian) })
	}
}

func testNginxVersion(t *testing.T, debian string) {
	namespace := newNamespace(t, restricted)
	newSecret(t, namespace, "certificate")
	object := newObject(namespace, "web", 2)
	object.Spec.Image = "docker.io/nginxinc/nginx-unprivileged:debian-" + debian
	object.Spec.TLS = []v1alpha2.TLS{{SecretName: "certificate", Port: ptr.To[int32](8443)}}
	object.Spec.Config = &v1alpha2.Config{Inline: serverText("first")}
	object.Spec.DrainSeconds = ptr.To(mutate.ShortDrain)
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	found := runningMinor(t, object)
	if minor := nginxSuites[debian]; found < minor {
		t.Errorf("%s has nginx 1.%d, want 1.%d or later", debian, found, minor)
	}
	plain, secure := suite.reach.service(namespace, "web", 8080), suite.reach.secure(namespace, "web", 8443)
	loads := []*load{startLoad(t, namespace, plain), startLoad(t, namespace, secure)}

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Config.Inline = serverText("second")
		o.Spec.Monitoring = &v1alpha2.Monitoring{}
	})
	waitForReady(t, object)
	answers(t, namespace, plain+"revision", "second")
	waitForOnly(t, object, 2)
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	for i := range pods {
		answers(t, namespace, suite.reach.pod(&pods[i], defaults.MetricsPort(&object.Spec))+"metrics", "nginx_up 1")
	}

	// configure changes the configuration and adds a directive to its server block.
	configure := func(directive string) {
		update(t, object, func(o *v1alpha2.NginxOperator) {
			o.Spec.Config.Inline = strings.Replace(serverText("third"), "listen 8080;", "listen 8080; "+directive, 1)
		})
	}
	rolledBack := func(directive string) {
		t.Helper()
		began := time.Now()
		configure(directive)
		waitForDegraded(t, object, v1alpha2.ReasonRolledBack)
		t.Logf("FIGURE %s, nginx 1.%d: %s is rolled back after %s", debian, found, directive, seconds(time.Since(began)))
		answers(t, namespace, plain+"revision", "second")
	}
	rolledBack("location /api { proxy_pass http://no-such-host.invalid; }")
	if found < newDirectiveMinor {
		rolledBack(newDirective)
		configure("")
	} else {
		configure(newDirective)
	}
	waitForRecovery(t, object)
	answers(t, namespace, plain+"revision", "third")
	waitForOnly(t, object, 2)
	for _, load := range loads {
		load.finish(t, namespace, fmt.Sprintf("load of %s with nginx 1.%d of %s", load.url, found, debian))
	}
}

var nginxVersion = regexp.MustCompile(`nginx/(1\.([0-9]+)\.[0-9]+)`)

// runningMinor returns the minor version of the running nginx, and logs the full version.
func runningMinor(t *testing.T, object *v1alpha2.NginxOperator) int {
	t.Helper()
	pod := client.ObjectKeyFromObject(onePodOf(t, object))
	out := kubectl(t, "exec", "-n", pod.Namespace, pod.Name, "-c", "nginx", "--", "sh", "-c", "nginx -v 2>&1")
	t.Logf("FIGURE %s runs %s", object.Spec.Image, strings.TrimSpace(out))
	match := nginxVersion.FindStringSubmatch(out)
	if match == nil {
		fatal(t, pod.Namespace, "nginx -v says %q", out)
	}
	t.Log("MATRIX nginx", match[1])
	minor, err := strconv.Atoi(match[2])
	must(t, err)
	return minor
}
