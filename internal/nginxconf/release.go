package nginxconf

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/internal/images"
)

// release describes the nginx in an image, as far as the name and the tag of the image show it.
type release struct {
	// certain reports whether the image has only the directives of nginx itself. It is false for
	// images of other vendors, which can have other modules.
	certain bool
	// minor is the second number of nginx's version, or 0 if the version is unknown.
	minor int
	// patch is the third number of nginx's version, or unknownPatch. The tag 1.30 may mean any
	// 1.30.
	patch int
	// guessed reports whether the version comes from the tag of another vendor's image, whose nginx
	// can have additional fixes.
	guessed bool
}

const (
	// defaultMinor and defaultPatch are the version of the default nginx, 1.30.7.
	defaultMinor, defaultPatch = 30, 7
	// stableMinor is the version of the newest stable nginx. Only mainline gets new directives, so
	// the tables have all directives of stable.
	stableMinor = 30
	// mainlineMinor and mainlinePatch are the version of the newest mainline nginx whose directives
	// are in the tables.
	mainlineMinor, mainlinePatch = 31, 4
	// unknownPatch is the patch level of an image if its tag has none.
	unknownPatch = -1
)

// officialImages are the images with known content. Copies in other registries can have other
// modules.
var officialImages = []string{images.Nginx, images.Unprivileged}

var (
	versionTag = regexp.MustCompile(`^1\.([0-9]{2})(?:\.([0-9]{1,4}))?(?:-(?:alpine|perl|otel|slim|bookworm|trixie|alpine[0-9.]+))*$`)
	// versionStart matches the tags of other vendors' images that start with nginx's version.
	versionStart = regexp.MustCompile(`^v?1\.([0-9]{1,2})(?:\.([0-9]{1,4}))?(?:[^0-9]|$)`)
)

// releaseOf returns the release of an image. The empty image is the operator's default.
func releaseOf(image string) release {
	if image == "" {
		return release{certain: true, minor: defaultMinor, patch: defaultPatch}
	}

	repository, tag := images.Parse(image)
	if tag == "" {
		return release{patch: unknownPatch}
	}

	if !slices.Contains(officialImages, repository) {
		if !strings.Contains(path.Base(repository), "nginx") {
			return release{patch: unknownPatch}
		}
		r := versionIn(versionStart, tag)
		r.guessed = r.minor > 0
		return r
	}

	r := versionIn(versionTag, tag)
	r.certain = r.minor > 0 && (r.minor <= stableMinor || r.minor == mainlineMinor && r.patch != unknownPatch && r.patch <= mainlinePatch)
	return r
}

// versionIn returns the version in a tag.
func versionIn(form *regexp.Regexp, tag string) release {
	found := form.FindStringSubmatch(tag)
	if found == nil {
		return release{patch: unknownPatch}
	}
	r := release{patch: unknownPatch}
	r.minor, _ = strconv.Atoi(found[1]) // the pattern matches digits only
	if found[2] != "" {
		r.patch, _ = strconv.Atoi(found[2])
	}
	return r
}

// versions are the tables of nginx's versions. nginx itself checks whether its own version has a
// directive.
var versions = []crossplane.MatchFunc{
	crossplane.MatchOssLatest, crossplane.MatchOss126, crossplane.MatchOss124, matchNewer, matchUndocumented,
}

// undocumented are directives that nginx has and its documentation, the source of the tables,
// omits.
var undocumented = []string{
	"gzip_hash", "gzip_no_buffer", "gzip_window", "http2_pool_size", "http2_streams_index_size", "open_file_cache_events",
	"post_action", "postpone_gzipping", "ssi_ignore_recycled_buffers", "uwsgi_string",
}

func matchUndocumented(name string) ([]uint, bool) {
	if !slices.Contains(undocumented, name) {
		return nil, false
	}
	return []uint{contextAll | argumentsAny}, true
}

// thirdParty are the tables of modules in other vendors' images.
var thirdParty = []crossplane.MatchFunc{
	crossplane.MatchNjsLatest, crossplane.MatchLuaLatest, crossplane.MatchHeadersMoreLatest, crossplane.MatchGeoip2Latest,
	crossplane.MatchOtelLatest, crossplane.MatchNginxPlusLatest,
}

// masksOf returns the masks of a directive in all versions, or nil if no version has it.
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

	for _, match := range thirdParty {
		masks, _ := match(name)
		out = append(out, masks...)
	}
	return out
}

// loadedModules are name prefixes of directives whose modules must be loaded in the main context.
var loadedModules = []string{"xslt_", "xml_", "image_filter", "geoip_", "perl"}

func isLoadedModule(name string) bool {
	return slices.ContainsFunc(loadedModules, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
