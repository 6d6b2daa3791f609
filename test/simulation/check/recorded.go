package check

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// recorded requires that the declaration from which a Deployment was made has a record, and that
// the last good revision has one as well. The record is a ControllerRevision, or the annotation of
// the Deployment whose hash is in the status.
func recorded(s *State, instance *v1alpha2.NginxOperator) string {
	d := s.deployment(instance.Name)
	if d == nil || instance.Spec.Paused {
		return ""
	}
	carried := ""
	annotation := d.Annotations["operator.example.com/first-declaration"]
	if sum := sha256.Sum256([]byte(annotation)); hex.EncodeToString(sum[:]) == instance.Status.FirstDeclarationHash {
		name, _, _ := strings.Cut(annotation, "-")
		carried = instance.Name + "-" + name
	}
	needed := map[string]string{"its Deployment": instance.Name + "-" + d.Labels["operator.example.com/record"]}
	if good := instance.Status.LastGoodRevision; good != nil {
		needed["its last good revision"] = good.Revision
	}
	for of, name := range needed {
		if !s.Records[name] && carried != name {
			return fmt.Sprintf("%s has no record %s", of, name)
		}
	}
	return ""
}
