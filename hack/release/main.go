// Command release builds and publishes the artifacts of a release. It knows which releases exist,
// how to create their trees and catalogs, and how to build and publish their images. The Makefile
// runs it in the root of the repository.
//
//	release build          build the operator's binary for each platform
//	release plugin         build and pack kubectl-nginx and its krew manifest in
//	                       dist/kubectl-nginx
//	release catalog        render the catalog and the upgrade graph from bundle/ and
//	                       catalog/template.yaml
//	release preflight      compare the CRDs of each upgrade to this release as OLM v1 does
//	release external       copy manifests, bundle, and catalog to dist/external, with images in
//	                       IMAGE_REGISTRY
//	release tree VERSION   check out an older release to dist/releases and print its directory;
//	                       "published" is the newest one, and "previous" the one that this
//	                       release replaces in the catalog
//	release next           create dist/next: the bundle and catalog of this code under the next
//	                       version
//	release image KIND     build and push an image of this release: operator, bundle, catalog,
//	                       scorecard, request-metrics, examples, or stranger
//	release attest         create and push the SBOM and the provenance of each published image
//	release list-images    print the images that a cluster pulls for this release
//	release latest         move the tag latest of the catalog to this release
//	release submission     render the catalogs of community-operators with this release to
//	                       dist/submission, and validate them
//	release older-images [VERSION...]
//	                       check out all older releases, and build and push the images of
//	                       some or all of them
//	release next-images    build and push the images of dist/next
//	release files [DIR]    write the files of the release's page to DIR (dist/release), after
//	                       "release attest"
//	release exec COMMAND   run a command with the environment that the programs below test/ read
//
// Environment variables:
//
//   - CLUSTER is local (the default) or external.
//   - IMAGE_REGISTRY is the registry of an external cluster.
//   - USE_IMAGE_DIGESTS=true references images by digest in the files for an external cluster.
//   - NGINX_IMAGE and EXPORTER_IMAGE replace the default operand images, for an external cluster
//     that cannot pull the published images.
//   - CATALOG_BASE replaces the base of the catalog's image, for a build that cannot pull the pinned
//     one. It needs a tag, and can have a digest.
//   - PLATFORMS lists the platforms to build for. The default is the platform of this machine for
//     the local cluster, and linux/amd64 and linux/arm64 for an external cluster.
//   - PLUGIN_PLATFORMS lists the platforms of the kubectl plugin. The default is all of them, which a
//     published release has.
//   - CONTAINER_TOOL is the container engine. The default is the first engine that works.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	operatorName      = "nginx-operator"
	publishedRegistry = "ghcr.io/example"
	externalDir       = "dist/external"
	releasesDir       = "dist/releases"
	nextDir           = "dist/next"
	bundlesDir        = "catalog/" + operatorName + "/bundles"
)

// project describes the repository and the cluster for which its images are built.
type project struct {
	version string
	// next is the next patch version. Only upgrade tests use it.
	next string
	// older lists the other releases in the catalog, oldest first.
	older []string
	// cluster is local or external. The local cluster finds every image under its published name.
	cluster  string
	registry string
	// digests reports whether the files for an external cluster reference images by digest.
	digests bool
	// operandImages replace the published operand images for an external cluster. The keys are
	// names in the bundle's relatedImages.
	operandImages map[string]string
	// catalogBase replaces the base of the catalog's image for an external cluster.
	catalogBase string
	platforms   []string
	// pluginPlatforms are the platforms of the kubectl plugin.
	pluginPlatforms []string
	// delivery is the directory of the manifests, bundle, and catalog for the cluster.
	delivery string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	p, err := load()
	if err != nil {
		return err
	}
	padded := slices.Concat(args, []string{"", ""})
	command, argument := padded[0], padded[1]
	if p.registry == "" && !slices.Contains([]string{"build", "plugin", "catalog", "preflight", "submission"}, command) {
		return errors.New("CLUSTER=external needs IMAGE_REGISTRY, a registry that you can push to and the cluster can pull from, " +
			"for example IMAGE_REGISTRY=quay.io/me")
	}
	plain := map[string]func() error{
		"build":  func() error { return p.build("operator", p.version, ".") },
		"plugin": p.packPlugin, "catalog": p.renderGraph, "preflight": p.preflight, "submission": p.validateSubmission,
		"external": p.copyForExternal, "next": p.makeNext, "list-images": p.printImages, "attest": p.attest, "latest": p.moveLatest,
		"next-images": func() error { return p.publishRelease(p.next, ".", nextDir) },
	}
	if run, known := plain[command]; known {
		return run()
	}
	switch {
	case command == "tree" && argument != "":
		return p.printTree(argument)
	case command == "image":
		return p.publishImage(argument)
	case command == "older-images":
		return p.publishOlder(args[1:])
	case command == "files":
		return p.packRelease(cmp.Or(argument, releaseDir))
	case command == "exec" && argument != "":
		return p.become(args[1:])
	}
	return fmt.Errorf("unknown command %q: see the comment of hack/release/main.go", args)
}

// load reads the repository in the working directory and the environment variables.
func load() (*project, error) {
	text, err := os.ReadFile("VERSION")
	if err != nil {
		return nil, fmt.Errorf("failed to read the version: %w", err)
	}
	current, err := version.ParseSemantic(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("failed to read the version: %w", err)
	}
	p := &project{
		version: current.String(), next: current.WithPatch(current.Patch() + 1).String(),
		cluster: cmp.Or(os.Getenv("CLUSTER"), "local"), registry: publishedRegistry, delivery: ".",
	}
	platforms := "linux/" + runtime.GOARCH
	switch p.cluster {
	case "local":
	case "external":
		p.operandImages, p.catalogBase = map[string]string{}, os.Getenv("CATALOG_BASE")
		for variable, name := range operandVariables {
			if image := os.Getenv(variable); image != "" {
				p.operandImages[name] = image
			}
		}
		p.registry, p.delivery, platforms = os.Getenv("IMAGE_REGISTRY"), externalDir, "linux/amd64 linux/arm64"
	default:
		return nil, fmt.Errorf("CLUSTER is local or external, not %q", p.cluster)
	}
	switch text := os.Getenv("USE_IMAGE_DIGESTS"); {
	case text == "true" && p.cluster == "external":
		p.digests = true
	case text == "true":
		return nil, errors.New("USE_IMAGE_DIGESTS=true needs CLUSTER=external: what the local cluster gets is this tree, which names tags")
	case text != "" && text != "false":
		return nil, fmt.Errorf("USE_IMAGE_DIGESTS is true or false, not %q", text)
	}
	p.platforms = strings.Fields(cmp.Or(os.Getenv("PLATFORMS"), platforms))
	p.pluginPlatforms = strings.Fields(cmp.Or(os.Getenv("PLUGIN_PLATFORMS"), strings.Join(pluginPlatforms, " ")))
	p.older, err = releasesBeside(p.version)
	return p, err
}

// releasesBeside returns the versions of the other bundles in the catalog, oldest first.
func releasesBeside(current string) ([]string, error) {
	files, err := filepath.Glob(bundlesDir + "/v*.yaml")
	if err != nil {
		return nil, fmt.Errorf("failed to list %s: %w", bundlesDir, err)
	}
	var older []string
	for _, file := range files {
		release := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "v"), ".yaml")
		if _, err := version.ParseSemantic(release); err != nil {
			return nil, fmt.Errorf("failed to read the version of %s: %w", file, err)
		}
		if release != current {
			older = append(older, release)
		}
	}
	slices.SortFunc(older, func(a, b string) int {
		order, _ := version.MustParseSemantic(a).Compare(b)
		return order
	})
	return older, nil
}

// become replaces this process with a command that reads the environment of the tests. The command
// keeps the terminal, receives the signals, and determines the exit code.
func (p *project) become(command []string) error {
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("failed to find the repository: %w", err)
	}
	env, err := exec.LookPath("env")
	if err != nil {
		return fmt.Errorf("failed to set the environment: %w", err)
	}
	return syscall.Exec(env, slices.Concat([]string{"env"}, p.environment(root), command), os.Environ())
}

// environment returns the environment variables for the programs below test/.
func (p *project) environment(root string) []string {
	return []string{
		"REPO_ROOT=" + root, "VERSION=" + p.version, "CLUSTER=" + p.cluster, "DELIVERY=" + filepath.Join(root, p.delivery),
		"OPERATOR_IMAGE=" + p.image("operator", p.version), "BUNDLE_IMAGE=" + p.image("bundle", p.version),
		"CATALOG_IMAGE=" + p.image("catalog", p.version), "IMAGES=" + p.registry + "/" + operatorName,
		"OLDER_VERSIONS=" + strings.Join(p.older, " "), "OLDER_DELIVERIES=" + filepath.Join(root, releasesDir),
		"NEXT_VERSION=" + p.next, "NEXT_DELIVERY=" + filepath.Join(root, nextDir),
	}
}

// execute prints and runs commands until one fails. It passes their output through.
func execute(commands ...[]string) error {
	for _, command := range commands {
		fmt.Println(strings.Join(command, " "))
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("failed to run %s: %w", command[0], err)
		}
	}
	return nil
}

// output runs a command and returns its standard output.
func output(stdin string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to run %s: %w", strings.Join(command, " "), err)
	}
	return string(out), nil
}
