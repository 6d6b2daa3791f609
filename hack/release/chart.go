package main

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const chartDir = "charts/" + operatorName

// digestValue matches the digest of the operator's image in the chart's values.
var digestValue = regexp.MustCompile(`(?m)^(image:\n(?:(?:  .*)?\n)*?  digest:)[^\n#]*`)

// chartFiles packs the Helm chart as `helm package` does. The image of the operator has its digest in
// image.digest of the values.
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
			if len(digestValue.FindAllString(text, -1)) != 1 {
				return nil, fmt.Errorf("%s/values.yaml has no image.digest for the digest of the operator", chartDir)
			}
			file.content = []byte(digestValue.ReplaceAllString(text, "$1 "+digest))
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
