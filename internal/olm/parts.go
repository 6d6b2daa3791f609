package olm

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Part is one of several components, all of which must allow OLM to replace the operator.
type Part struct {
	of              *Upgradeable
	status          metav1.ConditionStatus
	reason, message string
}

// Part returns another component of the condition. The condition does not become True until each
// part has called Set.
func (u *Upgradeable) Part() *Part {
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

	reported := p.of.parts[0]
	if i := slices.IndexFunc(p.of.parts, func(part *Part) bool { return part.status == metav1.ConditionFalse }); i >= 0 {
		reported = p.of.parts[i]
	} else if slices.ContainsFunc(p.of.parts, func(part *Part) bool { return part.status == "" }) {
		return nil
	}
	return p.of.set(ctx, reported.status, reported.reason, reported.message)
}
