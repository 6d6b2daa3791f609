package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

const chartDir = "charts/" + operatorName

// chartFiles packs the Helm chart as `helm package` does. The image of the operator has its digest
// in image.digest of the values.
func (p *project) chartFiles(operator string) (map[string][]byte, error) {
	files, err := readTree(chartDir, operatorName)
	if err != nil {
		return nil, err
	}
	repository, digest, _ := strings.Cut(operator, "@")
	for i := range files {
		file := &files[i]
		switch file.name {
		case operatorName + "/values.yaml":
			published := publishedRegistry + "/" + operatorName
			text := strings.ReplaceAll(string(file.content), "repository: "+published+"\n", "repository: "+repository+"\n")
			text, err := replaceOnce(text, noDigest, "\n  digest: "+digest+"\n")
			if err != nil {
				return nil, fmt.Errorf("failed to set the digest in %s/values.yaml: %w", chartDir, err)
			}
			file.content = []byte(text)
		case operatorName + "/Chart.yaml":
			var chart struct{ Version string }
			if err := yaml.Unmarshal(file.content, &chart); err != nil {
				return nil, fmt.Errorf("failed to read %s/Chart.yaml: %w", chartDir, err)
			}
			if chart.Version != p.version {
				return nil, fmt.Errorf("%s/Chart.yaml has version %q: set it to %s", chartDir, chart.Version, p.version)
			}
		}
	}
	archive, err := tarball(files)
	return map[string][]byte{operatorName + "-" + p.version + ".tgz": archive}, err
}
