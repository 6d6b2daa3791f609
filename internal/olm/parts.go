package olm

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Part is one of several components that decide whether OLM can replace the operator. OLM can if
// all of them allow it. Create it with Upgradeable.Part.
type Part struct {
	of              *Upgradeable
	status          metav1.ConditionStatus
	reason, message string
}

// Part returns another component of the condition. Until each part has called Set, the condition
// does not become True, because that could be wrong.
func (u *Upgradeable) Part() *Part {
	u.mu.Lock()
	defer u.mu.Unlock()
	part := &Part{of: u}
	u.parts = append(u.parts, part)
	return part
}

// Set writes the condition of the first part that is False, or of the first part if none is. It
// writes nothing if the condition is unchanged.
func (p *Part) Set(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.status, p.reason, p.message = status, reason, message
	tell := p
	if at := slices.IndexFunc(p.of.parts, func(one *Part) bool { return one.status == metav1.ConditionFalse }); at >= 0 {
		tell = p.of.parts[at]
	} else if slices.ContainsFunc(p.of.parts, func(one *Part) bool { return one.status == "" }) {
		return nil
	}
	if tell.status == metav1.ConditionTrue {
		tell = p.of.parts[0] // independent of the order of the calls
	}
	return p.of.Set(ctx, tell.status, tell.reason, tell.message)
}
