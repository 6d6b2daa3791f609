package world

import (
	"fmt"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// spoken is a spec, and the time from which on another one replaced it, or zero.
type spoken struct {
	spec  *v1alpha2.NginxOperatorSpec
	until time.Time
}

// speak follows the specs of an instance.
func (a *audit) speak(one *audited, spec *v1alpha2.NginxOperatorSpec) {
	if last := len(one.specs) - 1; last >= 0 {
		one.specs[last].until = a.at
	}
	one.isServiceLost = one.isServiceLost || one.isServiceMissing
	one.specs = append(one.specs, spoken{spec: spec})
}

// entranceKinds are the children whose entrance the audit knows.
var entranceKinds = []*storage.Resource{storage.Services, storage.Ingresses, storage.NetworkPolicies}

// declaredEntrance returns what a spec declares of a child of the entrance.
func declaredEntrance(spec *v1alpha2.NginxOperatorSpec, of *storage.Resource) string {
	switch {
	case of == storage.Services && spec.Service != nil:
		return spec.Service.Annotations[noteKey]
	case of == storage.Ingresses && spec.Expose != nil:
		return spec.Expose.Ingress.Hosts[0].Host
	case of == storage.NetworkPolicies && spec.NetworkPolicy != nil:
		return fmt.Sprint(spec.NetworkPolicy.From)
	}
	return ""
}

// entranceOf returns the same of a live child.
func (one *audited) entranceOf(version *storage.Version) string {
	switch {
	case version.Deleted:
	case version.Resource == storage.Services:
		return version.Meta().GetAnnotations()[noteKey]
	case version.Resource == storage.Ingresses:
		return storage.As[networkingv1.Ingress](version).Spec.Rules[0].Host
	default:
		return one.peersOf(storage.As[networkingv1.NetworkPolicy](version))
	}
	return ""
}

// peersOf returns the peers that a NetworkPolicy admits to the numbers that Pods have served. The
// numbers that only new Pods serve have the peers of these Pods at once, so they change nothing.
func (one *audited) peersOf(policy *networkingv1.NetworkPolicy) string {
	peers := ""
	for _, rule := range policy.Spec.Ingress {
		if len(rule.From) == 0 {
			continue
		}
		isProven := func(port networkingv1.NetworkPolicyPort) bool { return !one.coming[port.Port.IntVal] }
		if slices.ContainsFunc(rule.Ports, isProven) {
			return fmt.Sprint(rule.From)
		}
		peers = one.entrance[storage.NetworkPolicies]
	}
	return peers
}

// admit follows the numbers of a NetworkPolicy.
func (one *audited) admit(version *storage.Version) {
	before := one.admitted
	one.admitted = map[int32]bool{}
	for _, rule := range storage.As[networkingv1.NetworkPolicy](version).Spec.Ingress {
		for _, port := range rule.Ports {
			number := port.Port.IntVal
			one.admitted[number] = true
			if before != nil && !before[number] {
				one.coming[number] = true
			}
		}
	}
}

// enter follows a child of the entrance. The operator changes it only to what the spec has, once
// Pods of that spec served. So a change that fails neither publishes nor undoes anything.
func (a *audit) enter(one *audited, version *storage.Version) {
	if version.Resource == storage.NetworkPolicies && !version.Deleted {
		one.admit(version)
	}
	before, now := one.entrance[version.Resource], one.entranceOf(version)
	if version.Deleted && !version.Requested {
		// It has to come back as it was. Nobody knows how a Service was if the spec changed while the
		// instance was paused, while nothing was stored, or while the Service could not be created.
		if version.Resource == storage.Services {
			isUnstored := one.spec != nil && !one.served[check.DeclaredPods(one.spec)] && len(one.records) == 0
			one.isServiceMissing = true
			one.isServiceLost = one.isServiceLost || !one.pausedSince.IsZero() || isUnstored
		}
		return
	}
	if version.Resource == storage.Ingresses && !version.Deleted {
		a.move(one, version)
	}
	isRestored := false
	if version.Resource == storage.Services && !version.Deleted {
		isRestored, one.isServiceMissing, one.isServiceLost = one.isServiceLost, false, false
	}
	one.entrance[version.Resource] = now
	if !version.Requested || before == now || one.spec == nil {
		return
	}
	a.publish(one, version, before, now, isRestored)
}

// publish requires that the spec has an entrance, and that Pods of that spec served, unless the
// entrance is that of a Service that was lost.
func (a *audit) publish(one *audited, version *storage.Version, before, now string, isRestored bool) {
	isDeclared := false
	for _, said := range one.specs {
		if !said.until.IsZero() && a.at.Sub(said.until) > inFlight || declaredEntrance(said.spec, version.Resource) != now {
			continue
		}
		isDeclared = true
		if len(one.known) == 0 || one.served[check.DeclaredPods(said.spec)] || isRestored {
			return
		}
	}
	if isDeclared {
		a.errorf("%s gets the entrance %q before Pods of its spec served, and had %q", version.Key, now, before)
	} else {
		a.errorf("%s gets the entrance %q, which the spec does not have, and had %q", version.Key, now, before)
	}
}

// move requires that the Ingress moves only to a number with ready endpoints, while the earlier one
// has some.
func (a *audit) move(one *audited, version *storage.Version) {
	before, now := one.backend, storage.As[networkingv1.Ingress](version).Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number
	one.backend = now
	if one.service == nil {
		return
	}
	reached := a.endpoints(one)
	if version.Requested && before != now && len(reached[before]) > 0 && len(reached[now]) == 0 {
		a.errorf("%s moves from %d to %d, which has no ready endpoint", version.Key, before, now)
	}
}

// isEntrance reports whether the audit knows the entrance of a kind.
func isEntrance(of *storage.Resource) bool { return slices.Contains(entranceKinds, of) }
