package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// releaseWorkflow returns the workflow of a release, and its text.
func releaseWorkflow(t *testing.T) (parsed workflow, text string) {
	t.Helper()
	raw, err := os.ReadFile("../../.github/workflows/release.yaml")
	must(t, err)
	must(t, yaml.Unmarshal(raw, &parsed))
	return parsed, string(raw)
}

// TestOnlyTheSigningJobHasTheKey checks that the key is readable in one job, which uses no action,
// runs nothing of the repository, and receives only the checksums.
func TestOnlyTheSigningJobHasTheKey(t *testing.T) {
	release, text := releaseWorkflow(t)
	if got := regexp.MustCompile(`secrets\.\w+`).FindAllString(text, -1); !slices.Equal(got, []string{"secrets.RELEASE_KEY"}) {
		t.Errorf("the workflow reads %v", got)
	}
	sign := release.Jobs["sign"]
	if len(sign.Steps) != 1 || sign.Steps[0].Uses != "" || sign.Environment != "signing" || len(sign.Env) > 0 {
		t.Fatalf("the signing job is %+v", sign)
	}
	want := map[string]string{"SUMS": "${{ needs.release.outputs.sums }}", "KEY": "${{ secrets.RELEASE_KEY }}"}
	if diff := cmp.Diff(want, sign.Steps[0].Env); diff != "" {
		t.Errorf("the signing job receives: %s", diff)
	}
	for name, job := range release.Jobs {
		if name != "sign" && job.Environment == sign.Environment {
			t.Errorf("job %s has the environment of the key", name)
		}
	}
}

// TestSignature runs the commands of the workflow that pass the checksums on, sign them, and verify
// the signature. Go verifies it too. A key that does not belong to cosign.pub must fail.
func TestSignature(t *testing.T) {
	release, _ := releaseWorkflow(t)
	t.Chdir(t.TempDir())
	private, key := newKey(t)
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	must(t, err)
	const sums = "00  install.yaml\n11  a b.tgz\n"
	files(t, map[string]string{
		"dist/release/" + sumsFile: sums, publicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"tools/gh": "#!/bin/sh\nif [ \"$2\" = download ]; then cp dist/release/SHA256SUMS .; else echo \"$@\" >> uploaded; fi\n",
	})
	handed := runStep(t, release, "release", map[string]string{})
	if handed["signed"] != "true" {
		t.Errorf("the release job returns %v", handed)
	}

	made := runStep(t, release, "sign", map[string]string{"SUMS": handed["sums"], "KEY": strings.TrimSpace(key)})
	signature, err := base64.StdEncoding.DecodeString(made["signature"])
	sum := sha256.Sum256([]byte(sums))
	if err != nil || !ecdsa.VerifyASN1(&private.PublicKey, sum[:], signature) {
		t.Fatalf("%v is not a signature of SHA256SUMS (%v)", made, err)
	}
	runStep(t, release, "signature", map[string]string{"SIGNATURE": made["signature"], "GITHUB_REF_NAME": "v1.0.0"})
	want(t, map[string]string{"uploaded": "release upload v1.0.0 SHA256SUMS.sig\n", sumsFile + ".sig": made["signature"]})

	_, other := newKey(t)
	forged := runStep(t, release, "sign", map[string]string{"SUMS": handed["sums"], "KEY": other})
	for name, signature := range map[string]string{"a signature with another key": forged["signature"], "no signature": ""} {
		if out, err := step(t, release, "signature", map[string]string{"SIGNATURE": signature}).CombinedOutput(); err == nil {
			t.Errorf("%s is accepted: %s", name, out)
		}
	}
	if out, err := step(t, release, "sign", map[string]string{"SUMS": handed["sums"], "KEY": ""}).CombinedOutput(); err == nil {
		t.Errorf("signing without a key succeeds: %s", out)
	}

	must(t, os.Remove(publicKey))
	if handed := runStep(t, release, "release", map[string]string{}); handed["signed"] != "" {
		t.Errorf("without a public key, the release job returns %v", handed)
	}
}

// newKey returns an ECDSA key on P-256, and its PEM form as docs/development/release-files.md
// creates it.
func newKey(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return private, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// step returns the command of the last step of a job, in the shell of GitHub's runners.
func step(t *testing.T, release workflow, job string, env map[string]string) *exec.Cmd {
	t.Helper()
	steps := release.Jobs[job].Steps
	must(t, os.WriteFile("output", nil, 0o600))
	cmd := exec.Command("bash", "-e", "-c", steps[len(steps)-1].Run)
	cmd.Env = append(os.Environ(), "GITHUB_OUTPUT=output", "PATH="+"tools:"+os.Getenv("PATH"))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	return cmd
}

// runStep runs the last step of a job, and returns its outputs.
func runStep(t *testing.T, release workflow, job string, env map[string]string) map[string]string {
	t.Helper()
	if out, err := step(t, release, job, env).CombinedOutput(); err != nil {
		t.Fatalf("job %s: %v: %s", job, err, out)
	}
	text, err := os.ReadFile("output")
	must(t, err)
	outputs := map[string]string{}
	for _, found := range regexp.MustCompile(`(?ms)^(\w+)(?:=([^\n]*)|<<END\n(.*?)\nEND)$`).FindAllStringSubmatch(string(text), -1) {
		outputs[found[1]] = found[2] + found[3]
	}
	return outputs
}
