package nginxconf

import (
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// module is a dynamic module with its directives: prefixes start those of a module in the sources of
// nginx, and match has those of any other module.
type module struct {
	name     string
	prefixes []string
	match    crossplane.MatchFunc
	// inImage reports whether each tag of the official image without "slim" has the module.
	inImage bool
}

// dynamicModules are the modules whose directives are known. Sources: crossplane's tables, and for
// brotli filter/ngx_http_brotli_filter_module.c and static/ngx_http_brotli_static_module.c of
// https://github.com/google/ngx_brotli.
var dynamicModules = []module{
	{name: "ngx_http_js_module", match: crossplane.MatchNjsLatest, inImage: true},
	{name: "ngx_http_xslt_filter_module", prefixes: []string{"xslt_", "xml_"}, inImage: true},
	{name: "ngx_http_image_filter_module", prefixes: []string{"image_filter"}, inImage: true},
	{name: "ngx_http_geoip_module", prefixes: []string{"geoip_"}, inImage: true},
	{name: "ngx_http_perl_module", prefixes: []string{"perl"}},
	{name: otelModule, match: crossplane.MatchOtelLatest},
	{name: "ngx_http_geoip2_module", match: crossplane.MatchGeoip2Latest},
	{name: "ngx_http_brotli_filter_module", match: in(brotliFilter)},
	{name: "ngx_http_brotli_static_module", match: in(brotliStatic)},
	{name: "ngx_http_headers_more_filter_module", match: crossplane.MatchHeadersMoreLatest},
	{name: "ngx_http_lua_module", match: crossplane.MatchLuaLatest},
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

// isOwn reports whether a directive is one of nginx's own that start with the module's prefixes.
func (m *module) isOwn(name string) bool {
	return slices.ContainsFunc(m.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// masksOf returns the masks of a directive of the module in or below the http context, or nil.
func (m *module) masksOf(name string) []uint {
	var masks []uint
	switch {
	case m.match != nil:
		masks, _ = m.match(name)
	case m.isOwn(name):
		masks = ownMasks(name)
	}
	if !slices.ContainsFunc(masks, func(mask uint) bool { return mask&contextAll != 0 }) {
		return nil
	}
	return masks
}

// moduleOf returns the dynamic module that has a directive, or nil.
func moduleOf(name string) *module {
	for i := range dynamicModules {
		if len(dynamicModules[i].masksOf(name)) > 0 {
			return &dynamicModules[i]
		}
	}
	return nil
}

// load sets the modules that the spec loads.
func (c *checker) load(names []string) {
	for _, name := range names {
		i := slices.IndexFunc(dynamicModules, func(m module) bool { return m.name == name })
		if i < 0 {
			c.loadsUnlisted = true
			continue
		}
		c.modules = append(c.modules, &dynamicModules[i])
	}
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
	for _, loaded := range c.modules {
		masks = append(masks, loaded.masksOf(name)...)
	}
	return masks
}

// needsLoading reports whether a directive is OpenTelemetry's, and the spec does not load its module.
func (c *checker) needsLoading(name string) bool {
	_, isOTel := crossplane.MatchOtelLatest(name)
	return isOTel && !slices.ContainsFunc(c.modules, func(loaded *module) bool { return loaded.name == otelModule })
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
