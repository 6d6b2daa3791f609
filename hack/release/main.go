// Command release knows what a release consists of: which releases there are, how their trees and catalogs are made, and how their images
// are built and published. The Makefile calls it in the directory of the repository.
//
//	release build          build the operator's binary for each platform
//	release plugin         build kubectl-nginx for each platform that it is for, and pack it with its krew manifest in dist/kubectl-nginx
//	release catalog        render the catalog and the upgrade graph from bundle/ and catalog/template.yaml
//	release external       copy manifests, bundle and catalog to dist/external, where they name the images in IMAGE_REGISTRY
//	release tree VERSION   check out an older release to dist/releases and print the directory; "previous" is the one before this
//	release next           make dist/next: the bundle and the catalog of this code under the next number
//	release image KIND     build and push an image of this release: operator, bundle, catalog, scorecard, examples, stranger; and its SBOM
//	release list-images    print the images that a cluster pulls for this release
//	release older-images   build and push the images of the releases before this one
//	release next-images    build and push those of dist/next
//	release exec COMMAND   run a command with the environment that the programs under test/ read
//
// CLUSTER is local or external, IMAGE_REGISTRY the registry of an external cluster. USE_IMAGE_DIGESTS=true has what it gets name images by
// digest, and NGINX_IMAGE and EXPORTER_IMAGE are the images of its operands by default, where the published ones cannot be pulled.
// PLATFORMS names what to build for, CONTAINER_TOOL the container engine; both have defaults.
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

// project is the state of the repository and the cluster that its images are for.
type project struct {
	version string
	// next is the number after this one, which only upgrade tests use.
	next string
	// older are the releases that the catalog holds, without this one, oldest first.
	older []string
	// cluster is local or external; the local one finds every image under its published name.
	cluster  string
	registry string
	// digests reports whether what an external cluster gets names images by digest.
	digests bool
	// operandImages are the images of operands that an external cluster gets by default in place of the published ones, by the name in the
	// relatedImages of the bundle.
	operandImages map[string]string
	platforms     []string
	// delivery is the directory of the manifests, the bundle and the catalog that the cluster gets.
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
	if p.registry == "" && !slices.Contains([]string{"build", "plugin", "catalog"}, command) {
		return errors.New("CLUSTER=external needs IMAGE_REGISTRY, a registry that you can push to and the cluster can pull from, " +
			"for example IMAGE_REGISTRY=quay.io/me")
	}
	switch {
	case command == "build":
		return p.build("operator", p.version, ".")
	case command == "plugin":
		return p.packPlugin()
	case command == "catalog":
		return p.renderGraph()
	case command == "external":
		return p.copyForExternal()
	case command == "tree" && argument != "":
		return p.printTree(argument)
	case command == "next":
		return p.makeNext()
	case command == "list-images":
		return p.printImages()
	case command == "image":
		return p.publishImage(argument)
	case command == "older-images":
		return p.publishOlder()
	case command == "next-images":
		return p.publishRelease(p.next, ".", nextDir)
	case command == "exec" && argument != "":
		return p.become(args[1:])
	}
	return fmt.Errorf("unknown command %q: see the comment of hack/release/main.go", args)
}

// load reads the state of the repository that this process runs in, and the environment.
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
		p.operandImages = map[string]string{}
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
	p.older, err = releasesBeside(p.version)
	return p, err
}

// releasesBeside returns the versions of the bundles in the catalog, without the current one, oldest first.
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

// become replaces this process by a command that reads the environment of the tests: same terminal, same signals, and its exit code counts.
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

// environment is what the programs under test/ are told.
func (p *project) environment(root string) []string {
	first := strings.Join(p.older[:min(1, len(p.older))], "")
	return []string{
		"REPO_ROOT=" + root, "VERSION=" + p.version, "CLUSTER=" + p.cluster, "DELIVERY=" + filepath.Join(root, p.delivery),
		"OPERATOR_IMAGE=" + p.image("operator", p.version), "BUNDLE_IMAGE=" + p.image("bundle", p.version),
		"CATALOG_IMAGE=" + p.image("catalog", p.version), "IMAGES=" + p.registry + "/" + operatorName,
		"OLDER_VERSIONS=" + strings.Join(p.older, " "), "OLDER_DELIVERIES=" + filepath.Join(root, releasesDir),
		"NEXT_VERSION=" + p.next, "NEXT_DELIVERY=" + filepath.Join(root, nextDir),
		"FIRST_VERSION=" + first, "FIRST_CATALOG_IMAGE=" + p.image("catalog", first),
	}
}

// execute shows and runs commands, until one fails, and passes on what they print.
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

// output runs a command and returns what it prints.
func output(stdin string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to run %s: %w", strings.Join(command, " "), err)
	}
	return string(out), nil
}
