package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const (
	csvFile           = "manifests/" + operatorName + ".clusterserviceversion.yaml"
	kustomizationFile = "config/manager/kustomization.yaml"
	relatedImages     = "\n  relatedImages:\n"
	disconnected      = "features.operators.openshift.io/disconnected: "
	// noDigest is the digest of the operator's image in the chart's values.
	noDigest = "\n  digest: \"\"\n"
)

// relatedImage is an entry of the bundle's relatedImages, which mirroring tools read.
type relatedImage struct{ Name, Image string }

// clusterServiceVersion contains fields of a ClusterServiceVersion.
type clusterServiceVersion struct {
	Spec struct {
		MinKubeVersion string
		RelatedImages  []relatedImage
		Install        struct {
			Spec struct {
				Deployments []struct{ Spec appsv1.DeploymentSpec }
			}
		}
	}
}

func readCSV(bundle string) (csv clusterServiceVersion, err error) {
	text, err := os.ReadFile(filepath.Join(bundle, csvFile))
	if err == nil {
		err = yaml.Unmarshal(text, &csv)
	}
	if err != nil {
		return csv, fmt.Errorf("failed to read the ClusterServiceVersion: %w", err)
	}
	return csv, nil
}

// operandVariables maps the variables that override operand images to the names in the bundle's
// relatedImages.
var operandVariables = map[string]string{"NGINX_IMAGE": "nginx", "EXPORTER_IMAGE": "nginx-prometheus-exporter"}

// useOperandImages replaces the published operand images in all files of a directory.
func (p *project) useOperandImages(dir string) error {
	csv, err := readCSV(filepath.Join(dir, "bundle"))
	if err != nil {
		return err
	}
	for name, image := range p.operandImages {
		at := slices.IndexFunc(csv.Spec.RelatedImages, func(related relatedImage) bool { return related.Name == name })
		if at < 0 {
			return fmt.Errorf("relatedImages of the bundle has no %s", name)
		}
		if err := replace(csv.Spec.RelatedImages[at].Image, image, dir); err != nil {
			return err
		}
	}
	return nil
}

// bundleImages returns the images in the ClusterServiceVersion of a bundle: the container images of
// its Deployments, their RELATED_IMAGE_* variables, and relatedImages. The list is sorted and has
// no duplicates.
func bundleImages(dir string) ([]string, error) {
	csv, err := readCSV(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, related := range csv.Spec.RelatedImages {
		out = append(out, related.Image)
	}
	for _, deployment := range csv.Spec.Install.Spec.Deployments {
		pod := deployment.Spec.Template.Spec
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			out = append(out, container.Image)
			for _, variable := range container.Env {
				if strings.HasPrefix(variable.Name, "RELATED_IMAGE_") {
					out = append(out, variable.Value)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// pulled returns the images that a cluster pulls for this release: the catalog, the bundle, and the
// images in the bundle.
func (p *project) pulled() ([]string, error) {
	images, err := bundleImages(filepath.Join(p.delivery, "bundle"))
	if err != nil {
		return nil, err
	}
	bundle, err := p.bundleName()
	return append([]string{p.image("catalog", p.version), bundle}, images...), err
}

// printImages prints the images that a cluster pulls for this release, one per line.
func (p *project) printImages() error {
	images, err := p.pulled()
	if err == nil {
		fmt.Println(strings.Join(images, "\n"))
	}
	return err
}

// bundleName returns the name of the bundle's image in the catalog.
func (p *project) bundleName() (string, error) {
	if !p.digests {
		return p.image("bundle", p.version), nil
	}
	return p.byDigest(p.image("bundle", p.version))
}

// byDigest returns the name of a pushed image with the current digest of its tag.
func (p *project) byDigest(image string) (string, error) {
	if strings.Contains(image, "@") {
		return image, nil
	}
	digest, err := output("", p.inRegistry("digest", []string{image})...)
	if err != nil {
		return "", err
	}
	digest = strings.TrimSpace(digest)
	if !strings.HasPrefix(digest, "sha256:") {
		return "", fmt.Errorf("the registry has the digest %q for %s: push the image again", digest, image)
	}
	repository, err := untagged(image)
	return repository + "@" + digest, err
}

// untagged returns the name of an image without its tag.
func untagged(image string) (string, error) {
	colon := strings.LastIndex(image, ":")
	if colon <= strings.LastIndex(image, "/") {
		return "", fmt.Errorf("the image %q has no tag", image)
	}
	return image[:colon], nil
}

// nameImagesByDigest replaces tags by digests in the bundle and the manifests of a directory. It
// also sets the annotation for disconnected clusters, which requires digests.
func (p *project) nameImagesByDigest(dir string) error {
	bundle := filepath.Join(dir, "bundle")
	tagged, err := bundleImages(bundle)
	if err != nil {
		return err
	}
	byDigest := map[string]string{}
	for _, image := range tagged {
		byDigest[image], err = p.byDigest(image)
		if err == nil {
			err = replace(image, byDigest[image], bundle, filepath.Join(dir, "config"), filepath.Join(dir, "charts"))
		}
		if err != nil {
			return err
		}
	}
	operator := byDigest[p.image("operator", p.version)]
	repository, digest, _ := strings.Cut(operator, "@")
	return errors.Join(
		editOnce(filepath.Join(bundle, csvFile), relatedImages, relatedImages+relatedOperator(operator)),
		editOnce(filepath.Join(bundle, csvFile), disconnected+`"false"`, disconnected+`"true"`),
		editOnce(filepath.Join(dir, kustomizationFile),
			"newName: "+repository+"\n  newTag: v"+p.version, "newName: "+repository+"\n  digest: "+digest),
		editOnce(filepath.Join(dir, chartDir, "values.yaml"), noDigest, "\n  digest: "+digest+"\n"),
	)
}

// relatedOperator returns the operator's image as the first entry of the bundle's relatedImages.
func relatedOperator(operator string) string {
	return "  - image: " + operator + "\n    name: " + operatorName + "\n"
}

// nameBundleByDigest renders the catalog for an external cluster again, with the digest of the
// bundle that is now in the registry. Older releases do not change.
func (p *project) nameBundleByDigest() error {
	bundle, err := p.bundleName()
	if err != nil {
		return err
	}
	text, err := template()
	if err != nil {
		return err
	}
	return renderCatalog(p.delivery, bundle, p.version, text)
}

// editOnce replaces text in a file.
func editOnce(file, old, text string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("failed to read: %w", err)
	}
	edited, err := replaceOnce(string(content), old, text)
	if err != nil {
		return fmt.Errorf("failed to edit %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(edited), 0o644)
}

// replaceOnce returns an error unless the content has the old text exactly once.
func replaceOnce(content, old, text string) (string, error) {
	if n := strings.Count(content, old); n != 1 {
		return "", fmt.Errorf("it has %q %d times and not once", old, n)
	}
	return strings.Replace(content, old, text, 1), nil
}
