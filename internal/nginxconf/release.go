package nginxconf

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// release is what is known about the nginx of an image.
type release struct {
	// match returns the contexts and numbers of arguments of a directive.
	match crossplane.MatchFunc
	// certain tells that the image holds nothing beside what match knows. For an image that somebody has built it is
	// false: it may have modules of its own.
	certain bool
	// minor is the second number of nginx's version, 0 where the version is not known.
	minor int
}

// defaultMinor is the nginx that runs when the spec names no image: 1.28.
const defaultMinor = 28

// The images whose content is known: those of nginx itself and copies of them in another registry.
var officialImages = []string{"nginx", "nginx-unprivileged"}

var versionTag = regexp.MustCompile(`^1\.([0-9]{2})(\.|-|$)`)

// newIn129 are the directives that the parser knows and nginx 1.28 does not.
var newIn129 = []string{"early_hints", "ssl_certificate_compression"}

// loadedModules begin the names of directives of modules that are loaded at start, in the main context.
var loadedModules = []string{"xslt_", "xml_entities", "image_filter", "geoip_", "perl"}

// releaseOf returns what is known about an image; the empty one is the operator's default.
func releaseOf(image string) release {
	minor := defaultMinor
	if image != "" {
		minor = minorOf(image)
	}
	switch {
	case minor == 0 || minor > 28:
		return release{match: matchAny, minor: minor}
	case minor >= 27:
		return release{match: matchBuiltIn(func(name string) ([]uint, bool) {
			if slices.Contains(newIn129, name) {
				return nil, false
			}
			return crossplane.MatchOssLatest(name)
		}), certain: true, minor: minor}
	case minor >= 25:
		return release{match: matchBuiltIn(crossplane.MatchOss126), certain: true, minor: minor}
	}
	return release{match: matchBuiltIn(crossplane.MatchOss124), certain: true, minor: minor}
}

// minorOf returns the second number of nginx's version, 0 where the image does not tell it.
func minorOf(image string) int {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return 0
	}
	name := reference.Path(named)
	tagged, ok := named.(reference.Tagged)
	if !ok || !slices.Contains(officialImages, name[strings.LastIndex(name, "/")+1:]) {
		return 0
	}
	found := versionTag.FindStringSubmatch(tagged.Tag())
	if found == nil {
		return 0
	}
	minor, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return minor
}

// matchBuiltIn leaves out what is in modules that would have to be loaded.
func matchBuiltIn(match crossplane.MatchFunc) crossplane.MatchFunc {
	return func(name string) ([]uint, bool) {
		if isLoadedModule(name) {
			return nil, false
		}
		return match(name)
	}
}

func isLoadedModule(name string) bool {
	return slices.ContainsFunc(loadedModules, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// thirdParty are the modules that images of other makers have.
var thirdParty = []struct {
	name  string
	match crossplane.MatchFunc
}{
	{"njs", crossplane.MatchNjsLatest},
	{"lua", crossplane.MatchLuaLatest},
	{"headers-more", crossplane.MatchHeadersMoreLatest},
	{"geoip2", crossplane.MatchGeoip2Latest},
	{"OpenTelemetry", crossplane.MatchOtelLatest},
	{"NGINX Plus", crossplane.MatchNginxPlusLatest},
}

// matchAny knows everything that the parser knows.
func matchAny(name string) ([]uint, bool) {
	masks, known := crossplane.MatchOssLatest(name)
	for _, module := range thirdParty {
		if more, ok := module.match(name); ok {
			masks, known = append(slices.Clone(masks), more...), true
		}
	}
	return masks, known
}

// moduleOf names the module that a directive belongs to, "" where none is known.
func moduleOf(name string) string {
	if isLoadedModule(name) {
		return strings.TrimSuffix(strings.SplitAfter(name, "_")[0], "_")
	}
	for _, module := range thirdParty {
		if _, ok := module.match(name); ok {
			return module.name
		}
	}
	return ""
}

// lexOptions makes the parser read blocks of Lua where the image may know them.
func (r release) lexOptions() crossplane.LexOptions {
	if r.certain {
		return crossplane.LexOptions{}
	}
	return crossplane.LexOptions{Lexers: []crossplane.RegisterLexer{(&crossplane.Lua{}).RegisterLexer()}}
}
