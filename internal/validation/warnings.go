package validation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/images"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// longDrain is the time, in seconds, after which the cluster autoscaler stops waiting for a Pod.
const longDrain = 600

// leastMemory is the memory that nginx needs to start.
var leastMemory = resource.MustParse("16Mi")

// deadAnnotations are prefixes of Pod annotations that Kubernetes ignores.
var deadAnnotations = []string{"seccomp.security.alpha.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"}

// Warnings returns warnings about valid values that are deprecated or probably a mistake. Each has
// the path of its field. certificates are the current certificates of the object.
func Warnings(spec *v1alpha2.NginxOperatorSpec, certificates []v1alpha2.Certificate) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if tag, ok := movingTag(spec.Image); ok {
		add("spec.image: %s, so the image can change at any time, and differ between Pods; use a version or a digest",
			tag)
	}
	if seconds := ptr.Deref(spec.DrainSeconds, 0); seconds > longDrain {
		add("spec.drainSeconds: draining a node can wait %d seconds for each Pod, and the cluster autoscaler gives up after %d seconds",
			seconds, longDrain)
	}
	if spec.Resources != nil {
		if limit, ok := spec.Resources.Limits["memory"]; ok && limit.Sign() > 0 && !isEndless(limit) && limit.Cmp(leastMemory) < 0 {
			add("spec.resources.limits[memory]: nginx may not start with %s; set %s or more", limit.String(), leastMemory.String())
		}
	}
	if n := *defaults.Nginx(spec).WorkerConnections; n > nginxconf.UsualOpenFiles {
		add("spec.nginx.workerConnections: a connection is an open file, and with the usual limit of %d open files (ulimit -n in the container) "+
			"a worker gets at most that many; raise the limit of the container runtime on the nodes, or add workers or replicas",
			nginxconf.UsualOpenFiles)
	}
	out = append(out, rootImages(spec)...)
	if spec.PodTemplate != nil {
		for _, key := range slices.Sorted(maps.Keys(spec.PodTemplate.Annotations)) {
			for _, prefix := range deadAnnotations {
				if strings.HasPrefix(key, prefix) {
					add("spec.podTemplate.annotations[%s]: Kubernetes ignores this annotation; remove it", key)
				}
			}
		}
	}
	out = append(out, unused(spec)...)
	out = append(out, warnFiles(spec)...)
	if spec.Config != nil && spec.Config.Inline != "" {
		_, warnings := nginxconf.Check(spec, spec.Config.Inline, nil, dnsNames(certificates))
		for _, warning := range warnings {
			add("%s: %s", cmp.Or(warning.Field, "spec.config.inline"), warning)
		}
	}
	if spec.Paused {
		add("spec.paused: changes are not applied until it is false")
	}
	return out
}

// dnsNames returns the names of certificates by Secret. It omits certificates whose list of names
// may be incomplete.
func dnsNames(certificates []v1alpha2.Certificate) map[string][]string {
	out := map[string][]string{}
	for _, certificate := range certificates {
		if len(certificate.DNSNames) < keypair.MaxNames {
			out[certificate.SecretName] = certificate.DNSNames
		}
	}
	return out
}

// unused returns warnings about certificates that the default servers do not use. For a
// configuration, see nginxconf.Check.
func unused(spec *v1alpha2.NginxOperatorSpec) []string {
	if spec.Config != nil {
		return nil
	}
	var out []string
	for i, tls := range defaults.TLS(spec) {
		if tls.Port == nil {
			out = append(out, fmt.Sprintf("spec.tls[%d]: a certificate without a port has no effect without spec.config; set a port", i))
		}
	}
	return out
}

// movingTag reports whether the tag of an image can move, and describes the problem.
func movingTag(image string) (string, bool) {
	repository, tag := images.Parse(image)
	isPinned := strings.Contains(image, "@") // by a digest
	switch {
	case repository == "" || isPinned:
		return "", false
	case tag == "":
		return "the image has no tag, which means latest", true
	case tag == "latest":
		return "the tag is latest", true
	}
	return "", false
}
