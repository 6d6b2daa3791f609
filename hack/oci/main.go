// Command oci performs the registry operations of a release other than pushing images.
//
//	oci digest [-registry REGISTRY] IMAGE...
//
// prints the digest of each image, as sha256:HEX.
//
//	oci referrers [-registry REGISTRY] IMAGE
//
// prints the type and digest of each artifact that refers to an image, one per line.
//
//	oci tag [-registry REGISTRY] IMAGE TAG
//
// makes a tag of the image's repository refer to the image, with all its platforms.
//
//	oci attest [-registry REGISTRY] -commit COMMIT -time TIME [-modified] [-base IMAGE] \
//		-parameter NAME=VALUE... -out DIR IMAGE
//
// describes an image that was just pushed. It writes two documents:
//
//   - DIR/sbom/NAME.spdx.json is the SBOM, an SPDX 2.3 document.
//   - DIR/provenance/NAME.intoto.json is the provenance, an unsigned in-toto Statement v1 with the
//     predicate SLSA provenance v1.
//
// It also pushes both to the image's repository, as artifacts whose subject is the image's digest.
// The same image of the same commit always gets the same documents.
//
//	oci programs -commit COMMIT -time TIME -release RELEASE -out FILE PROGRAM...
//
// writes the SBOM of Go programs that are not in an image to FILE. The programs are named by their
// last two path elements.
//
// It is a separate module, so that the operator's module does not include its dependencies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "oci:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("a command is missing: digest, referrers, tag, programs or attest")
	}
	command := args[0]
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	var where location
	flags.StringVar((*string)(&where), "registry", "", "the `registry` that keeps images under their full names; else that of each name")
	b := build{parameters: map[string]any{}}
	switch command {
	case "digest", "referrers", "tag":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		switch command {
		case "digest":
			return printDigests(ctx, where, flags.Args())
		case "tag":
			return where.moveTag(ctx, flags.Arg(0), flags.Arg(1))
		}
		return printReferrers(ctx, where, flags.Arg(0))
	case "programs":
		return describePrograms(flags, b, args[1:])
	case "attest":
		b.addFlags(flags)
		flags.BoolVar(&b.modified, "modified", false, "files differed from the commit")
		base := flags.String("base", "", "the `image` that the last stage of the Dockerfile is from; none for scratch")
		flags.Func("parameter", "what the build was asked for, as `NAME=VALUE`; may be repeated", func(text string) error {
			key, value, _ := strings.Cut(text, "=")
			b.parameters[key] = value
			return nil
		})
		out := flags.String("out", "", "the `directory` for the documents")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if flags.NArg() != 1 || b.commit == "" || b.time.IsZero() || len(b.parameters) == 0 || *out == "" {
			return errors.New("attest needs -commit, -time, -parameter, -out and one image")
		}
		return attest(ctx, where, flags.Arg(0), *base, b, *out)
	}
	return fmt.Errorf("unknown command %q: digest, referrers, tag, programs or attest", command)
}

// addFlags adds the flags of the commit that was built.
func (b *build) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&b.commit, "commit", "", "the `commit` that was built")
	flags.Func("time", "the `time` of the commit, RFC 3339", func(text string) (err error) {
		b.time, err = time.Parse(time.RFC3339, text)
		return err
	})
}

func printDigests(ctx context.Context, where location, images []string) error {
	for _, image := range images {
		digest, err := where.digest(ctx, image)
		if err != nil {
			return err
		}
		fmt.Println(digest)
	}
	return nil
}

func printReferrers(ctx context.Context, where location, image string) error {
	found, err := where.referrers(ctx, image)
	if err != nil {
		return err
	}
	for _, artifact := range found {
		fmt.Println(artifact.ArtifactType, artifact.Digest)
	}
	return nil
}

// attest writes and pushes the SBOM and the provenance of an image.
func attest(ctx context.Context, where location, tagged, base string, b build, out string) error {
	tag, err := name.NewTag(tagged, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("failed to read the name of the image: %w", err)
	}
	described, err := where.read(ctx, tag, base)
	if err != nil {
		return err
	}
	sbom, err := encodeSBOM(newSBOM(described, b))
	if err != nil {
		return err
	}
	provenance, err := newProvenance(described, b)
	if err != nil {
		return err
	}
	for _, document := range []struct {
		path, mediaType string
		content         []byte
	}{
		{"sbom/" + described.short() + ".spdx.json", spdxMediaType, sbom},
		{"provenance/" + described.short() + ".intoto.json", inTotoMediaType, provenance},
	} {
		file := filepath.Join(out, document.path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("failed to make the directory of %s: %w", file, err)
		}
		if err := os.WriteFile(file, document.content, 0o644); err != nil {
			return fmt.Errorf("failed to write the document: %w", err)
		}
		digest, err := where.attach(ctx, described, filepath.Base(file), document.mediaType, document.content)
		if err != nil {
			return err
		}
		fmt.Printf("%s, pushed as %s@%s\n", file, described.repository(), digest)
	}
	return nil
}
