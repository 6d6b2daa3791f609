package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// hostileManifests are manifests with a text in each field that affects the output.
var hostileManifests = map[string]string{
	"name":                  strings.Replace(deployment("", "image: EVIL"), "{name: a}", "{name: EVIL}", 1),
	"unknown field":         deployment("EVIL: x, ", "image: EVIL"),
	"strategy":              deployment("", "image: EVIL") + "  strategy: {type: EVIL}\n",
	"value of a wrong type": deployment("nodeSelector: EVIL, ", "image: EVIL"),
	"environment":           deployment("", "image: EVIL, env: [{name: A, value: EVIL}, {name: EVIL, value: b}]"),
	"kept ConfigMap": deployment("volumes: [{name: v, configMap: {name: EVIL}}], ",
		"image: EVIL, volumeMounts: [{name: v, mountPath: /usr/share/nginx/html}]"),
	"Secret of tsuru": tsuru("tls: [{secretName: EVIL}], EVIL: {EVIL: x}"),
	"files of tsuru":  tsuru("config: {kind: ConfigMap, name: EVIL}, extraFiles: {name: EVIL, files: {EVIL: EVIL}}"),
}

// TestHostileManifests verifies that no text in an attacker's manifests becomes a document, or a
// line outside of its comment, with any character that ends a line for some YAML parser.
func TestHostileManifests(t *testing.T) {
	for _, lineBreak := range []string{"\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029", "\v", "\f"} {
		const binding = "web|---|kind: ClusterRoleBinding|apiVersion: rbac.authorization.k8s.io/v1|metadata: {name: evil}"
		evil := strconv.QuoteToASCII(strings.ReplaceAll(binding, "|", lineBreak))
		for name, manifest := range hostileManifests {
			t.Run(fmt.Sprintf("%s %q", name, lineBreak), func(t *testing.T) {
				result := only(t, strings.ReplaceAll(manifest, "EVIL", evil))
				text, err := result.YAML()
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

				decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096) // as kubectl reads it
				var want, got, next map[string]any
				if err := decoder.Decode(&got); err != nil {
					t.Fatalf("%v in\n%s", err, text)
				}
				if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
					t.Errorf("another document (%v) %v in\n%s", err, next, text)
				}
				raw, err := json.Marshal(result.Object)
				if err != nil || json.Unmarshal(raw, &want) != nil {
					t.Fatal(err)
				}
				delete(want, "status")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s\nof\n%s", diff, text)
				}
			})
		}
	}
}
