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

// submissionFiles packs what a pull request to each repository of community-operators adds, below
// the name of the repository: ci.yaml, the template of its catalogs, the bundle, and
// release-config.yaml.
func (p *project) submissionFiles(operator string) (map[string][]byte, error) {
	bundle, err := p.submittedBundle(operator)
	if err != nil {
		return nil, err
	}
	repositories, err := readCommunity()
	if err != nil {
		return nil, err
	}
	ours, err := readTemplate()
	if err != nil {
		return nil, err
	}
	ci := map[string]any{}
	if err := readYAML(ciConfig, &ci); err != nil {
		return nil, err
	}
	var files []packed
	for _, repository := range repositories {
		root := path.Join(repository.Name, "operators", operatorName)
		made, err := p.communityFiles(repository, root, ours, ci)
		if err != nil {
			return nil, err
		}
		files = append(files, made...)
		for _, file := range bundle {
			files = append(files, packed{path.Join(root, p.version, file.name), file.mode, file.content})
		}
	}
	archive, err := tarball(files)
	return map[string][]byte{submissionArchive: archive}, err
}

// submittedBundle returns the bundle with the images of this project by digest, and with the range
// of OpenShift versions. It has no replaces: the graph is in the template of the catalogs.
func (p *project) submittedBundle(operator string) ([]packed, error) {
	source := filepath.Join(p.delivery, "bundle")
	bundle, err := readTree(source, "")
	if err != nil {
		return nil, err
	}
	tagged := p.image("operator", p.version)
	others, err := p.othersByDigest(source)
	if err != nil {
		return nil, err
	}
	versions, err := openShiftVersions(source)
	if err != nil {
		return nil, err
	}
	for i := range bundle {
		file := &bundle[i]
		text := others.Replace(string(file.content))
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
	return bundle, nil
}

// othersByDigest returns a replacer of the tags of this project's images in a bundle by digests,
// except for the operator's.
func (p *project) othersByDigest(bundle string) (*strings.Replacer, error) {
	listed, err := bundleImages(bundle)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, image := range append(listed, p.image("scorecard", p.version)) {
		if !strings.HasPrefix(image, p.registry+"/") || image == p.image("operator", p.version) {
			continue
		}
		digest, err := p.byDigest(image)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, image, digest)
	}
	return strings.NewReplacer(pairs...), nil
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
