package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	provenanceType = "https://slsa.dev/provenance/v1"
	// buildType is the URL of the documentation of the build parameters. builderID identifies the
	// program that ran the build.
	buildType = source + "/blob/main/docs/development.md#sbom-and-provenance"
	builderID = source + "/tree/main/hack/release"
)

// newProvenance returns the provenance of an image as JSON: commit, base image, build parameters,
// and Go version. It is not signed, so it is only as trustworthy as the person who pushed it.
func newProvenance(of image, b build) ([]byte, error) {
	parameters, err := structpb.NewStruct(b.parameters)
	if err != nil {
		return nil, fmt.Errorf("failed to encode the parameters of the build: %w", err)
	}
	dependencies, err := dependencies(of, b)
	if err != nil {
		return nil, err
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters, ResolvedDependencies: dependencies,
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builderID, Version: toolchain(of)}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("the provenance is not valid: %w", err)
	}
	raw, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, fmt.Errorf("failed to encode the provenance: %w", err)
	}
	content := &structpb.Struct{}
	if err := protojson.Unmarshal(raw, content); err != nil {
		return nil, fmt.Errorf("failed to encode the provenance: %w", err)
	}
	return encodeStatement(&intoto.Statement{
		Type:          intoto.StatementTypeUri,
		Subject:       []*intoto.ResourceDescriptor{{Name: of.repository(), Digest: map[string]string{"sha256": of.descriptor.Digest.Hex}}},
		PredicateType: provenanceType,
		Predicate:     content,
	})
}

// dependencies returns the source and the base image of the build, by digest.
func dependencies(of image, b build) ([]*intoto.ResourceDescriptor, error) {
	commit := &intoto.ResourceDescriptor{Uri: "git+" + source, Digest: map[string]string{"gitCommit": b.commit}}
	out := []*intoto.ResourceDescriptor{commit}
	if b.modified {
		var err error
		if commit.Annotations, err = structpb.NewStruct(map[string]any{"modified": true}); err != nil {
			return nil, fmt.Errorf("failed to encode an annotation: %w", err)
		}
	}
	if of.base != nil {
		out = append(out, &intoto.ResourceDescriptor{
			Uri: ociURL(of.base.tag, of.base.digest, ""), Digest: map[string]string{"sha256": of.base.digest.Hex},
		})
	}
	return out, nil
}

// toolchain returns the version of Go that built the programs of this repository.
func toolchain(of image) map[string]string {
	for _, v := range of.variants {
		for _, l := range v.layers[v.fromBase:] {
			for _, p := range l.programs {
				return map[string]string{"go": strings.TrimPrefix(p.info.GoVersion, "go")}
			}
		}
	}
	return nil
}

// encodeStatement returns a statement as JSON. protojson varies its whitespace between builds.
// Indenting the JSON again makes the output reproducible.
func encodeStatement(statement *intoto.Statement) ([]byte, error) {
	invalid := statement.Validate()
	raw, err := protojson.Marshal(statement)
	if err := cmp.Or(invalid, err); err != nil {
		return nil, fmt.Errorf("failed to encode the statement: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("failed to encode the statement: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
