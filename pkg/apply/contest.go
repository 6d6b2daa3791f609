package apply

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// contestedAfter is the number of consecutive corrections after which a child is contested. A
	// user who tries something corrects it fewer times.
	contestedAfter = 5
	// contestEnds is the time after the last correction until a child is no longer contested. Other
	// controllers that restore their own declaration do so every few minutes.
	contestEnds = 15 * time.Minute
)

// Contested is a child that another client keeps changing, and that Apply restores each time. Apply
// has restored it at least five times, each time less than 15 minutes after the time before.
type Contested struct {
	// Child is the declared child.
	Child client.Object
	// Manager is the field manager of the other client, or "" if it is unknown.
	Manager string
	// Left is the time until the child is no longer contested, unless it is changed again.
	Left time.Duration
}

// corrected counts a correction of a child that another client has changed. The name of the first
// client stays, so that two others do not alternate.
func (r *Remembered) corrected(child types.UID, manager string, now time.Time) {
	known := r.changes[hashOf(child)]
	if known == nil {
		return
	}
	if now.Sub(known.corrected) >= contestEnds {
		known.corrections, known.manager = 0, ""
	}

	known.corrections, known.corrected = known.corrections+1, now
	known.manager = cmp.Or(known.manager, strings.Clone(manager))
}

// contest returns the field manager that keeps changing a child, and the time until the child is no
// longer contested, or 0 if it is not contested.
func (r *Remembered) contest(child types.UID, now time.Time) (manager string, left time.Duration) {
	known := r.changes[hashOf(child)]
	if known == nil || known.corrections < contestedAfter {
		return "", 0
	}
	return known.manager, max(known.corrected.Add(contestEnds).Sub(now), 0)
}

// rivalOf returns the field manager of the client that changed the fields that a patch restores. If
// no other manager has one of these fields, for example because it has removed them, it returns the
// last manager that wrote the object, or "" if there is none.
func (a *Applier) rivalOf(live client.Object, patch map[string]any) string {
	var rival metav1.ManagedFieldsEntry
	hasField := false
	for _, entry := range live.GetManagedFields() {
		var fields map[string]any
		if entry.Manager == string(a.FieldOwner) || entry.Subresource == "status" ||
			json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}

		has := overlaps(fields, patch)
		if has && !hasField || has == hasField && !entry.Time.Before(rival.Time) {
			rival, hasField = entry, has
		}
	}

	return rival.Manager
}

// overlaps reports whether a manager has one of the fields of a patch. A list counts as one field.
func overlaps(fields, patch map[string]any) bool {
	for key, value := range patch {
		field, has := fields["f:"+key]
		innerFields, _ := field.(map[string]any)
		inner, isObject := value.(map[string]any)
		if has && (!isObject || len(innerFields) == 0 || overlaps(innerFields, inner)) {
			return true
		}
	}
	return false
}
