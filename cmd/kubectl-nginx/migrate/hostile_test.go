package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// lineBreaks has the characters that end a line for some YAML parser.
var lineBreaks = []string{"\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029", "\v", "\f"}

// binding returns a name followed by a document that an attacker adds after a line break.
func binding(prefix, lineBreak string) string {
	const document = "---|kind: ClusterRoleBinding|apiVersion: rbac.authorization.k8s.io/v1|metadata: {name: evil}"
	return prefix + lineBreak + strings.ReplaceAll(document, "|", lineBreak)
}

// documents returns the documents of a YAML stream, as kubectl reads it.
func documents(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []map[string]any
	for {
		one := map[string]any{}
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		out = append(out, one)
	}
}

// TestHostileManifests verifies that no text in an attacker's manifests becomes a document, or a
// line outside of its comment.
func TestHostileManifests(t *testing.T) {
	for _, lineBreak := range lineBreaks {
		evil := binding("web", lineBreak)
		for name, manifests := range hostileManifests(evil) {
			t.Run(fmt.Sprintf("%s %q", name, lineBreak), func(t *testing.T) {
				results, err := From(manifests, "")
				if err != nil || len(results) != 1 {
					t.Fatalf("%d results, %v", len(results), err)
				}
				text, err := results[0].YAML()
				if err != nil {
					t.Fatal(err)
				}
				if got := string(text); printer.Text(got) != got {
					t.Errorf("control characters in %q", got)
				}
				comments, _, _ := strings.Cut(string(text), "\napiVersion: ")
				for line := range strings.Lines(comments) {
					if !strings.HasPrefix(line, "# ") {
						t.Errorf("line %q is no comment of\n%s", line, text)
					}
				}
				got := documents(t, text)
				if len(got) != 1 {
					t.Fatalf("%d documents in\n%s", len(got), text)
				}
				raw, err := json.Marshal(results[0].Object)
				want := map[string]any{}
				if err != nil || json.Unmarshal(raw, &want) != nil {
					t.Fatal(err)
				}
				delete(want, "status")
				delete(want["metadata"].(map[string]any), "creationTimestamp")
				if diff := cmp.Diff(want, got[0]); diff != "" {
					t.Errorf("-want +got:\n%s\nof\n%s", diff, text)
				}
			})
		}
	}
}

// hostileManifests returns manifests with a text in each field that affects the output.
func hostileManifests(evil string) map[string][]*unstructured.Unstructured {
	object := func(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
		out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
		for key, value := range fields {
			out[key] = value
		}
		return &unstructured.Unstructured{Object: out}
	}
	deployment := func(name string, pod map[string]any) *unstructured.Unstructured {
		return object("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
			"template": map[string]any{"spec": pod},
		}})
	}
	container := func(fields map[string]any) []any {
		out := map[string]any{"name": "nginx", "image": evil}
		for key, value := range fields {
			out[key] = value
		}
		return []any{out}
	}
	mounts := []any{map[string]any{"name": "v", "mountPath": htmlDirectory}}
	return map[string][]*unstructured.Unstructured{
		"name":          {deployment(evil, map[string]any{"containers": container(nil)})},
		"unknown field": {deployment("a", map[string]any{"containers": container(nil), evil: "x"})},
		"strategy": {object("apps/v1", "Deployment", "a", map[string]any{"spec": map[string]any{
			"strategy": map[string]any{"type": evil}, "template": map[string]any{"spec": map[string]any{"containers": container(nil)}},
		}})},
		"kept ConfigMap": {deployment("a", map[string]any{
			"containers": container(map[string]any{"volumeMounts": mounts}),
			"volumes":    []any{map[string]any{"name": "v", "configMap": map[string]any{"name": evil}}},
		})},
		"value of a wrong type": {deployment("a", map[string]any{"containers": container(nil), "nodeSelector": evil})},
		"environment": {deployment("a", map[string]any{"containers": container(map[string]any{
			"env": []any{map[string]any{"name": "A", "value": evil}, map[string]any{"name": evil, "value": "b"}},
		})})},
		"Secret of tsuru": {object("nginx.tsuru.io/v1alpha1", "Nginx", "a", map[string]any{"spec": map[string]any{
			"tls": []any{map[string]any{"secretName": evil}}, evil: map[string]any{evil: "x"},
		}})},
		"configuration of tsuru": {object("nginx.tsuru.io/v1alpha1", "Nginx", "a", map[string]any{"spec": map[string]any{
			"config": map[string]any{"kind": "ConfigMap", "name": evil}, "extraFiles": map[string]any{
				"name": evil, "files": map[string]any{evil: evil},
			},
		}})},
	}
}
