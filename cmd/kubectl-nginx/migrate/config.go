package migrate

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// wholeFile is what is in a complete nginx.conf.
type wholeFile struct {
	// http is what stands in the http block.
	http string
	// nginx is what spec.nginx says of the rest.
	nginx v1alpha2.Nginx
	// lost are the directives that have no place.
	lost []string
}

// operators are directives of the main and events contexts that are the operator's own.
var operators = []string{"user", "pid", "daemon", "master_process", "use", "multi_accept"}

// read takes a complete nginx.conf apart.
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

// main reads a directive of the main or events context.
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
		f.nginx.WorkerProcesses = number() // auto is what follows where it is not given
	case name == "worker_connections":
		f.nginx.WorkerConnections = number()
	case name == "error_log" && len(directive.Args) > 1:
		f.nginx.ErrorLogLevel = directive.Args[1]
	case name == "error_log":
	default:
		f.lost = append(f.lost, fmt.Sprintf(
			"nginx.conf, line %d: %s stands outside of the http block, which is the operator's", directive.Line, name))
	}
}
