package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/nginxconf"
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
				wantOneDocument(t, only(t, strings.ReplaceAll(manifest, "EVIL", evil)))
			})
		}
		t.Run(fmt.Sprintf("file %q", lineBreak), func(t *testing.T) {
			plain := strings.ReplaceAll(binding, "|", lineBreak)
			text := strings.ReplaceAll(hostileFile, "EVIL", plain)
			for _, file := range []string{"a.conf", plain} {
				result, err := FromFile(file, text, "")
				if err != nil {
					t.Fatal(err)
				}
				wantOneDocument(t, result)
			}
		})
	}
}

// hostileFile is a configuration with a text in each word that affects the output.
const hostileFile = `user "EVIL"; load_module "EVIL"; env "EVIL"; env "A=EVIL"; error_log "EVIL" "EVIL";
worker_processes "EVIL"; "EVIL" "EVIL";
events { "EVIL" "EVIL"; use "EVIL"; }
http {
  include "EVIL"; include "*EVIL"; root "EVIL"; access_log "EVIL"; proxy_cache_path "EVIL"; proxy_cache_path "/srv/EVIL";
  server { listen "EVIL"; "EVIL" "EVIL"; ssl_certificate "/EVIL"; }
}
`

// wantOneDocument verifies that a result is printed as comments and one document.
func wantOneDocument(t *testing.T, result Result) {
	t.Helper()
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
}

// TestHostileFilesAreBounded verifies that configurations of the maximum size take little time and
// output.
func TestHostileFilesAreBounded(t *testing.T) {
	const most = nginxconf.MaxBytes
	for name, text := range map[string]string{
		"blocks":      "http {" + strings.Repeat("server {", 30) + strings.Repeat("}", 31),
		"directives":  "http { server { listen 80; } }" + strings.Repeat("user a;", 49_000),
		"one word":    "http { server { listen 80; } } user " + strings.Repeat("a", 4_000) + ";",
		"words":       "http { server { listen 80; " + strings.Repeat("a ", 190_000) + "; } }",
		"ranges":      strings.Repeat("server { listen 1-65535; listen 127.0.0.1:1-65535; }", 16_000),
		"caches":      "server { listen 80; }" + strings.Repeat("proxy_cache_path /data/a/b/c/d/e/f a;", 25_000),
		"variables":   "http { server { listen 80; } }" + strings.Repeat("env A=b;", 40_000),
		"comments":    "server { listen 80; }" + strings.Repeat("#\n", (most-100)/2),
		"modules":     "http { server { listen 80; } }" + strings.Repeat("load_module a.so;", 49_000),
		"the longest": "server { listen 80; }" + strings.Repeat(" ", most-21),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			result, err := FromFile("a.conf", text, "")
			if err != nil {
				t.Fatal(err)
			}
			printed, err := result.YAML()
			if err != nil || len(printed) > 8*most {
				t.Errorf("%d bytes, %v", len(printed), err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// FuzzFromFile verifies that each text is either an error or one document.
func FuzzFromFile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.conf")
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of testdata
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(hostileFile)
	f.Add("server { listen 80; set $a '#'; if ($a ~ \"\\.b{2}\") { return 200 'a\\'b'; } }")
	f.Fuzz(func(t *testing.T, text string) {
		result, err := FromFile("a.conf", text, "")
		if err != nil {
			return
		}
		wantOneDocument(t, result)
	})
}
