package apply

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Content has the data of immutable children. A declaration can leave the data out: it never
// changes, so it is needed only to create a child, and to verify a child that this process has not
// compared before.
type Content interface {
	// Fill adds the content to a child before its creation. It returns a conflict if the content no
	// longer matches the declaration.
	Fill(ctx context.Context, child client.Object) error
	// Holds reports whether the stored child has the content. It returns true for kinds that are
	// not immutable. It must not change the child or the stored child.
	Holds(ctx context.Context, child, live client.Object) (bool, error)
}

// Forged is the error for an immutable child whose content differs from its declaration. Its data
// cannot be corrected: the child was deleted, and another client created one with the same name and
// owner. Child is the stored child.
type Forged struct {
	Kind  string
	Child client.Object
}

// Error names the child.
func (e *Forged) Error() string {
	return fmt.Sprintf("another client replaced %s %q by one with other content", e.Kind, e.Child.GetName())
}

// IsForged returns the *Forged in the error's chain, or nil.
func IsForged(err error) *Forged {
	forged, _ := errors.AsType[*Forged](err)
	return forged
}

// verify returns *Forged if the stored child does not have the content.
func (p *pass) verify(ctx context.Context, child *candidate, stored client.Object) error {
	if p.content == nil {
		return nil
	}

	holds, err := p.content.Holds(ctx, child.object, stored)
	if err == nil && !holds {
		err = &Forged{Kind: child.gvk.Kind, Child: stored}
	}
	return err
}
