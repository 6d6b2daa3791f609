package migrate

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
)

var outsideHTTP = map[string]string{
	"user":                    "nginx runs as the user of the image, or as that of spec.securityContext.runAsUser",
	"pid":                     operators,
	"daemon":                  operators,
	"master_process":          operators,
	"lock_file":               operators,
	"worker_shutdown_timeout": "the operator sets it; see spec.drainSeconds",
	"include":                 "the Pods do not have it; use spec.nginx.modules for modules, and spec.nginx.main for other directives",
	"stream":                  onlyHTTP,
	"mail":                    onlyHTTP,
}

type wholeFile struct {
	// notes are about the directives that change or have no equivalent.
	notes

	// directory resolves relative includes, and name is the name of the file in messages.
	directory, name string
	// isBare is true if nothing is known of the files and volumes next to the file.
	isBare bool
	// block is the content of the http block, and main and events are that of their contexts.
	block, main, events crossplane.Directives
	// nginx has the directives that are fields of spec.nginx. env are the env directives.
	nginx v1alpha2.Nginx
	env   crossplane.Directives
	// caches are the cache paths, with their parameters.
	caches crossplane.Directives
}

func read(file, text string, isBare bool) (*wholeFile, error) {
	whole := &wholeFile{directory: path.Dir(file), name: path.Base(file), isBare: isBare}

	// The limits of this parser protect crossplane, which reads nested blocks by recursion.
	if problem := nginxconf.Syntax(text); problem != nil {
		return nil, fmt.Errorf("failed to read %s: %s", whole.name, problem)
	}

	payload, err := crossplane.Parse(whole.name, &crossplane.ParseOptions{
		Open:       func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		SingleFile: true, ParseComments: true, SkipDirectiveContextCheck: true, SkipDirectiveArgsCheck: true,
		LexOptions: crossplane.LexOptions{Lexers: []crossplane.RegisterLexer{lua.RegisterLexer()}},
	})
	if err == nil && len(payload.Errors) > 0 {
		err = payload.Errors[0].Error
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", whole.name, err)
	}

	if err := whole.split(payload.Config[0].Parsed); err != nil {
		return nil, err
	}
	return whole, nil
}

// split assigns the directives of the file to their contexts. nginx requires an events block in a
// complete file, so a file without these blocks is the content of the http block.
func (f *wholeFile) split(all crossplane.Directives) error {
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(d *crossplane.Directive) bool { return d.Directive == name && d.IsBlock() })
	}
	switch {
	case f.isBare && !has("http") && !has("server"):
		return fmt.Errorf("%s has neither an http block nor a server block. Use the file that has it, or manifests with apiVersion and kind",
			f.name)
	case !slices.ContainsFunc([]string{"http", "events", "stream", "mail"}, has):
		f.block = f.content(all, true)
		return nil
	}

	for _, d := range all {
		switch d.Directive {
		case "http":
			f.block = append(f.block, f.content(d.Block, true)...)
		case "events":
			for _, inner := range d.Block {
				f.outside(inner, &f.events)
			}
		default:
			f.outside(d, &f.main)
		}
	}
	return nil
}

func (f *wholeFile) outside(d *crossplane.Directive, kept *crossplane.Directives) {
	advice, isDropped := outsideHTTP[d.Directive]
	switch {
	case d.IsComment():
	case isDropped:
		f.lose(d, advice)
	case d.IsBlock():
		f.lose(d, "no field supports this block")
	case d.Directive == "worker_processes":
		f.nginx.WorkerProcesses = f.number(d, 1, 1024)
	case d.Directive == "worker_connections":
		f.nginx.WorkerConnections = f.number(d, 64, 65535)
	case d.Directive == "error_log" && len(d.Args) > 0:
		f.errorLog(d)
	case d.Directive == "load_module":
		f.module(d)
	case d.Directive == "env":
		f.env = append(f.env, d)
	default:
		*kept = append(*kept, d)
	}
}

// number returns the number of a directive, or nil for auto, which is the default.
func (f *wholeFile) number(d *crossplane.Directive, least, most int64) *int32 {
	number, err := strconv.ParseInt(first(d), 10, 32)
	switch {
	case first(d) == "auto":
		return nil
	case err != nil || number < least || number > most:
		f.lose(d, fmt.Sprintf("the field of spec.nginx requires a number between %d and %d", least, most))
		return nil
	}
	return ptr.To(int32(number))
}

// errorLog converts the level of an error_log. nginx's default is error.
func (f *wholeFile) errorLog(d *crossplane.Directive) {
	level := "error"
	if len(d.Args) > 1 {
		level = d.Args[1]
	}
	if !slices.Contains(defaults.ErrorLogLevels, level) {
		f.lose(d, "the level is not valid; set spec.nginx.errorLogLevel")
		return
	}

	f.nginx.ErrorLogLevel = level
	if !slices.Contains([]string{"stderr", "/dev/stderr"}, first(d)) {
		f.lose(d, "the operator logs to the container's output, with the level in spec.nginx.errorLogLevel")
	}
}

const maxModules = 16

var moduleName = regexp.MustCompile(`^[a-z0-9_]{1,100}$`)

func (f *wholeFile) module(d *crossplane.Directive) {
	name := strings.TrimSuffix(path.Base(first(d)), ".so")
	switch {
	case !moduleName.MatchString(name) || len(f.nginx.Modules) == maxModules:
		f.lose(d, fmt.Sprintf("spec.nginx.modules has at most %d modules, with names of lower-case letters, digits, and underscores", maxModules))
	case !slices.Contains(f.nginx.Modules, name):
		f.nginx.Modules = append(f.nginx.Modules, name)
	}
}

func (r *Result) outside(f *wholeFile) (err error) {
	spec, tuning := &r.Object.Spec, f.nginx
	if tuning.Main, err = build(f.main); err != nil {
		return err
	}
	if tuning.Events, err = build(f.events); err != nil {
		return err
	}

	spec.Nginx = unlessEmpty(tuning)
	if len(tuning.Modules) > 0 && spec.Image == "" {
		f.check("spec.nginx.modules: nginx does not start if its image lacks %s. The default image has few modules, so set spec.image to an "+
			"image that has them, or remove the modules", strings.Join(tuning.Modules, ", "))
	}

	for _, d := range f.env {
		name, value, hasValue := strings.Cut(first(d), "=")
		at := slices.IndexFunc(spec.Env, func(variable v1alpha2.EnvVar) bool { return variable.Name == name })
		switch variable := (v1alpha2.EnvVar{Name: name, Value: value}); {
		case at < 0 && hasValue:
			spec.Env = append(spec.Env, variable)
		case at < 0:
			f.lose(d, "set the value of the variable in spec.env")
		case hasValue:
			spec.Env[at] = variable
		}
	}

	r.Lost, r.Check = append(r.Lost, f.Lost...), append(r.Check, f.Check...)
	return nil
}

func first(d *crossplane.Directive) string {
	if len(d.Args) == 0 {
		return ""
	}
	return d.Args[0]
}

// at returns the place and the text of a directive, for the start of a message.
func (f *wholeFile) at(d *crossplane.Directive) string {
	const most = 100
	text := strings.Join(append([]string{d.Directive}, d.Args...), " ")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return fmt.Sprintf("%s, line %d: %s", f.name, d.Line, text)
}

func (f *wholeFile) lose(d *crossplane.Directive, why string) {
	f.Lost = append(f.Lost, f.at(d)+": "+why)
}
