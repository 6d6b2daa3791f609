package nginxconf

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// valued returns a case with literals, which are given as names and values. A value "" is from a
// ConfigMap, as admission sees it.
func valued(text string, pairs ...string) checked {
	config := &v1alpha2.Config{}
	for pair := range slices.Chunk(pairs, 2) {
		value := v1alpha2.ConfigValue{Name: pair[0], Value: pair[1]}
		if pair[1] == "" {
			ref := &v1alpha2.SecretFileReference{Name: "environment", Key: strings.ToLower(pair[0])}
			value.ValueFrom = &v1alpha2.ConfigValueSource{ConfigMapKeyRef: ref}
		}
		config.Values = append(config.Values, value)
	}
	return checked{spec: v1alpha2.NginxOperatorSpec{Config: config}, text: text}
}

// resolving returns a case with spec.nginx.resolver.
func resolving(text string) checked {
	return checked{spec: v1alpha2.NginxOperatorSpec{Nginx: &v1alpha2.Nginx{Resolver: &v1alpha2.Resolver{}}}, text: text}
}

// valueCases are texts with values, and with a resolver of the spec.
func valueCases() map[string]checked {
	inEnv := valued(inServer("return 200 ${TENANT};"))
	inEnv.spec.Env = []v1alpha2.EnvVar{{Name: "TENANT", Value: "a"}}
	included := resolving("include /etc/nginx/files/a.conf;\n" + inServer())
	included.spec.Files = []v1alpha2.File{{Path: "a.conf", ConfigMapRef: &v1alpha2.FileReference{Name: "shop", Key: "a"}}}
	included.texts = map[string]string{"a.conf": "resolver 10.0.0.10;"}
	return map[string]checked{
		"values": valued("upstream api { server ${HOST}:${PORT}; }\n"+
			inServer("location / { proxy_pass http://api; }", `location /v { return 200 "${TENANT}"; }`),
			"HOST", "192.0.2.1", "PORT", "8080", "TENANT", "Acme Inc"),
		"unknown values": valued("server { listen ${ADDRESS}:${PORT}; }\nserver { listen ${PORT}; server_name ${HOST};\n"+
			"location / { proxy_pass http://${BACKEND}$request_uri; } access_log ${LOG}; ssl_certificate /etc/nginx/tls/${CERT}/tls.crt;\n"+
			"client_max_body_size ${MAX_BODY}; gzip ${GZIP}; auth_basic_user_file /etc/nginx/files/${USERS}; }",
			"ADDRESS", "", "PORT", "", "HOST", "", "BACKEND", "", "LOG", "", "CERT", "", "MAX_BODY", "", "USERS", "", "GZIP", ""),
		"error next to an unknown value": valued(inServer("client_max_body_sizee ${MAX_BODY};", "client_max_body_size ${MAX_BODY} 1;"),
			"MAX_BODY", ""),
		"literal with a space":     valued(inServer("client_max_body_size ${MAX_BODY};"), "MAX_BODY", "2 m"),
		"literal with a semicolon": valued(inServer("", "client_max_body_size ${MAX_BODY};"), "MAX_BODY", "5m; return 500"),
		"literals of one word":     valued(inServer("return 200 ${A}${B}${A};"), "A", "a", "B", ";"),
		"literal is a comment":     valued(inServer("server_name ${A} b;"), "A", "#"),
		"literal closes a quote":   valued(inServer(`return 200 "${A}";`), "A", `" x "`),
		"literal escapes a quote": valued(inServer(`set $a "${A}";`, "deny all;", `set $b "${B}";`),
			"A", `\`, "B", `; deny all; set $b "x`),
		"literal of another port": valued("server { listen ${PORT}; }", "PORT", "9090"),
		"literal is a directive":  valued(inServer("${A} on;"), "A", "gzip"),
		"value is a directive":    valued(inServer("${A} on;", "include /etc/nginx/${A};", "map a $b {\n${A} 1; }"), "A", ""),
		"value in code":           valued(inServer("content_by_lua_block { ngx.say(\"${A}\") }", "set_by_lua $a '${A}';"), "A", "x"),
		"names that the text defines": valued("map $host $tenant { }\n"+inServer("set $Server_Name a;", "location ~ ^/(?<part>.*)$ { }"),
			"TENANT", "a", "SERVER_NAME", "b", "PART", "c"),
		"source of a map":               valued("map ${HOST} $b { default ${HOST}; }\n"+inServer(), "HOST", "$host"),
		"names that are mistakes":       valued(inServer("return 200 $TENANT-${TENENT};"), "TENANT", "a"),
		"names of variables":            valued(inServer("set $CAPITAL a;", "return 200 ${CAPITAL}${host}$HOSTS;", "# ${COMMENT}"), "HOST", "a"),
		"name of an environment":        inEnv,
		"syntax error next to a value":  valued(inServer("gzip ${A}"), "A", "on"),
		"resolver twice":                resolving(inHTTP("resolver 10.0.0.10;")),
		"resolver twice, in a file":     included,
		"resolver of a server":          resolving(inServer("resolver 10.0.0.10;")),
		"host with spec.nginx.resolver": resolving(inServer("set $b app;", "location / { proxy_pass http://$b; }")),
	}
}

// TestExpand verifies that values are replaced once, also in comments and in each key, and that the
// size is bounded before the text is built.
func TestExpand(t *testing.T) {
	values := Values{"A": {Text: "${B}"}, "B": {Text: "b"}, "UNKNOWN": {}}
	spec := &v1alpha2.NginxOperatorSpec{}
	got, problems, _ := Servers{{"a", "# ${A}\nset $x ${A}${B};"}, {"b", "return ${UNKNOWN} ${OTHER} $B ${b};"}}.Expand(spec, values)
	want := Servers{{"a", "# ${B}\nset $x ${B}b;"}, {"b", "return ${UNKNOWN} ${OTHER} $B ${b};"}}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v (-want +got):\n%s", problems, diff)
	}

	_, problems, _ = Servers{{"a", "a;"}, {"b", "a;\nreturn ${A} b;\nb;"}}.Expand(spec, Values{"A": {Text: "secret word", Foreign: true}})
	if len(problems) != 1 || problems[0].Key != "b" || problems[0].Line != 2 || strings.Contains(problems[0].Message, "secret") {
		t.Errorf("problems %v", problems)
	}

	large := Whole(strings.Repeat("a ${A};", 5000))
	if got, problems, _ := large.Expand(spec, Values{"A": {Text: strings.Repeat("a", MaxValue)}}); got != nil || len(problems) != 1 {
		t.Errorf("problems %v, %d bytes", problems, got.Size())
	}
	if got, problems, _ := large.Expand(spec, Values{"A": {Text: strings.Repeat("a", 100)}}); got.Size() != 5000*(100+3) || len(problems) > 0 {
		t.Errorf("problems %v, %d bytes", problems, got.Size())
	}
}

// TestExpandKeepsStructure verifies with random values that an expanded text has the directives and
// the number of words of the text.
func TestExpandKeepsStructure(t *testing.T) {
	words := []string{"${A}", `"${A}"`, `'${B}'`, "x${A}y", `\${B}`, `"\"${A}${B}"`, "${A}${B}", "(${B})", "x", "# ${A} ${B}\n"}
	const alphabet = `aaaaaaaaaaaa "';{}\#()$` + "\t"
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- a reproducible test
	accepted := 0
	for range 20_000 {
		text, values := "", Values{}
		for range 1 + random.IntN(6) {
			text += "a " + words[random.IntN(len(words))] + []string{"", " "}[random.IntN(2)] + []string{"; ", ";", "{ }", "{};"}[random.IntN(3)]
		}
		for _, name := range []string{"A", "B"} {
			var value strings.Builder
			for range 1 + random.IntN(3) {
				value.WriteByte(alphabet[random.IntN(len(alphabet))])
			}
			values[name] = Value{Text: value.String()}
		}
		servers := Whole(text)
		expanded, problems, _ := servers.Expand(&v1alpha2.NginxOperatorSpec{}, values)
		if len(problems) > 0 {
			continue
		}
		accepted++
		before, _ := parse(servers[0].Text)
		after, problem := parse(expanded[0].Text)
		if diff := cmp.Diff(shape(before), shape(after)); diff != "" || problem != nil {
			t.Fatalf("%q with %v: %v (-before +after):\n%s", text, values, problem, diff)
		}
	}
	if accepted < 2000 {
		t.Errorf("only %d texts are valid", accepted)
	}
}

// shape is the structure of directives.
func shape(block []*directive) (all [][]any) {
	for _, d := range block {
		all = append(all, []any{len(d.args), d.line, d.isBlock, shape(d.block)})
	}
	return all
}

// TestCanBeForeign verifies which values from ConfigMaps are refused.
func TestCanBeForeign(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "2m": true, "Acme Inc": true, "a$": false, "a\nb": false, "a\r": false, "\u0085": false, "\xff": false, "é": true,
		strings.Repeat("a", MaxValue): true, strings.Repeat("a", MaxValue+1): false,
	} {
		if CanBeForeign(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

// TestResolverLine verifies the file with the resolver, and its place before the servers.
func TestResolverLine(t *testing.T) {
	cluster := []string{"10.96.0.10", "2001:db8::a"}
	for want, resolver := range map[string]v1alpha2.Resolver{
		"resolver 10.96.0.10 [2001:db8::a];\n":                   {},
		"resolver 10.96.0.10 [2001:db8::a] valid=5s ipv6=off;\n": {Valid: "5s", IPv6: ptr.To(false)},
		"resolver dns.example.com:5353 [::1]:53 [::2] 192.0.2.1 [2001:db8::1];\n": {
			IPv6: ptr.To(true), Addresses: []string{"dns.example.com:5353", "[::1]:53", "[::2]", "192.0.2.1", "2001:db8::1"},
		},
	} {
		spec := &v1alpha2.NginxOperatorSpec{Nginx: &v1alpha2.Nginx{Resolver: &resolver}}
		files, err := Render(spec, Whole(inServer()), false, cluster)
		if err != nil || files[ResolverFile] != want {
			t.Errorf("%q, want %q, %v", files[ResolverFile], want, err)
		}
		http, servers, _ := strings.Cut(files[MainFile], "    include /etc/nginx-operator/resolver.conf;\n")
		if !strings.Contains(http, "http {") || !strings.Contains(servers, "server {") {
			t.Error(files[MainFile])
		}
		if _, err := Render(spec, nil, false, nil); (err == nil) != (len(resolver.Addresses) > 0) {
			t.Errorf("without name servers of the cluster: %v", err)
		}
	}
	if field := FieldOf(Directory + "/" + ResolverFile); field != "spec.nginx.resolver" {
		t.Error(field)
	}
}

// TestHostileValuesCostLittle verifies that the work for values is bounded by the size of a
// configuration.
func TestHostileValuesCostLittle(t *testing.T) {
	values, spec := Values{}, hostileSpec("registry.example.com/own:1")
	for i := range 64 {
		values[fmt.Sprintf("A%d", i)] = Value{Text: strings.Repeat(`\"`, MaxValue/2), Foreign: true}
	}
	values["B"], values["C"] = Value{Text: "b"}, Value{Text: strings.Repeat("c", MaxValue)}
	for name, text := range map[string]string{
		"many":             strings.Repeat("${B};", MaxBytes/5),
		"many in words":    strings.Repeat("a "+strings.Repeat("${B}", 1000)+";", 250),
		"large":            strings.Repeat("${C};", 900),
		"too large":        strings.Repeat("${C};", MaxBytes/5),
		"large in a word":  "a " + strings.Repeat("${C}", 1000) + ";",
		"refused":          "a " + strings.Repeat("${C}", 900) + strings.Repeat("${A1}", 90) + ";",
		"undeclared":       strings.Repeat("a ${D} $B;", maxDirectives),
		"defined":          strings.Repeat("set $b ${B};", maxDirectives),
		"groups":           strings.Repeat("a "+strings.Repeat("(?<b>", 800)+";", 250),
		"in a comment":     "#" + strings.Repeat("${A1}", 900),
		"many undeclared":  "a " + strings.Repeat("${D}", 1000) + "${A1};",
		"code of a module": "a_by_lua_block {" + strings.Repeat("${B}", 100_000) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			boundstest.Cheap(t, func() { Whole(text).Expand(spec, values) })
		})
	}
}
