package nginxconf

import (
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/internal/defaults"
)

// module is a dynamic module with its directives.
type module struct {
	name  string
	match crossplane.MatchFunc
	// inImage reports whether each tag of the official image without "slim" has the module.
	inImage bool
}

// dynamicModules are the modules whose directives are known. Sources: crossplane's tables, and for
// brotli filter/ngx_http_brotli_filter_module.c and static/ngx_http_brotli_static_module.c of
// https://github.com/google/ngx_brotli.
var dynamicModules = []module{
	{"ngx_http_js_module", crossplane.MatchNjsLatest, true},
	{"ngx_http_xslt_filter_module", startingWith("xslt_", "xml_"), true},
	{"ngx_http_image_filter_module", startingWith("image_filter"), true},
	{"ngx_http_geoip_module", startingWith("geoip_"), true},
	{"ngx_http_perl_module", startingWith("perl"), false},
	{otelModule, crossplane.MatchOtelLatest, false},
	{"ngx_http_geoip2_module", crossplane.MatchGeoip2Latest, false},
	{"ngx_http_brotli_filter_module", in(brotliFilter), false},
	{"ngx_http_brotli_static_module", in(brotliStatic), false},
	{"ngx_http_headers_more_filter_module", crossplane.MatchHeadersMoreLatest, false},
	{"ngx_http_lua_module", crossplane.MatchLuaLatest, false},
}

// otelModule exists only as a dynamic module.
const otelModule = "ngx_otel_module"

var brotliStatic = map[string]uint{"brotli_static": contextProxied | argumentsOne}

var brotliFilter = map[string]uint{
	"brotli":            contextProxied | contextIf | argumentsFlag,
	"brotli_buffers":    contextProxied | argumentsTwo,
	"brotli_comp_level": contextProxied | argumentsOne,
	"brotli_min_length": contextProxied | argumentsOne,
	"brotli_types":      contextProxied | argumentsOneUp,
	"brotli_window":     contextProxied | argumentsOne,
}

// in returns the matcher of a table.
func in(table map[string]uint) crossplane.MatchFunc {
	return func(name string) ([]uint, bool) {
		mask, ok := table[name]
		if !ok {
			return nil, false
		}
		return []uint{mask}, true
	}
}

// startingWith returns the matcher of those of nginx's own directives that have one of the prefixes.
func startingWith(prefixes ...string) crossplane.MatchFunc {
	return func(name string) ([]uint, bool) {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return nil, false
		}
		masks := ownMasks(name)
		return masks, len(masks) > 0
	}
}

// moduleOf returns the dynamic module that has a directive of the contexts in and below http, or nil.
func moduleOf(name string) *module {
	for i := range dynamicModules {
		masks, _ := dynamicModules[i].match(name)
		if slices.ContainsFunc(masks, func(mask uint) bool { return mask&contextAll != 0 }) {
			return &dynamicModules[i]
		}
	}
	return nil
}

// loads reports whether the spec loads a module.
func (c *checker) loads(name string) bool {
	return slices.Contains(defaults.Nginx(c.spec).Modules, name)
}

// loadsUnlisted reports whether the spec loads a module whose directives are unknown.
func (c *checker) loadsUnlisted() bool {
	return slices.ContainsFunc(defaults.Nginx(c.spec).Modules, func(name string) bool {
		return !slices.ContainsFunc(dynamicModules, func(m module) bool { return m.name == name })
	})
}

// loadLines returns the directives that load modules. nginx looks for them below its prefix.
func loadLines(modules []string) string {
	var lines strings.Builder
	for _, name := range modules {
		lines.WriteString("load_module modules/" + name + ".so;\n")
	}
	return lines.String()
}

// masksOf returns the masks of a directive in all versions and in the modules that the spec loads,
// or nil if none has it.
func (c *checker) masksOf(name string) []uint {
	masks := c.release.masksOf(name)
	if found := moduleOf(name); found != nil && c.loads(found.name) {
		own, _ := found.match(name)
		masks = append(masks, own...)
	}
	return masks
}

// unknownRemedy returns the remedy for an unknown directive.
func unknownRemedy(name string) string {
	found := moduleOf(name)
	switch {
	case found == nil:
		return "Correct it, or set spec.image to an nginx that has its module, and add a dynamic one to spec.nginx.modules"
	case found.inImage:
		return "Add " + found.name + " to spec.nginx.modules"
	}
	return "Add " + found.name + " to spec.nginx.modules, and set spec.image to an nginx that has it"
}
