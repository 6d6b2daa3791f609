package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// moveTag makes a tag refer to an image of the same repository. The tag may exist.
func (l location) moveTag(ctx context.Context, image, tag string) error {
	ref, err := l.reference(image)
	if err != nil {
		return err
	}
	to, err := name.NewTag(ref.Context().Name()+":"+tag, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("the tag %q is not valid: %w", tag, err)
	}
	found, err := l.get(ctx, image)
	if err != nil {
		return err
	}
	if err := remote.Tag(to, found, options(ctx)...); err != nil {
		return fmt.Errorf("failed to tag %s with %s: %w", image, tag, err)
	}
	fmt.Printf("%s is %s@%s\n", to, image, found.Digest)
	return nil
}
