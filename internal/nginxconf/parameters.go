package nginxconf

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	code      = regexp.MustCompile(`^[0-9]{3}$`)
	address   = regexp.MustCompile(`^(https?://|\$scheme)`)
	errorCode = regexp.MustCompile(`^[345][0-9]{2}$`)
	otherCode = regexp.MustCompile(`^=[0-9]*$`)
)

// parameters are the parameters that follow the first ones of some directives.
var parameters = map[string]*regexp.Regexp{
	"limit_req":        regexp.MustCompile(`^(zone=.+|burst=[0-9]+|delay=[0-9]+|nodelay)$`),
	"limit_req_zone":   regexp.MustCompile(`^(zone=.+|rate=[0-9]+r/[sm]|sync)$`),
	"open_file_cache":  regexp.MustCompile(`^(off|(max|inactive)=.+)$`),
	"limit_conn_zone":  regexp.MustCompile(`^zone=.+$`),
	"proxy_cache_path": regexp.MustCompile(`^(levels|use_temp_path|keys_zone|inactive|max_size|min_free|(manager|loader|purger)(_[a-z]+)?)=.+$`),
	"server":           regexp.MustCompile(`^(weight|max_conns|max_fails|fail_timeout|service)=.+$|^(backup|down|resolve)$`),
}

// argumentRules look at the arguments of directives that people often get wrong.
var argumentRules = map[string]func(*checker, *directive){
	"add_header": (*checker).checkHeader, "add_trailer": (*checker).checkHeader,
	"allow": (*checker).checkAccess, "deny": (*checker).checkAccess,
	"auth_request_set": (*checker).checkNewVariable, "set": (*checker).checkNewVariable, "split_clients": (*checker).checkNewVariable,
	"error_page": (*checker).checkErrorPage,
	"geo":        (*checker).checkGeo,
	"if":         (*checker).checkCondition,
	"map":        (*checker).checkMap,
	"return":     (*checker).checkReturn,
}

func (c *checker) checkParameters() {
	for _, d := range c.all {
		name := d.Directive.Directive
		if rule, ok := argumentRules[name]; ok {
			rule(c, d)
		}
		pattern, ok := parameters[name]
		if !ok || d.Block != nil {
			continue
		}
		following := d.Args[1:]
		if name == "limit_req" || name == "open_file_cache" {
			following = d.Args
		}
		for _, parameter := range following {
			if !pattern.MatchString(parameter) {
				c.refuseIfKnown(d, "it has no parameter %s; correct or remove it", parameter)
			}
		}
	}
}

func (c *checker) checkHeader(d *directive) {
	if len(d.Args) == 3 && d.Args[2] != "always" {
		c.refuse(d, "after the value there can only be always, not %q; put a value with blanks into quotes", d.Args[2])
	}
}

func (c *checker) checkAccess(d *directive) {
	if value := d.arg(0); value != "all" && value != "unix:" && !isNetwork(value) {
		c.refuse(d, "%q is neither all nor an address or network such as 10.0.0.0/8", value)
	}
}

func (c *checker) checkReturn(d *directive) {
	if value := d.arg(0); !code.MatchString(value) && (len(d.Args) > 1 || !address.MatchString(value)) {
		c.refuse(d, "%q is neither a status code nor an address; write for example `return 301 https://$host$request_uri;`", value)
	}
}

// checkNewVariable looks at the name of a variable that a directive sets.
func (c *checker) checkNewVariable(d *directive) {
	name := d.arg(0)
	if slices.Contains(mapBlocks, d.Directive.Directive) {
		name = d.Args[len(d.Args)-1]
	}
	if !strings.HasPrefix(name, "$") {
		c.refuse(d, "the name of a variable begins with $; write $%s", name)
	}
}

// operators are those of a condition of three words and of two.
var operators = [2][]string{
	{"=", "!=", "~", "~*", "!~", "!~*"},
	{"-f", "!-f", "-d", "!-d", "-e", "!-e", "-x", "!-x"},
}

func (c *checker) checkCondition(d *directive) {
	switch first, isVariable := d.arg(0), strings.HasPrefix(d.arg(0), "$"); {
	case len(d.Args) == 1 && isVariable,
		len(d.Args) == 2 && slices.Contains(operators[1], first),
		len(d.Args) == 3 && isVariable && slices.Contains(operators[0], d.arg(1)):
	default:
		c.refuse(d, "a condition is ($variable), ($variable = text), ($variable ~ expression) or (-f file), with blanks around the operator")
	}
}

// checkMap finds keys that are given twice. Letter case makes no difference to nginx.
func (c *checker) checkMap(d *directive) {
	c.checkNewVariable(d)
	seen := map[string]bool{}
	for _, line := range d.Block {
		key := strings.ToLower(line.Directive)
		if strings.HasPrefix(key, "~") || key == "include" || key == "hostnames" || key == "volatile" {
			continue
		}
		if seen[key] {
			c.refuse(&directive{Directive: line}, "the map has this key already; remove one of them")
		}
		seen[key] = true
	}
}

func (c *checker) checkErrorPage(d *directive) {
	codes := d.Args[:len(d.Args)-1]
	if last := len(codes) - 1; last > 0 && otherCode.MatchString(codes[last]) {
		codes = codes[:last]
	}
	for _, value := range codes {
		if !errorCode.MatchString(value) {
			c.refuse(d, "%q is no status code from 300 to 599", value)
		}
	}
}

func (c *checker) checkGeo(d *directive) {
	c.checkNewVariable(d)
	for _, line := range d.Block {
		switch line.Directive {
		case "ranges":
			return
		case "default", "include", "proxy_recursive":
		case "delete", "proxy":
			if !isNetwork(line.Args[0]) {
				c.refuse(&directive{Directive: line}, "%q is no address or network such as 10.0.0.0/8", line.Args[0])
			}
		default:
			if !isNetwork(line.Directive) {
				c.refuse(d, "%q is no address or network such as 10.0.0.0/8", line.Directive)
			}
		}
	}
}

func isNetwork(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(text)
	return err == nil
}

// pageSize is the size of a buffer where none is given.
const pageSize = 4 << 10

// checkBuffers finds buffers for answers that do not fit each other: nginx sends from as many as busy_buffers_size says,
// and wants one more than that. It is what keeps nginx from starting when only the first buffer is made larger.
func (c *checker) checkBuffers() {
	for _, protocol := range []string{"proxy", "fastcgi", "uwsgi", "scgi"} {
		names := []string{protocol + "_buffers", protocol + "_buffer_size", protocol + "_busy_buffers_size"}
		told := map[*directive]bool{}
		for _, d := range c.all {
			if !slices.Contains(names, d.Directive.Directive) || told[d.parent] {
				continue
			}
			count, size := int64(8), int64(pageSize)
			if buffers := c.effective(d.parent, names[0]); buffers != nil {
				count, size = bytesOf(buffers.arg(0)), bytesOf(buffers.arg(1))
			}
			first := int64(pageSize)
			if given := c.effective(d.parent, names[1]); given != nil {
				first = bytesOf(given.arg(0))
			}
			busy := 2 * max(first, size)
			if given := c.effective(d.parent, names[2]); given != nil {
				busy = bytesOf(given.arg(0))
			}
			switch {
			case count < 2:
				told[d.parent] = true
				c.refuse(d, "there have to be at least 2 %s", names[0])
			case busy < max(first, size):
				told[d.parent] = true
				c.refuse(d, "%s of %dk is smaller than a buffer of %dk; make it at least as large", names[2], busy>>10, max(first, size)>>10)
			case busy > (count-1)*size:
				told[d.parent] = true
				c.refuse(d, "%d %s of %dk are too few for %s of %dk; write `%s %d %dk;` beside it", count, names[0], size>>10, names[2], busy>>10, names[0], count, max(first, size)>>10)
			}
		}
	}
}

// effective returns the directive of a name that holds in a block: its own or that of the nearest block around it.
func (c *checker) effective(block *directive, name string) *directive {
	for ; ; block = block.parent {
		if found := c.children(block, name); len(found) > 0 {
			return found[0]
		}
		if block == nil {
			return nil
		}
	}
}

// bytesOf reads a size whose form was checked; 0 where it was wrong.
func bytesOf(text string) int64 {
	factor := int64(1)
	switch {
	case strings.HasSuffix(strings.ToLower(text), "k"):
		factor = 1 << 10
	case strings.HasSuffix(strings.ToLower(text), "m"):
		factor = 1 << 20
	}
	number, err := strconv.ParseInt(strings.TrimRight(text, "kKmM"), 10, 32)
	if err != nil {
		return 0
	}
	return number * factor
}
