package validation

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/schema"
)

const noSource = "a volume requires a source; add one of configMap, secret, emptyDir, persistentVolumeClaim, csi, " +
	"downwardAPI, and projected, or remove the volume"

// maxVolumes is the maximum number of volumes, as in the schema.
const maxVolumes = 16

// Refusals returns the values of a spec that this release rejects in a new write, but that an older
// release could store: violations of the schema, and volumes without a source. If the spec is too
// large, or has too long lists, there is a refusal of the whole spec.
func Refusals(spec *v1alpha2.NginxOperatorSpec, path *field.Path) []ratchet.Refusal {
	return append(violations(spec, path), withoutSource(spec.Volumes, path.Child("volumes"))...)
}

// Complete returns the errors of a spec that the API server has not validated.
func Complete(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, refusal := range Refusals(spec, path) {
		errs = append(errs, refusal.Err)
	}
	return append(errs, Spec(spec, path)...)
}

// withoutSource returns the volumes without a source. The API server would turn such a volume of a
// Pod into an emptyDir. The schema only rejects a second source, so that a later release can add
// sources (docs/adr/0052-rules-are-frozen.md).
func withoutSource(volumes []v1alpha2.Volume, path *field.Path) []ratchet.Refusal {
	var refusals []ratchet.Refusal
	for i := range volumes[:min(len(volumes), maxVolumes)] {
		volume := &volumes[i]
		hasSource := volume.ConfigMap != nil || volume.Secret != nil || volume.EmptyDir != nil || volume.PersistentVolumeClaim != nil ||
			volume.CSI != nil || volume.DownwardAPI != nil || volume.Projected != nil
		if !hasSource {
			refusals = append(refusals, ratchet.Refusal{Err: field.Required(path.Index(i), noSource), Value: volume.Name})
		}
	}
	return refusals
}

// valid has the SHA-256 hashes of recent specs without violations. Each reconcile validates a spec,
// and many instances have equal specs.
var valid = lru.New(1024)

// violations returns the violations of the schema. The value of a violated CEL rule about several
// fields is their object or list.
func violations(spec *v1alpha2.NginxOperatorSpec, path *field.Path) []ratchet.Refusal {
	unreadable := func(err error) []ratchet.Refusal {
		return []ratchet.Refusal{{Err: field.InternalError(path, fmt.Errorf("failed to read the spec: %w", err))}}
	}

	raw, err := json.Marshal(spec)
	if err != nil {
		return unreadable(err)
	}

	hash := sha256.Sum256(raw)
	if _, known := valid.Get(hash); known {
		return nil
	}
	if err := sizeError(raw, path); err != nil {
		return []ratchet.Refusal{{Err: err, Value: string(hash[:])}}
	}

	fields := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil {
		return unreadable(err)
	}

	var refusals []ratchet.Refusal
	for _, err := range schema.Violations(fields, path) {
		value := fmt.Sprintf("%#v", valueAt(fields, strings.TrimPrefix(err.Field, path.String())))
		err.BadValue, err.Detail = field.OmitValueType{}, bounded(err.Detail)
		refusals = append(refusals, ratchet.Refusal{Err: err, Value: value})
	}

	if len(refusals) == 0 {
		valid.Add(hash, nil)
	}

	return refusals
}

// valueAt returns the value of a field below a value, or the innermost value that has the field in
// it if a key of a map has a dot.
func valueAt(value any, path string) any {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch parent := value.(type) {
		case map[string]any:
			inner, found := parent[step]
			if !found {
				return parent
			}
			value = inner
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i < len(parent) {
				value = parent[i]
			}
		}
	}
	return value
}
