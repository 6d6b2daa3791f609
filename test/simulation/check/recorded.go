package check

import (
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const annotationChange = "operator.example.com/change"

// recorded requires that what is in effect is stored while the Deployment has other Pods.
func recorded(s *State, instance *v1alpha2.NginxOperator) string {
	d, good := s.deployment(instance.Name), instance.Status.LastGoodRevision
	if d == nil || good == nil || !s.Replaced[instance.Name] || instance.Spec.Paused || d.Annotations[annotationChange] == "" {
		return ""
	}
	pods := func(id string) string { return id[strings.Index(id, "-")+1:] }
	switch stored := instance.Status.StoredRevision; {
	case pods(d.Annotations[annotationChange]) == pods(good.Change):
	case stored == nil:
		return "what is in effect is not stored"
	case !s.Records[stored.Name]:
		return "there is no ControllerRevision " + stored.Name
	}
	return ""
}
