package validation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// deadAnnotation is a prefix of Pod annotations that Kubernetes ignores, also after "container.".
const deadAnnotation = "seccomp.security.alpha.kubernetes.io/"

// Warnings returns warnings about valid values that are deprecated or probably a mistake. Each has
// the path of its field. certificates are the current certificates of the object.
func Warnings(spec *v1alpha2.NginxOperatorSpec, certificates []v1alpha2.Certificate) []string {
	var warnings []string
	add := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if problem := movingTag(spec.Image); problem != "" {
		add("spec.image: %s, so the image can change at any time, and differ between Pods; use a version or a digest",
			problem)
	}
	if seconds := ptr.Deref(spec.DrainSeconds, 0); seconds > longDrain {
		add("spec.drainSeconds: draining a node can wait %d seconds for each Pod, and the cluster autoscaler gives up after %d seconds; "+
			"set at most %d", seconds, longDrain, longDrain)
	}
	if limit, isSet := memoryLimit(spec); isSet && limit.Sign() > 0 && limit.Cmp(leastMemory) < 0 {
		add("spec.resources.limits[memory]: nginx may not start with %s; set %s or more", limit.String(), leastMemory.String())
	}

	warnings = append(warnings, outside(spec)...)
	warnings = append(warnings, rootImages(spec)...)
	if spec.PodTemplate != nil {
		for _, key := range slices.Sorted(maps.Keys(spec.PodTemplate.Annotations)) {
			if strings.HasPrefix(strings.TrimPrefix(key, "container."), deadAnnotation) {
				add("spec.podTemplate.annotations[%s]: Kubernetes ignores this annotation; remove it", key)
			}
		}
	}

	if spec.Config == nil {
		warnings = append(warnings, unused(spec)...)
	}

	if spec.Cache != nil && spec.Cache.InMemory {
		size, isValid := defaults.CacheSize(spec.Cache)
		if limit, isSet := memoryLimit(spec); isValid && isSet && limit.Cmp(size) <= 0 {
			add("spec.cache.inMemory: the content counts toward resources.limits.memory (%s), and the kernel kills "+
				"nginx (OOMKilled) above the limit; set a limit above size", limit.String())
		}
	}

	if spec.Config != nil && spec.Config.Inline != "" {
		_, inConfig := nginxconf.CheckInline(spec, dnsNames(certificates))
		for _, warning := range inConfig {
			add("%s: %s", cmp.Or(warning.Field, "spec.config.inline"), warning)
		}
	}

	warnings = append(warnings, idle(spec)...)
	if spec.Paused {
		add("spec.paused: changes are not applied until it is false")
	}

	return warnings
}

// idle returns a warning about thresholds of alerts that are not rendered.
func idle(spec *v1alpha2.NginxOperatorSpec) []string {
	alerts := ptr.Deref(spec.Monitoring, v1alpha2.Monitoring{}).Alerts
	if alerts == nil || defaults.HasRequestMetrics(spec) || alerts.ErrorPercent == nil && alerts.LatencyMilliseconds == nil {
		return nil
	}
	return []string{"spec.monitoring.alerts: errorPercent and latencyMilliseconds have no effect without " +
		"spec.monitoring.requestMetrics; set requestMetrics, or remove them"}
}

// outside returns warnings about directives outside of the http context.
func outside(spec *v1alpha2.NginxOperatorSpec) []string {
	var warnings []string
	add := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	n, limit := int64(*defaults.Nginx(spec).WorkerConnections), nginxconf.OpenFiles(spec)
	switch {
	case n > limit && limit == nginxconf.UsualOpenFiles:
		add("spec.nginx.workerConnections: %d worker_connections exceed open file resource limit: %d, "+
			"the usual limit of a container (ulimit -n); set `worker_rlimit_nofile %d;` in spec.nginx.main", n, limit, n)
	case n > limit:
		add("spec.nginx.workerConnections: %d worker_connections exceed open file resource limit: %d; "+
			"raise worker_rlimit_nofile in spec.nginx.main to %d", n, limit, n)
	}

	_, found := nginxconf.CheckOutside(spec, nil)
	for _, warning := range found {
		add("%s: %s", warning.Field, warning)
	}

	return warnings
}

// memoryLimit returns the memory limit of a spec, unless it has none, or one that is too large to
// compute with.
func memoryLimit(spec *v1alpha2.NginxOperatorSpec) (resource.Quantity, bool) {
	limit, isSet := ptr.Deref(spec.Resources, corev1.ResourceRequirements{}).Limits[corev1.ResourceMemory]
	return limit, isSet && !isEndless(limit)
}

// dnsNames returns the names of certificates by Secret. It omits certificates whose list of names
// may be incomplete.
func dnsNames(certificates []v1alpha2.Certificate) map[string][]string {
	names := map[string][]string{}
	for _, certificate := range certificates {
		if len(certificate.DNSNames) < keypair.MaxNames {
			names[certificate.SecretName] = certificate.DNSNames
		}
	}
	return names
}

// unused returns warnings about fields that have no effect without spec.config. For a
// configuration, see nginxconf.Check.
func unused(spec *v1alpha2.NginxOperatorSpec) []string {
	var warnings []string
	for i, tls := range defaults.TLS(spec) {
		if tls.Port == nil {
			warnings = append(warnings,
				fmt.Sprintf("spec.tls[%d]: a certificate without a port has no effect without spec.config; set a port", i))
		}
	}

	tuning := defaults.Nginx(spec)
	if len(spec.Files) > 0 && !strings.Contains(tuning.Main+tuning.Events, nginxconf.FilesDirectory) {
		warnings = append(warnings, "spec.files: files have no effect without spec.config; set config, or remove files")
	}
	if tuning.Resolver != nil {
		warnings = append(warnings, "spec.nginx.resolver: a resolver has no effect without spec.config; set config, or remove resolver")
	}
	if spec.Cache != nil {
		warnings = append(warnings, "spec.cache: a cache has no effect without spec.config; set config, or remove cache")
	}
	return warnings
}

// movingTag returns why the tag of an image can move, or "".
func movingTag(image string) string {
	repository, tag := images.Parse(image)
	isPinned := strings.Contains(image, "@") // by a digest
	switch {
	case repository == "" || isPinned:
		return ""
	case tag == "":
		return "the image has no tag, which means latest"
	case tag == "latest":
		return "the tag is latest"
	}

	return ""
}

// patchesSet reports whether a patch of the Deployment has the name of a field.
func patchesSet(spec *v1alpha2.NginxOperatorSpec, name string) bool {
	return slices.ContainsFunc(spec.Patches, func(patch v1alpha2.Patch) bool {
		return patch.Target.Kind == "Deployment" && strings.Contains(patch.Patch, name)
	})
}

// rootImages returns warnings about images that are known to run as root if the spec sets no user.
// The kubelet does not start such a container, because the Pods have runAsNonRoot.
func rootImages(spec *v1alpha2.NginxOperatorSpec) []string {
	if spec.SecurityContext != nil && spec.SecurityContext.RunAsUser != nil || patchesSet(spec, "runAsUser") {
		return nil
	}

	var warnings []string
	add := func(field, image string) {
		if images.RunsAsRoot(image) {
			repository, _ := images.Parse(image)
			warnings = append(warnings, fmt.Sprintf("%s: %s runs as root, so the kubelet does not start it: "+
				"container has runAsNonRoot and image will run as root; set spec.securityContext.runAsUser, for example %d, "+
				"unless the cluster sets a user, as OpenShift does", field, repository, images.NginxUser))
		}
	}

	add("spec.image", spec.Image)
	for i := range spec.InitContainers {
		add(fmt.Sprintf("spec.initContainers[%d].image", i), spec.InitContainers[i].Image)
	}
	for i := range spec.Sidecars {
		add(fmt.Sprintf("spec.sidecars[%d].image", i), spec.Sidecars[i].Image)
	}

	return warnings
}
