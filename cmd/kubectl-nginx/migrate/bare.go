package migrate

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/validation"
)

// The first word of a manifest has a colon, a bracket, or is "---".
var startOfConfiguration = regexp.MustCompile(`^(?:\s|#[^\n]*\n)*[a-z][a-z0-9_]*(?:\s*[{;]|\s+[^\s:])`)

// IsConfiguration reports whether this start of a file is a configuration, not a manifest.
func IsConfiguration(start []byte) bool { return startOfConfiguration.Match(start) }

// FromFile returns an NginxOperator for a complete nginx.conf, or a file with server blocks. name is
// its name, or "" for the name of the file with a suffix. The name - is standard input.
func FromFile(file, text, name string) (Result, error) {
	if file == "-" {
		file = mainFile
	}
	whole, err := read(path.Join(path.Dir(mainFile), path.Base(file)), text, true)
	if err != nil {
		return Result{}, err
	}

	result := newResult(whole.name, "", cmp.Or(name, nameOfFile(whole.name)), nil)
	result.whole = whole
	if err := result.assemble(); err != nil {
		return Result{}, err
	}

	result.cache(whole)
	if config := result.Object.Spec.Config; config != nil {
		numbers := nginxconf.Ports(config.Inline)
		for _, number := range numbers {
			result.Object.Spec.Ports = append(result.Object.Spec.Ports, v1alpha2.Port{Name: nameOf("", number, len(numbers)), Port: number})
		}
		result.setProtocols()

		for _, warning := range validation.Warnings(&result.Object.Spec, nil) {
			if strings.HasPrefix(warning, "spec.config") {
				result.check("%s", warning)
			}
		}
	}

	result.finish()
	return result, nil
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

func nameOfFile(file string) string {
	base := strings.ToLower(strings.TrimSuffix(file, ".conf"))
	if name := strings.Trim(notInName.ReplaceAllString(base, "-"), "-") + suffix; len(utilvalidation.IsDNS1035Label(name)) == 0 {
		return name
	}
	return "nginx" + suffix
}

// content adapts the directives of a block in the http block.
func (f *wholeFile) content(block crossplane.Directives, isTop bool) crossplane.Directives {
	kept := crossplane.Directives{} // crossplane writes a nil block as a simple directive
	for _, d := range block {
		if slices.Contains([]string{"server", "location", "if", "limit_except"}, d.Directive) && d.IsBlock() {
			d.Block = f.content(d.Block, false)
		}
		if isTop && f.isBare && d.Directive == "server" && d.IsBlock() {
			f.addListen(d)
		}
		if len(d.Args) == 0 || f.adapt(d) {
			kept = append(kept, d)
		}
	}
	return kept
}

// addListen makes nginx's default explicit, which is another port without root permissions.
func (f *wholeFile) addListen(server *crossplane.Directive) {
	// An included file can have a listen.
	if slices.ContainsFunc(server.Block, func(d *crossplane.Directive) bool { return d.Directive == "listen" || d.Directive == "include" }) {
		return
	}
	f.check("%s, line %d: the server has no listen, so it gets nginx's default as root: listen 80", f.name, server.Line)
	server.Block = append(crossplane.Directives{{Directive: "listen", Line: server.Line, Args: []string{"80"}}}, server.Block...)
}

// noPath starts messages about files that are next to the configuration on its host.
const noPath = "%s: the Pods do not have this path; "

// adapt changes a directive to the operator's Pods, or returns false to omit it.
func (f *wholeFile) adapt(d *crossplane.Directive) bool {
	value := first(d)
	switch name := d.Directive; {
	case name == "include":
		return f.include(d)
	case !f.isBare:
	case strings.HasSuffix(name, "_temp_path") && !isBelow(value, temporary):
		f.lose(d, "the operator sets a directory below /tmp")
		return false
	case strings.HasSuffix(name, "_cache_path"):
		f.caches = append(f.caches, d)
	case name == "access_log" || name == "error_log":
		f.log(d)
	case name == "root" || name == "alias":
		f.root(d)
	case !path.IsAbs(value), isBelow(value, nginxconf.TLSDirectory), isBelow(value, nginxconf.FilesDirectory):
	case strings.HasSuffix(name, "ssl_certificate"), strings.HasSuffix(name, "ssl_certificate_key"):
		f.check(noPath+"reference a Secret in spec.tls, and write %s/SECRETNAME/tls.crt or tls.key", f.at(d), nginxconf.TLSDirectory)
	case name == "auth_basic_user_file", strings.Contains(name, "ssl_"):
		f.check(noPath+"add the file to spec.files, and write its path below %s", f.at(d), nginxconf.FilesDirectory)
	}
	return true
}

func (f *wholeFile) include(d *crossplane.Directive) (isKept bool) {
	switch file := first(d); {
	case file == nginxconf.MimeTypes || file == path.Base(nginxconf.MimeTypes):
		f.lose(d, "the operator includes "+nginxconf.MimeTypes)
		return false
	case f.isBare && strings.ContainsAny(file, "*?["):
		f.lose(d, "the Pods do not have these files; put their text in spec.config or in spec.files, which can be included below "+
			nginxconf.FilesDirectory)
		return false
	case !path.IsAbs(file):
		d.Args[0] = path.Join(f.directory, file)
	}
	return true
}

// Paths that a log can have in the operator's Pods, and prefixes of such paths.
var (
	logs        = []string{"off", "stderr", "/var/log/nginx/access.log", "/var/log/nginx/error.log"}
	logPrefixes = []string{"/dev/", "/proc/self/fd/", "/tmp/", "syslog:", "memory:"}
)

func (f *wholeFile) log(d *crossplane.Directive) {
	target := first(d)
	isPossible := func(prefix string) bool { return strings.HasPrefix(target, prefix) }
	if slices.Contains(logs, target) || slices.ContainsFunc(logPrefixes, isPossible) {
		return
	}

	f.check("%s: the root file system is read-only, so the result logs to the container's output", f.at(d))
	d.Args[0] = "/dev/stdout"
	if d.Directive == "error_log" {
		d.Args[0] = "/dev/stderr"
	}
}

func (f *wholeFile) root(d *crossplane.Directive) {
	switch at := first(d); {
	case at == "html" || isBelow(at, "html"):
		f.check("%s: the path is relative to a directory of the image, so the result has %s. For files of your own, set spec.content",
			f.at(d), nginxconf.ContentDirectory)
		d.Args[0] = nginxconf.ContentDirectory + strings.TrimPrefix(at, "html")
	case at != nginxconf.ContentDirectory && !isBelow(at, nginxconf.ContentDirectory):
		f.check(noPath+"mount it with spec.volumes, or set spec.content and write %s", f.at(d), nginxconf.ContentDirectory)
	}
}

var cachePlaces = []string{"/var/cache", "/cache", "/data", "/mnt", "/srv"}

// cache adds a volume for the cache paths of the file, because admission rejects them without it.
// It leaves paths elsewhere to the user, because spec.cache has only one directory.
func (r *Result) cache(f *wholeFile) {
	const size = "1Gi"
	place, directory := "", ""
	for _, d := range f.caches {
		at := path.Clean(first(d))
		if directory == "" {
			i := slices.IndexFunc(cachePlaces, func(place string) bool { return isBelow(at, place) })
			if i < 0 {
				continue
			}
			place, directory = cachePlaces[i], at
		}
		for isBelow(at, place) && directory != at && !isBelow(at, directory) {
			directory = path.Dir(directory)
		}
	}

	if directory != "" {
		r.Object.Spec.Cache = &v1alpha2.Cache{Path: directory, Size: size}
		r.check("spec.cache: the size %s for %s is an assumption. Decide on a size above the max_size of the caches, because a Pod that writes "+
			"more is evicted", size, directory)
	}
}

func isBelow(file, directory string) bool { return strings.HasPrefix(file, directory+"/") }

var lua = &crossplane.Lua{}

// http returns the http block without includes of the files, and the masks of these.
func (f *wholeFile) http(files []string) (text string, masks []string, err error) {
	block := slices.DeleteFunc(slices.Clone(f.block), func(directive *crossplane.Directive) bool {
		if directive.Directive != "include" || len(directive.Args) != 1 {
			return false
		}

		mask := directive.Args[0]
		if !path.IsAbs(mask) {
			mask = path.Join(f.directory, mask)
		}

		isOmitted := slices.ContainsFunc(files, func(file string) bool { return matches([]string{mask}, file) })
		if isOmitted {
			masks = append(masks, mask)
		}
		return isOmitted
	})

	text, err = build(block)
	return text, masks, err
}

// needsQuotes is random, so no word has it. Its space makes crossplane quote the word.
var needsQuotes = " " + rand.Text()

func build(block crossplane.Directives) (string, error) {
	if len(block) == 0 {
		return "", nil
	}

	quoteHashes(block)
	var built bytes.Buffer
	options := &crossplane.BuildOptions{Indent: 2, Builders: []crossplane.RegisterBuilder{lua.RegisterBuilder()}}
	if err := crossplane.Build(&built, crossplane.Config{Parsed: block}, options); err != nil {
		return "", fmt.Errorf("failed to write the configuration: %w", err)
	}
	return strings.TrimSpace(strings.ReplaceAll(built.String(), needsQuotes, "")) + "\n", nil
}

// quoteHashes marks the words with a leading #, of which crossplane would make comments.
func quoteHashes(block crossplane.Directives) {
	quote := func(word *string) {
		if strings.HasPrefix(*word, "#") {
			*word = needsQuotes + *word
		}
	}
	for _, d := range block {
		if !d.IsComment() {
			quote(&d.Directive)
		}
		for i := range d.Args {
			quote(&d.Args[i])
		}
		quoteHashes(d.Block)
	}
}
