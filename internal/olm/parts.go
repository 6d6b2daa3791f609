package olm

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Part is one of those who have a say in whether OLM may replace the operator: it may when all of them say so. Make it with
// Upgradeable.Part.
type Part struct {
	of              *Upgradeable
	status          metav1.ConditionStatus
	reason, message string
}

// Part returns another one that has a say. Until each has spoken OLM is told of no True, which might not hold.
func (u *Upgradeable) Part() *Part {
	u.mu.Lock()
	defer u.mu.Unlock()
	part := &Part{of: u}
	u.parts = append(u.parts, part)
	return part
}

// Set writes the condition unless it is so already. It is that of the first part that says no.
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
		tell = p.of.parts[0] // whoever spoke last, what OLM reads is the same
	}
	return p.of.Set(ctx, tell.status, tell.reason, tell.message)
}
