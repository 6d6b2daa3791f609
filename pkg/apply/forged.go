package apply

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
// owner.
type Forged struct {
	// Kind is the kind of the child.
	Kind string
	// Child is the stored child.
	Child client.Object
}

// Error names the child.
func (e *Forged) Error() string {
	return fmt.Sprintf("%s %q was replaced by one with other content", e.Kind, e.Child.GetName())
}

// IsForged returns the *Forged in the error's chain, or nil.
func IsForged(err error) *Forged {
	var forged *Forged
	if errors.As(err, &forged) {
		return forged
	}
	return nil
}

// verify returns *Forged if the stored child does not have the content.
func verify(ctx context.Context, content Content, gvk schema.GroupVersionKind, child, live client.Object) error {
	if content == nil {
		return nil
	}
	holds, err := content.Holds(ctx, child, live)
	if err == nil && !holds {
		err = &Forged{Kind: gvk.Kind, Child: live}
	}
	return err
}
