package nginxconf

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

// variableTable has the variables of nginx 1.28, those that stand for a family with a "_" at the end.
//
//go:embed data/variables.txt
var variableTable string

var builtIn = strings.Fields(variableTable)

var (
	variable = regexp.MustCompile(`\$(?:\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))`)
	capture  = regexp.MustCompile(`\(\?P?[<']([A-Za-z0-9_]+)[>']`)
	digits   = regexp.MustCompile(`^[0-9]+$`)
)

// evaluated tells from which argument on the text of a directive is evaluated for certain, so that an unknown variable
// in it keeps nginx from starting.
var evaluated = map[string]int{
	"add_header": 1, "add_trailer": 1, "alias": 0, "fastcgi_cache_key": 0, "fastcgi_param": 1, "grpc_set_header": 1,
	"limit_conn_zone": 0, "limit_req_zone": 0, "log_format": 1, "proxy_cache_bypass": 0, "proxy_cache_key": 0,
	"proxy_no_cache": 0, "proxy_pass": 0, "proxy_set_header": 1, "return": 0, "root": 0, "scgi_param": 1, "set": 1,
	"try_files": 0, "uwsgi_param": 1, "fastcgi_pass": 0, "grpc_pass": 0, "hash": 0, "auth_request_set": 1, "expires": 0,
}

// checkVariables finds variables that nothing sets.
func (c *checker) checkVariables() {
	if !c.release.certain || c.unseen {
		return
	}
	set := c.variables()
	for _, d := range c.all {
		for _, text := range evaluatedTexts(d) {
			for _, found := range variable.FindAllStringSubmatch(text, -1) {
				name := found[1] + found[2]
				if !digits.MatchString(name) && !set[strings.ToLower(name)] && !isBuiltIn(strings.ToLower(name)) {
					c.refuse(d, "nothing sets the variable $%s, and nginx does not know it; correct the name, or set it with set or map", name)
				}
			}
		}
	}
}

func evaluatedTexts(d *directive) []string {
	switch d.Directive.Directive {
	case "map", "split_clients":
		texts := []string{d.arg(0)}
		for _, line := range d.Block {
			if d.Directive.Directive == "map" && !slices.Contains([]string{"hostnames", "volatile", "include"}, line.Directive) {
				texts = append(texts, line.Args...)
			}
		}
		return texts
	case "rewrite":
		return []string{d.arg(1)}
	case "if":
		// The first argument is a variable; the others may be a regular expression.
		return []string{d.arg(0)}
	}
	if from, ok := evaluated[d.Directive.Directive]; ok && from < len(d.Args) {
		return d.Args[from:]
	}
	return nil
}

// variables returns the names that the configuration itself sets.
func (c *checker) variables() map[string]bool {
	out := map[string]bool{}
	add := func(text string) { out[strings.ToLower(strings.TrimPrefix(text, "$"))] = true }
	for _, d := range c.all {
		switch d.Directive.Directive {
		case "set", "auth_request_set":
			add(d.arg(0))
		case "map", "split_clients", "geo":
			add(d.Args[len(d.Args)-1])
		}
		for _, expression := range expressions(d) {
			for _, found := range capture.FindAllStringSubmatch(expression, -1) {
				add(found[1])
			}
		}
	}
	return out
}

func isBuiltIn(name string) bool {
	return slices.ContainsFunc(builtIn, func(known string) bool {
		return name == known || strings.HasSuffix(known, "_") && strings.HasPrefix(name, known)
	})
}

// zoneUsers are the directives that use a piece of shared memory, and those that make it.
var zoneUsers = map[string]string{
	"limit_req": "limit_req_zone", "limit_conn": "limit_conn_zone", "proxy_cache": "proxy_cache_path",
	"fastcgi_cache": "fastcgi_cache_path", "uwsgi_cache": "uwsgi_cache_path", "scgi_cache": "scgi_cache_path",
}

// checkZones finds uses of a zone that nothing makes, and zones that are made twice.
func (c *checker) checkZones() {
	made := map[string]*directive{}
	for _, maker := range []string{"limit_req_zone", "limit_conn_zone", "proxy_cache_path", "fastcgi_cache_path", "uwsgi_cache_path", "scgi_cache_path"} {
		for _, d := range c.named[maker] {
			name, _, sized := strings.Cut(zoneParameter(d), ":")
			switch earlier, found := made[name]; {
			case name == "" || !sized:
				c.refuse(d, "there is no zone with a size in it; add one, for example %s", zoneExample(maker))
			case found:
				c.refuse(d, "line %d makes a zone %s already; choose another name", earlier.Line, name)
			default:
				made[name] = d
			}
		}
	}
	used := map[blockAndName]*directive{}
	for user, maker := range zoneUsers {
		for _, d := range c.named[user] {
			name := d.arg(0)
			if user == "limit_req" {
				name = zoneParameter(d)
			}
			if at := (blockAndName{d.parent, user + " " + name}); strings.HasPrefix(user, "limit_") && used[at] != nil {
				c.refuse(d, "line %d uses the zone %s in this block already; remove one of them", used[at].Line, name)
			} else {
				used[at] = d
			}
			if name == "off" && user != "limit_req" || strings.Contains(name, "$") || c.unseen {
				continue
			}
			if by, found := made[name]; !found || by.Directive.Directive != maker {
				c.refuse(d, "nothing makes the zone %s; add a %s with %s outside of all blocks", name, maker, strings.Replace(zoneExample(maker), "NAME", name, 1))
			}
		}
	}
}

func zoneParameter(d *directive) string {
	for _, arg := range d.Args {
		for _, key := range []string{"zone=", "keys_zone="} {
			if value, ok := strings.CutPrefix(arg, key); ok {
				return value
			}
		}
	}
	return ""
}

func zoneExample(maker string) string {
	if strings.HasSuffix(maker, "_cache_path") {
		return "keys_zone=NAME:10m"
	}
	return "zone=NAME:10m"
}

// checkLogFormats finds uses of a log format before it is defined, and formats that are defined twice.
func (c *checker) checkLogFormats() {
	defined := map[string]bool{"combined": true}
	for _, d := range c.all {
		switch d.Directive.Directive {
		case "log_format":
			if defined[d.arg(0)] {
				c.refuse(d, "there is a format %s already; choose another name", d.arg(0))
			}
			defined[d.arg(0)] = true
		case "access_log":
			format := d.arg(1)
			if format != "" && !strings.Contains(format, "=") && !defined[format] && !c.unseen {
				c.refuse(d, "no log_format before it defines %s; add `log_format %s '...';` outside of all blocks, above", format, format)
			}
		}
	}
}
