package validation

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// longDrain is the time after which the autoscaler of clusters no longer waits for a Pod, in seconds.
const longDrain = 600

// leastMemory is what nginx needs to start.
var leastMemory = resource.MustParse("16Mi")

// deadAnnotations begin the keys of Pod annotations that Kubernetes reads no more.
var deadAnnotations = []string{"seccomp.security.alpha.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"}

// Warnings returns what can be stored and is deprecated, or surely not meant. Each names its field. certificates are those that the
// object has had up to now.
func Warnings(spec *v1alpha2.NginxOperatorSpec, certificates []v1alpha2.Certificate) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if tag, ok := movingTag(spec.Image); ok {
		add("spec.image: %s, which means another image from one day to the next, also among the Pods of this object; name a version or a digest",
			tag)
	}
	if seconds := ptr.Deref(spec.DrainSeconds, 0); seconds > longDrain {
		add("spec.drainSeconds: a node that is being emptied waits %d seconds for each Pod, and the cluster's autoscaler gives up after %d",
			seconds, longDrain)
	}
	if spec.Resources != nil {
		if limit, ok := spec.Resources.Limits["memory"]; ok && limit.Sign() > 0 && !isEndless(limit) && limit.Cmp(leastMemory) < 0 {
			add("spec.resources.limits[memory]: nginx may not start with %s; allow %s or more", limit.String(), leastMemory.String())
		}
	}
	if spec.PodTemplate != nil {
		for _, key := range slices.Sorted(maps.Keys(spec.PodTemplate.Annotations)) {
			for _, prefix := range deadAnnotations {
				if strings.HasPrefix(key, prefix) {
					add("spec.podTemplate.annotations[%s]: Kubernetes reads it no more; remove it", key)
				}
			}
		}
	}
	out = append(out, unused(spec)...)
	out = append(out, warnFiles(spec)...)
	if spec.Config != nil && spec.Config.Inline != "" {
		for _, problem := range nginxconf.Warnings(spec, spec.Config.Inline, dnsNames(certificates)) {
			add("spec.config.inline: %s", problem)
		}
	}
	if spec.Paused {
		add("spec.paused: changes wait until it is false")
	}
	return out
}

// dnsNames returns the names of certificates whose names are all known, by their Secrets.
func dnsNames(certificates []v1alpha2.Certificate) map[string][]string {
	out := map[string][]string{}
	for _, certificate := range certificates {
		if len(certificate.DNSNames) < keypair.MaxNames {
			out[certificate.SecretName] = certificate.DNSNames
		}
	}
	return out
}

// unused tells of content and certificates that no server serves.
func unused(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	switch {
	case spec.Config == nil:
		for i, tls := range defaults.TLS(spec) {
			if tls.Port == nil {
				out = append(out, fmt.Sprintf("spec.tls[%d]: it has no port, so nothing serves it without spec.config; give it a port", i))
			}
		}
	case spec.Config.Inline != "":
		if spec.Content != nil && !strings.Contains(spec.Config.Inline, nginxconf.ContentDirectory) {
			out = append(out, fmt.Sprintf("spec.content: spec.config.inline does not name %s, so nothing serves the content; add `root %s;`",
				nginxconf.ContentDirectory, nginxconf.ContentDirectory))
		}
		for i, tls := range spec.TLS {
			directory := path.Join(nginxconf.TLSDirectory, tls.SecretName)
			if !strings.Contains(spec.Config.Inline, directory+"/") && !strings.Contains(spec.Config.Inline, nginxconf.TLSDirectory+"/$") {
				out = append(out, fmt.Sprintf("spec.tls[%d]: spec.config.inline does not name %s, so nothing serves the certificate", i, directory))
			}
		}
	}
	return out
}

// movingTag says what is wrong with the tag of an image, and whether anything is.
func movingTag(image string) (string, bool) {
	named, err := reference.ParseNormalizedNamed(image)
	if image == "" || err != nil {
		return "", false
	}
	if _, ok := named.(reference.Digested); ok {
		return "", false
	}
	switch tagged, ok := named.(reference.Tagged); {
	case !ok:
		return "it has no tag, and without one it is latest", true
	case tagged.Tag() == "latest":
		return "the tag is latest", true
	}
	return "", false
}
