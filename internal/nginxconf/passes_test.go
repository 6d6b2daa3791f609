package nginxconf

import (
	"regexp"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
)

var unresolvedHost = regexp.MustCompile(`^line (\d+): no resolver defined to resolve (.*?): `)

// TestHostsWithoutResolver verifies which hosts of URLs with a variable cause a warning. nginx
// 1.22.1 answers 502 for each host that is expected here, and its log names the same host. It
// answers the others, as far as it can be tried without a name server.
func TestHostsWithoutResolver(t *testing.T) {
	const location = "location / { proxy_pass http://$b; }"
	for name, test := range map[string]struct {
		// text is in a server, from line 2 on. want is the line and the host of the warning.
		before, text, want string
	}{
		"host name":              {text: "set $b app;\n" + location, want: "3 app"},
		"with a port":            {text: "set $b app:8080;\n" + location, want: "3 app"},
		"with a URI":             {text: "set $b app;\nlocation / { proxy_pass http://$b:80/x$uri; }", want: "3 app"},
		"whole URL":              {text: "set $b http://app.shop.svc/;\nlocation / { proxy_pass $b; }", want: "3 app.shop.svc"},
		"braces and upper case":  {text: "set $Back app;\nlocation / { proxy_pass http://${back}; }", want: "3 app"},
		"of another variable":    {text: "set $n shop;\nset $b app.$n.svc;\n" + location, want: "4 app.shop.svc"},
		"variable of the URI":    {text: "location / { proxy_pass http://app:3000$request_uri; }", want: "2 app"},
		"without a port":         {text: "location / { proxy_pass http://app$request_uri; }", want: "2 app"},
		"variable after a port":  {text: "location ~ ^/a(?<rest>/.*)$ { proxy_pass http://app:3000$rest$is_args$args; }", want: "2 app"},
		"localhost":              {text: "set $b localhost;\n" + location, want: "3 localhost"},
		"in an if":               {text: "location / {\nset $b app;\nif ($arg_a) { proxy_pass http://$b; }\n}", want: "4 app"},
		"in a limit_except":      {text: "set $b app;\nlocation / { limit_except GET { proxy_pass http://$b; } }", want: "3 app"},
		"one of two values":      {text: "set $b 10.0.0.1;\nif ($arg_a) { set $b app; }\n" + location, want: "4 app"},
		"after a redirect":       {text: "location / { set $b app; try_files $uri @b; }\nlocation @b { proxy_pass http://$b; }", want: "3 app"},
		"FastCGI":                {text: "set $b php:9000;\nlocation / { fastcgi_pass $b; }", want: "3 php"},
		"gRPC":                   {text: "set $b app;\nlocation / { grpc_pass grpcs://$b:443; }", want: "3 app"},
		"resolver of others":     {before: "server { listen 8081; resolver 10.0.0.10; }", text: "set $b app;\n" + location, want: "3 app"},
		"upstream with a port":   {before: "upstream app { server 10.0.0.1; }", text: "set $b app:80;\n" + location, want: "3 app"},
		"another port elsewhere": {text: "location /a { proxy_pass http://app:81; }\nlocation / { proxy_pass http://app$uri; }", want: "3 app"},

		"upstream":                 {before: "upstream app { server 10.0.0.1; }", text: "set $b App;\nlocation / { proxy_pass http://$b$uri; }"},
		"literal URL elsewhere":    {text: "location /a { proxy_pass http://app/; }\nlocation / { proxy_pass http://app:80$uri; }"},
		"IPv4":                     {text: "set $b 10.0.0.1:80;\n" + location},
		"IPv6":                     {text: "set $b [::1];\n" + location + "\nlocation /a { proxy_pass http://[::1]:80$uri; }"},
		"socket":                   {text: "set $b unix:/tmp/a;\n" + location + "\n" + "location /a { fastcgi_pass $b; }"},
		"resolver of the server":   {text: "resolver 10.0.0.10;\nset $b app;\n" + location},
		"resolver of the location": {text: "set $b app;\nlocation / { resolver 10.0.0.10; if ($arg_a) { proxy_pass http://$b; } }"},
		"resolver of all":          {before: "resolver 10.0.0.10;", text: "set $b app;\n" + location},
		"own value":                {text: "set $b app;\nlocation / { set $b 10.0.0.1; proxy_pass http://$b; }"},
		"value of another server":  {before: "server { listen 8081; set $b app; }", text: location},
		"unknown value":            {text: "set $b $arg_b;\n" + location + "\n" + "location /a { proxy_pass http://$host; }"},
		"unknown part":             {text: "set $b blue-$arg_b;\n" + location},
		"unknown end":              {text: "location ~ ^/a(?<rest>.*)$ { proxy_pass http://app$rest; }"},
		"unknown scheme":           {before: "upstream app { server 10.0.0.1; }", text: "location / { proxy_pass $scheme://app; }"},
		"no value":                 {text: `set $b "";` + "\n" + location},
		"value of itself":          {text: "set $b $b;\n" + location},
		"no variable":              {text: "location / { proxy_pass http://app; }"},
		"unknown file elsewhere": {
			text: "set $b app;\nlocation /a { proxy_pass http://c; include /opt/headers.conf; }\n" + location, want: "4 app",
		},
		"unknown file of a map":      {before: "map $host $c { include /opt/a.map; }", text: "set $b app;\n" + location, want: "3 app"},
		"unknown file of the server": {text: "set $b app;\ninclude /opt/a.conf;\n" + location},
		"unknown file of the location": {
			text: "set $b app;\nlocation / { include /opt/a.conf; if ($arg_a) { proxy_pass http://$b; } }",
		},
		"unknown file next to the URL": {text: "set $b app;\nlocation / { include /opt/a.conf; proxy_pass http://$b; }"},
		"unknown file with a URL":      {text: "set $b app;\nlocation /a { include /opt/a.conf; }\n" + location},
		"unknown file":                 {before: "include /etc/nginx/conf.d/*.conf;", text: "set $b app;\n" + location},
	} {
		t.Run(name, func(t *testing.T) {
			problems, warnings := check(v1alpha2.NginxOperatorSpec{}, test.before+inServer(test.text))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			host := ""
			for _, warning := range warnings {
				if match := unresolvedHost.FindStringSubmatch(warning); match != nil {
					host += match[1] + " " + match[2]
				}
			}
			if host != test.want {
				t.Errorf("%q, want %q", host, test.want)
			}
		})
	}
}
