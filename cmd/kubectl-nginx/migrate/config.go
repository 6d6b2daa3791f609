package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// wholeFile has the parts of a complete nginx.conf.
type wholeFile struct {
	// http is the content of the http block.
	http string
	// nginx has the directives that spec.nginx can set.
	nginx v1alpha2.Nginx
	// lost lists the directives without an equivalent.
	lost []string
}

// operators are the directives of the main and events contexts that the operator sets.
var operators = []string{"user", "pid", "daemon", "master_process", "use", "multi_accept"}

// read parses a complete nginx.conf.
func read(text string) (wholeFile, error) {
	payload, err := crossplane.Parse("nginx.conf", &crossplane.ParseOptions{
		Open:       func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		SingleFile: true, ParseComments: true, SkipDirectiveContextCheck: true, SkipDirectiveArgsCheck: true,
	})
	if err == nil && len(payload.Errors) > 0 {
		err = payload.Errors[0].Error
	}
	if err != nil {
		return wholeFile{}, fmt.Errorf("failed to read nginx.conf: %w", err)
	}
	var out wholeFile
	for _, directive := range payload.Config[0].Parsed {
		switch directive.Directive {
		case "http":
			var built bytes.Buffer
			if err := crossplane.Build(&built, crossplane.Config{Parsed: directive.Block}, &crossplane.BuildOptions{Indent: 2}); err != nil {
				return wholeFile{}, fmt.Errorf("failed to write the http block: %w", err)
			}
			out.http = strings.TrimSpace(built.String()) + "\n"
		case "events":
			for _, inner := range directive.Block {
				out.main(inner)
			}
		default:
			out.main(directive)
		}
	}
	return out, nil
}

// main converts a directive of the main or events context.
func (f *wholeFile) main(directive *crossplane.Directive) {
	number := func() *int32 {
		n, err := strconv.ParseInt(strings.Join(directive.Args, ""), 10, 32)
		if err != nil {
			return nil
		}
		out := int32(n)
		return &out
	}
	switch name := directive.Directive; {
	case directive.IsComment(), slices.Contains(operators, name):
	case name == "worker_processes":
		f.nginx.WorkerProcesses = number() // nil for auto, which is the default
	case name == "worker_connections":
		f.nginx.WorkerConnections = number()
	case name == "error_log" && len(directive.Args) > 1:
		f.nginx.ErrorLogLevel = directive.Args[1]
	case name == "error_log":
	default:
		f.lost = append(f.lost, fmt.Sprintf(
			"nginx.conf, line %d: %s is outside the http block, and the operator manages that part", directive.Line, name))
	}
}

// config converts a configuration in a ConfigMap: server blocks, or a complete nginx.conf.
func (r *Result) config(name string, one mounted, manifests []*unstructured.Unstructured, namespace string) error {
	isWhole := one.at == mainFile || one.at == path.Dir(mainFile)
	at := slices.IndexFunc(manifests, func(other *unstructured.Unstructured) bool {
		return other.GetKind() == "ConfigMap" && other.GetName() == name && other.GetNamespace() == namespace
	})
	if at < 0 {
		return fmt.Errorf("it mounts ConfigMap %q at %s, which the manifests do not have. Add that ConfigMap with -f", name, one.at)
	}
	data, _, err := unstructured.NestedStringMap(manifests[at].Object, "data")
	if err != nil {
		return fmt.Errorf("failed to read ConfigMap %q: %w", name, err)
	}
	if isWhole {
		key := cmp.Or(one.subPath, path.Base(mainFile))
		if _, found := data[key]; !found {
			return fmt.Errorf("ConfigMap %q has no key %q", name, key)
		}
		for other := range data {
			if other != key && one.subPath == "" {
				r.Lost = append(r.Lost, fmt.Sprintf(
					"ConfigMap %s, key %s: if nginx.conf includes it, move it to spec.config or spec.files", name, other))
			}
		}
		return r.setWhole(data[key])
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if strings.HasSuffix(key, ".conf") && (one.subPath == "" || one.subPath == key) {
			texts = append(texts, data[key])
		}
	}
	if r.Object.Spec.Config == nil {
		r.Object.Spec.Config = &v1alpha2.Config{}
	}
	r.Object.Spec.Config.Inline += strings.Join(texts, "\n")
	return nil
}

// setWhole converts a complete nginx.conf.
func (r *Result) setWhole(text string) error {
	found, err := read(text)
	if err != nil {
		return err
	}
	r.Object.Spec.Config = &v1alpha2.Config{Inline: found.http}
	r.Lost = append(r.Lost, found.lost...)
	if found.nginx != (v1alpha2.Nginx{}) {
		r.Object.Spec.Nginx = &found.nginx
	}
	return nil
}
