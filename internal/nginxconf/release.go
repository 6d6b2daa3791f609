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
	// certain tells that the image holds nothing beside what versions of nginx know. For an image that somebody has built
	// it is false: it may have modules of its own.
	certain bool
	// minor is the second number of nginx's version, 0 where the version is not known.
	minor int
}

// defaultMinor is the nginx that runs when the spec names no image: 1.28.
const defaultMinor = 28

// officialImages are the images whose content is known. Whoever copies one elsewhere may have put modules into it.
var officialImages = []string{"docker.io/library/nginx", "docker.io/nginxinc/nginx-unprivileged"}

var versionTag = regexp.MustCompile(`^1\.([0-9]{2})(\.[0-9]+)?(-(alpine|perl|otel|slim|bookworm|trixie|alpine[0-9.]+))*$`)

// newestMinor is the newest nginx of which the tables know everything.
const newestMinor = 28

// releaseOf returns what is known about an image; the empty one is the operator's default.
func releaseOf(image string) release {
	minor := defaultMinor
	if image != "" {
		minor = minorOf(image)
	}
	return release{certain: minor > 0 && minor <= newestMinor, minor: minor}
}

// minorOf returns the second number of nginx's version, 0 where the image does not tell it.
func minorOf(image string) int {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return 0
	}
	tagged, ok := named.(reference.Tagged)
	if !ok || !slices.Contains(officialImages, named.Name()) {
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

// versions are the tables of what versions of nginx know. Whether it is this image's version is for nginx to say.
var versions = []crossplane.MatchFunc{
	crossplane.MatchOssLatest, crossplane.MatchOss126, crossplane.MatchOss124, matchUndocumented,
}

// undocumented are the directives that nginx knows and its documentation, from which the tables are made, does not name.
var undocumented = []string{
	"gzip_hash", "gzip_no_buffer", "gzip_window", "http2_pool_size", "http2_streams_index_size", "max_headers", "open_file_cache_events",
	"post_action", "postpone_gzipping", "ssi_ignore_recycled_buffers", "uwsgi_string",
}

func matchUndocumented(name string) ([]uint, bool) {
	if !slices.Contains(undocumented, name) {
		return nil, false
	}
	return []uint{contextAll | argumentsAny}, true
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

// masksOf returns the contexts and numbers of arguments that a directive has in any version, nothing where none knows it.
func (r release) masksOf(name string) []uint {
	if r.certain && isLoadedModule(name) {
		return nil
	}
	var out []uint
	for _, match := range versions {
		masks, _ := match(name)
		out = append(out, masks...)
	}
	if r.certain {
		return out
	}
	for _, module := range thirdParty {
		masks, _ := module.match(name)
		out = append(out, masks...)
	}
	return out
}

// loadedModules begin the names of directives of modules that are loaded at start, in the main context.
var loadedModules = []string{"xslt_", "xml_entities", "image_filter", "geoip_", "perl"}

func isLoadedModule(name string) bool {
	return slices.ContainsFunc(loadedModules, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
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
