package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// TestProgramSBOM checks that the SBOM of programs describes each program with its checksum and
// modules, and that it is reproducible. The program is this test.
func TestProgramSBOM(t *testing.T) {
	raw, dir := ownProgram(t), t.TempDir()
	program := filepath.Join(dir, "linux_amd64", "kubectl-nginx")
	must(t, os.Mkdir(filepath.Dir(program), 0o755))
	must(t, os.WriteFile(program, raw, 0o755))
	out := filepath.Join(dir, "kubectl-nginx.spdx.json")
	args := []string{"programs", "-commit=" + testCommit, "-time=" + commitTime, "-release=0.7.0", "-out=" + out, program}
	var texts []string
	for range 2 {
		must(t, run(t.Context(), args))
		texts = append(texts, string(readFile(t, out)))
	}
	if texts[0] != texts[1] {
		t.Error("a second run gives another document")
	}
	document := readSBOM(t, []byte(texts[0]))
	if document.DocumentName != "kubectl-nginx 0.7.0" || !strings.HasSuffix(document.DocumentNamespace, "/kubectl-nginx/0.7.0/"+testCommit) {
		t.Errorf("the document is %s, %s", document.DocumentName, document.DocumentNamespace)
	}
	described := document.Packages[0]
	if described.PackageName != "linux_amd64/kubectl-nginx" || described.PackageChecksums[0].Value != fmt.Sprintf("%x", sha256.Sum256(raw)) {
		t.Errorf("the document describes %s with %v", described.PackageName, described.PackageChecksums)
	}
	if !slices.ContainsFunc(document.Packages, func(p *spdx.Package) bool { return p.PackageName == "stdlib" }) {
		t.Error("the program has no modules")
	}
	if err := run(t.Context(), append(args[:len(args)-1], filepath.Join(dir, "kubectl-nginx.spdx.json"))); err == nil {
		t.Error("a file that is no program is described")
	}
}
