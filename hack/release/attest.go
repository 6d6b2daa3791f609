package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// checkout describes the checked-out source.
type checkout struct {
	commit string
	time   time.Time
	// modified reports whether files differ from the commit.
	modified bool
}

// readCheckout returns the commit that an image is built from. The program of the receiver is the
// same since the commit that set its version.
func readCheckout(kind string) (checkout, error) {
	log := []string{"git", "log", "-1", "--format=%H %cI"}
	head, err := output("", log...)
	if err == nil && kind == receiver {
		head, err = output("", append(log, "--", receiverVersion)...)
	}
	if err != nil {
		return checkout{}, err
	}
	changes, err := output("", "git", "status", "--porcelain")
	if err != nil {
		return checkout{}, err
	}
	hash, date, _ := strings.Cut(strings.TrimSpace(head), " ")
	made, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return checkout{}, fmt.Errorf("failed to read the time of the commit: %w", err)
	}
	return checkout{commit: hash, time: made, modified: changes != ""}, nil
}

// attest creates the SBOM and the provenance of each published image. It reads the images from the
// registry, writes the documents to dist, and pushes them to the repositories of the images.
func (p *project) attest() error {
	for _, kind := range documented {
		if err := p.attestImage(kind); err != nil {
			return err
		}
	}
	return nil
}

func (p *project) attestImage(kind string) error {
	head, err := readCheckout(kind)
	if err != nil {
		return err
	}
	release, err := versionOf(kind, p.version, ".")
	if err != nil {
		return err
	}
	base, err := p.base(images[kind].dockerfile)
	if err != nil {
		return err
	}
	arguments := []string{
		"-commit=" + head.commit, "-time=" + head.time.UTC().Format(time.RFC3339), "-modified=" + strconv.FormatBool(head.modified),
		"-base=" + base, "-out=dist",
	}
	for _, parameter := range p.parameters(kind) {
		arguments = append(arguments, "-parameter="+parameter)
	}
	return execute(p.inRegistry("attest", append(arguments, p.image(kind, release))))
}

// parameters returns the parameters of the make target, as NAME=VALUE.
func (p *project) parameters(kind string) []string {
	out := []string{"target=" + kind + "-image", "CLUSTER=" + p.cluster, "PLATFORMS=" + strings.Join(p.platforms, " ")}
	if p.cluster == "external" {
		out = append(out, "IMAGE_REGISTRY="+p.registry, "NGINX_IMAGE="+p.operandImages["nginx"],
			"EXPORTER_IMAGE="+p.operandImages["nginx-prometheus-exporter"], "CATALOG_BASE="+p.catalogBase,
			"USE_IMAGE_DIGESTS="+strconv.FormatBool(p.digests))
	}
	return out
}

// inRegistry returns the command line of bin/oci. The registry of the local cluster is reachable
// only in the cluster's network, and stores images under their full names.
func (p *project) inRegistry(command string, arguments []string) []string {
	if p.cluster != "local" {
		return append([]string{"bin/oci", command}, arguments...)
	}
	inCluster := []string{"bin/cluster", "exec", "--", "sh", "-c", `exec bin/oci "$0" -registry="$IMAGE_REGISTRY" "$@"`, command}
	return append(inCluster, arguments...)
}
