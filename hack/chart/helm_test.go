package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const repository = "../.."

// versions are the programs of the versions of Helm that the chart supports.
var versions = []string{"helm", "helm4"}

// helm runs a version of Helm, and returns its output. It writes nothing into the user's
// directories.
func helm(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(repository, "bin", program))
	must(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: `make bin/%s` builds it", err, filepath.Base(program))
	}
	cmd := exec.CommandContext(t.Context(), program, args...) //nolint:gosec // a tool of this repository
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = errors.New(err.Error() + ": " + stderr.String() + string(out))
	}
	return string(out), err
}

// rendered renders the chart with values, which are YAML, in the namespace of config/default.
func rendered(t *testing.T, program, values string) []client.Object {
	t.Helper()
	out, err := templated(t, program, values)
	must(t, err)
	return decoded(t, out)
}

func templated(t *testing.T, program, values string) (string, error) {
	t.Helper()
	return helm(t, program, "template", "nginx-operator", filepath.Join(repository, chartDir),
		"--namespace", configNamespace, "--kube-version", "1.37.0", "--values", valuesFile(t, values))
}

// valuesFile writes values to a file and returns its name.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	must(t, os.WriteFile(file, []byte(values), 0o600))
	return file
}

// decoded decodes objects strictly: an unknown kind or field, or a duplicate key, ends the test.
func decoded(t *testing.T, text string) []client.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, monitoringv1.AddToScheme} {
		must(t, add(scheme))
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var out []client.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v:\n%.300s", err, document)
		}
		out = append(out, object.(client.Object))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// find returns the only object of a type with a name.
func find[T client.Object](t *testing.T, objects []client.Object, name string) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if typed, ok := object.(T); ok && object.GetName() == name {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d objects %s of this type", len(found), name)
	}
	return found[0]
}
