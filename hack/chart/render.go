package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/example/nginx-operator/hack/kustomize"
)

// components are the optional parts of config/ that values add to the installation.
var components = []string{"monitoring", "network-policy", "components/own-webhooks"}

// render returns the objects of config/default with the components.
func render(repository string) ([]*resource.Resource, error) {
	rendered, err := kustomize.Render(filepath.Join(repository, "config"),
		types.Kustomization{Resources: []string{"default"}, Components: components})
	if err != nil {
		return nil, err
	}
	return rendered.Resources(), nil
}

// defaults are the parts of config/ that the static files contain. A field of the type string that
// ends in a newline is YAML.
type defaults struct {
	// Version and KubeVersion have no leading v.
	Version, KubeVersion string
	// Repository is the operator's image without its tag.
	Repository, PullPolicy    string
	NginxImage, ExporterImage string
	RequestMetricsImage       string
	Replicas                  string
	Resources, Affinity       string
	// Ports are the numbers of the ports of the operator's container, by name.
	Ports map[string]string
	// Selector selects the namespaces whose Pods reach the metrics.
	Selector string
	// Table is the table of all values.
	Table string
}

// readDefaults reads the defaults of the chart from the objects and from the base of the
// ClusterServiceVersion.
func readDefaults(repository string, objects []*resource.Resource) (values defaults, err error) {
	version, err := os.ReadFile(filepath.Join(repository, "VERSION")) //nolint:gosec // of this repository
	if err != nil {
		return values, fmt.Errorf("failed to read the version: %w", err)
	}
	values.Version = strings.TrimSpace(string(version))
	base := filepath.Join(repository, "config", "manifests", "bases", "nginx-operator.clusterserviceversion.yaml")
	csv, err := kyaml.ReadFile(base)
	if err != nil {
		return values, fmt.Errorf("failed to read the ClusterServiceVersion: %w", err)
	}

	var errs []error
	read := func(node *kyaml.RNode, path ...string) string {
		found, err := node.Pipe(kyaml.Lookup(path...))
		if err == nil && found == nil {
			err = errors.New("it does not exist")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("failed to read %s: %w", strings.Join(path, "."), err))
			return ""
		}
		text, err := found.String()
		if found.YNode().Kind == kyaml.ScalarNode {
			text = found.YNode().Value
		}
		errs = append(errs, err)
		return text
	}
	values.KubeVersion = read(csv, "spec", "minKubeVersion")
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			pod := func(path ...string) string {
				return read(&object.RNode, append([]string{"spec", "template", "spec"}, path...)...)
			}
			values.Replicas, values.Affinity = read(&object.RNode, "spec", "replicas"), pod("affinity")
			image := pod("containers", manager, "image")
			values.Repository = strings.TrimSuffix(image, ":v"+values.Version)
			if values.Repository == image {
				errs = append(errs, fmt.Errorf("the image %s does not have the tag v%s: run `make manifests`", image, values.Version))
			}
			values.PullPolicy, values.Resources = pod("containers", manager, "imagePullPolicy"), pod("containers", manager, "resources")
			values.NginxImage = pod("containers", manager, "env", "[name=RELATED_IMAGE_NGINX]", "value")
			values.ExporterImage = pod("containers", manager, "env", "[name=RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER]", "value")
			values.RequestMetricsImage = pod("containers", manager, "env", "[name=RELATED_IMAGE_NGINX_REQUEST_METRICS]", "value")
			values.Ports = map[string]string{}
			for _, name := range portNames {
				values.Ports[name] = pod("containers", manager, "ports", "[name="+name+"]", "containerPort")
			}
		case "NetworkPolicy":
			values.Selector = read(&object.RNode, metricsSelector...)
		}
	}
	return values, errors.Join(errs...)
}

// Indent returns YAML as the value of a key in values.yaml. Its lines are indented by spaces.
func (defaults) Indent(spaces int, text string) string {
	prefix := "\n" + strings.Repeat(" ", spaces)
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", prefix)
}
