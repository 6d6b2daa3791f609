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
	// minor is the second number of nginx's version, or 0 if it is unknown, and patch the third, or
	// unknownPatch. The tag 1.30 may mean any 1.30.
	minor, patch int
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
	switch {
	case slices.Contains(officialImages, repository):
		r := versionIn(versionTag, tag)
		r.certain = r.minor > 0 && (r.minor <= stableMinor || r.minor == mainlineMinor && r.patch != unknownPatch && r.patch <= mainlinePatch)
		return r
	case strings.Contains(path.Base(repository), "nginx"):
		r := versionIn(versionStart, tag)
		r.guessed = r.minor > 0
		return r
	}

	return release{patch: unknownPatch}
}

// versionIn returns the version in a tag. The form matches its numbers as digits.
func versionIn(form *regexp.Regexp, tag string) release {
	r := release{patch: unknownPatch}
	if numbers := form.FindStringSubmatch(tag); numbers != nil {
		r.minor, _ = strconv.Atoi(numbers[1])
		if patch, err := strconv.Atoi(numbers[2]); err == nil {
			r.patch = patch
		}
	}
	return r
}

// versions are the tables of nginx's versions. nginx itself checks whether its own version has a
// directive.
var versions = []crossplane.MatchFunc{
	crossplane.MatchOssLatest, crossplane.MatchOss126, crossplane.MatchOss124, matchNewer,
}

// undocumented are directives that nginx has and its documentation, the source of the tables,
// omits.
var undocumented = []string{
	"gzip_hash", "gzip_no_buffer", "gzip_window", "http2_pool_size", "http2_streams_index_size", "open_file_cache_events",
	"post_action", "postpone_gzipping", "ssi_ignore_recycled_buffers", "uwsgi_string",
}

// masksOf returns the masks of a directive in all versions, or nil if no version has it.
func (r release) masksOf(name string) []uint {
	if r.certain && slices.ContainsFunc(dynamicModules, func(m module) bool { return m.isOwn(name) }) {
		return nil // the module must be loaded
	}

	all := ownMasks(name)
	if r.certain {
		return all
	}

	// The images of other vendors can have these compiled in.
	masks, _ := crossplane.MatchNginxPlusLatest(name)
	all = append(all, masks...)
	for i := range dynamicModules {
		if match := dynamicModules[i].match; match != nil {
			masks, _ := match(name)
			all = append(all, masks...)
		}
	}
	return all
}

// ownMasks returns the masks of a directive in the sources of nginx.
func ownMasks(name string) []uint {
	var all []uint
	for _, match := range versions {
		masks, _ := match(name)
		all = append(all, masks...)
	}
	if slices.Contains(undocumented, name) {
		all = append(all, contextAll|argumentsAny)
	}
	return all
}

// IsDirective reports whether a name is a directive of nginx. The status of an object may repeat
// such a name, because the name contains no text of the user.
func IsDirective(name string) bool { return len(release{certain: true}.masksOf(name)) > 0 }
