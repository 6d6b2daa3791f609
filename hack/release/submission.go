package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	ciConfig          = "config/manifests/ci.yaml"
	submissionArchive = "community-operators.tar.gz"
)

// submissionFiles packs what a pull request to community-operators adds: ci.yaml, and the bundle with
// the images of this project by digest and the range of OpenShift versions. The bundle has no
// replaces, so it can be the first one there.
func (p *project) submissionFiles(operator string) (map[string][]byte, error) {
	root, source := "operators/"+operatorName, filepath.Join(p.delivery, "bundle")
	ci, err := readPacked(ciConfig, root+"/ci.yaml", 0o644)
	if err != nil {
		return nil, err
	}
	bundle, err := readTree(source, root+"/"+p.version)
	if err != nil {
		return nil, err
	}
	tagged, testsTagged := p.image("operator", p.version), p.image("scorecard", p.version)
	tests, err := p.byDigest(testsTagged)
	if err != nil {
		return nil, err
	}
	versions, err := openShiftVersions(source)
	if err != nil {
		return nil, err
	}
	for i := range bundle {
		file := &bundle[i]
		text := strings.ReplaceAll(string(file.content), testsTagged, tests)
		switch path.Base(file.name) {
		case path.Base(csvFile):
			// The files of an external cluster may have digests already.
			if !p.digests && strings.Contains(text, tagged) {
				text = strings.ReplaceAll(text, tagged, operator)
				text = strings.Replace(text, relatedImages, relatedImages+relatedOperator(operator), 1)
			}
			if !strings.Contains(text, operator) {
				return nil, fmt.Errorf("the bundle does not use %s: run `make bundle` first", tagged)
			}
		case "annotations.yaml":
			text += "\n  # The first OpenShift version with the Kubernetes version of minKubeVersion.\n" +
				"  com.redhat.openshift.versions: " + versions + "\n"
		}
		file.content = []byte(text)
	}
	archive, err := tarball(append([]packed{ci}, bundle...))
	return map[string][]byte{submissionArchive: archive}, err
}

// openShiftVersions returns the range of OpenShift versions that a bundle supports. OpenShift 4.N
// has Kubernetes 1.(N+13).
func openShiftVersions(bundle string) (string, error) {
	csv, err := readCSV(bundle)
	if err != nil {
		return "", err
	}
	oldest, err := version.ParseSemantic(csv.Spec.MinKubeVersion)
	if err != nil {
		return "", fmt.Errorf("failed to read minKubeVersion: %w", err)
	}
	return fmt.Sprintf("v4.%d", oldest.Minor()-13), nil
}
