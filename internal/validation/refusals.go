package validation

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/schema"
)

// Rules that 0.5.1 added. The schema has the same rules.
var (
	// scrapedTooOften matches intervals of less than 5 seconds.
	scrapedTooOften = regexp.MustCompile(`^[1-4]s$`)
	// unsafeText matches characters that end a word in the configuration of an Ingress controller
	// or of a proxy: quotes, semicolons, braces, backslashes, white space, and control characters.
	unsafeText = regexp.MustCompile("[\\p{Z}\\p{C}\"'`;{}\\\\]")
)

const (
	scrapeRule   = "must be at least 5s; write for example 15s"
	unsafeInPath = "must not have quotes, semicolons, braces, backslashes, whitespace, or control characters; write them percent-encoded, " +
		"for example %20 for a space"
	unsafeInHost = "must not have quotes, semicolons, braces, backslashes, whitespace, or control characters; write a DNS name"
	noSource     = "a volume requires a source; add one of configMap, secret, emptyDir, persistentVolumeClaim, csi, downwardAPI, and " +
		"projected, or remove the volume"
)

// Refusals returns the values of a spec that this release rejects in a new write, but that 0.5.0
// could store. They violate the schema, which the conversion from v1alpha1 did not check, or a rule
// that 0.5.1 added, or are volumes without a source. The spec must have passed Spec.
func Refusals(spec *v1alpha2.NginxOperatorSpec, path *field.Path) []ratchet.Refusal {
	out := append(violations(spec, path), withoutSource(spec.Volumes, path.Child("volumes"))...)

	if spec.Monitoring != nil && spec.Monitoring.PodMonitor != nil {
		if interval := spec.Monitoring.PodMonitor.Interval; scrapedTooOften.MatchString(interval) {
			out = append(out, refusal(path.Child("monitoring", "podMonitor", "interval"), interval, scrapeRule, ""))
		}
	}

	if spec.Expose != nil {
		out = append(out, refusedOfExpose(spec.Expose, path.Child("expose"))...)
	}
	return out
}

// withoutSource returns the volumes without a source. The API server would turn such a volume of a
// Pod into an emptyDir. The schema only rejects a second source, so that a later release can add
// sources (docs/adr/0052-rules-are-frozen.md).
func withoutSource(volumes []v1alpha2.Volume, path *field.Path) []ratchet.Refusal {
	var out []ratchet.Refusal
	for i := range volumes {
		volume := &volumes[i]
		hasSource := volume.ConfigMap != nil || volume.Secret != nil || volume.EmptyDir != nil || volume.PersistentVolumeClaim != nil ||
			volume.CSI != nil || volume.DownwardAPI != nil || volume.Projected != nil
		if !hasSource {
			out = append(out, ratchet.Refusal{Err: field.Required(path.Index(i), noSource), Value: volume.Name})
		}
	}
	return out
}

func refusedOfExpose(expose *v1alpha2.Expose, path *field.Path) []ratchet.Refusal {
	var out []ratchet.Refusal
	if expose.Ingress != nil {
		for i, host := range expose.Ingress.Hosts {
			at := path.Child("ingress", "hosts").Index(i)
			if unsafeText.MatchString(host.Host) {
				out = append(out, refusal(at.Child("host"), host.Host, unsafeInHost, ""))
			}
			for j, one := range host.Paths {
				if unsafeText.MatchString(one) {
					out = append(out, refusal(at.Child("paths").Index(j), one, unsafeInPath, host.Host))
				}
			}
		}
	}
	if expose.HTTPRoute != nil {
		for i, name := range expose.HTTPRoute.Hostnames {
			if unsafeText.MatchString(name) {
				out = append(out, refusal(path.Child("httpRoute", "hostnames").Index(i), name, unsafeInHost, ""))
			}
		}
	}
	return out
}

// refusal returns a refusal of a text. owner distinguishes equal texts of different owners.
func refusal(path *field.Path, text, rule, owner string) ratchet.Refusal {
	return ratchet.Refusal{Err: field.Invalid(path, bounded(text), rule), Value: owner + "\x00" + text}
}

// valid has the SHA-256 hashes of recent specs without violations. Each reconcile validates a spec, and
// many instances have equal specs.
var valid = lru.New(1024)

// violations returns the violations of types, bounds, enums, and patterns of the schema.
func violations(spec *v1alpha2.NginxOperatorSpec, path *field.Path) []ratchet.Refusal {
	raw, err := json.Marshal(spec)
	if err != nil {
		return unreadable(path, err)
	}
	hash := sha256.Sum256(raw)
	if _, known := valid.Get(hash); known {
		return nil
	}
	fields := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil {
		return unreadable(path, err)
	}

	var out []ratchet.Refusal
	for _, err := range schema.Violations(fields, path) {
		value := fmt.Sprint(err.BadValue)
		err.BadValue, err.Detail = field.OmitValueType{}, bounded(err.Detail)
		out = append(out, ratchet.Refusal{Err: err, Value: value})
	}
	if len(out) == 0 {
		valid.Add(hash, nil)
	}
	return out
}

func unreadable(path *field.Path, err error) []ratchet.Refusal {
	return []ratchet.Refusal{{Err: field.InternalError(path, fmt.Errorf("failed to read the spec: %w", err))}}
}
