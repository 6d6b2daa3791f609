package nginxconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// TestServerNames verifies that a certificate that covers no name of its servers causes a warning,
// unless one of the servers accepts any name.
func TestServerNames(t *testing.T) {
	server := func(names string) string {
		return "server { listen 8080; listen 8443 ssl; " + names + "\nssl_certificate /etc/nginx/tls/shop/tls.crt;\n" +
			"ssl_certificate_key /etc/nginx/tls/shop/tls.key; }\n"
	}
	const atHTTP = "ssl_certificate /etc/nginx/tls/shop/tls.crt; ssl_certificate_key /etc/nginx/tls/shop/tls.key;\n"
	for name, test := range map[string]struct {
		text   string
		known  []string
		warned bool
	}{
		"the name":                 {server("server_name shop.example.com;"), []string{"SHOP.example.com"}, false},
		"another name":             {server("server_name blog.example.com;"), []string{"shop.example.com"}, true},
		"one of several":           {server("server_name blog.example.com shop.example.com;"), []string{"shop.example.com"}, false},
		"a wildcard certificate":   {server("server_name shop.example.com;"), []string{"*.example.com"}, false},
		"one label too many":       {server("server_name a.shop.example.com;"), []string{"*.example.com"}, true},
		"a wildcard name":          {server("server_name *.example.com;"), []string{"shop.example.com"}, false},
		"another wildcard name":    {server("server_name *.example.org;"), []string{"shop.example.com"}, true},
		"a domain":                 {server("server_name .example.com;"), []string{"example.com"}, false},
		"another domain":           {server("server_name .example.org;"), []string{"example.com"}, true},
		"an open end":              {server("server_name shop.example.*;"), []string{"shop.example.com"}, false},
		"another open end":         {server("server_name blog.example.*;"), []string{"shop.example.com"}, true},
		"an expression":            {server(`server_name ~^(\w+)[.]example[.]org$;`), []string{"shop.example.com"}, false},
		"no name":                  {server(""), []string{"shop.example.com"}, false},
		"any name":                 {server("server_name _;"), []string{"shop.example.com"}, false},
		"names that are not known": {server("server_name blog.example.com;"), nil, false},
		"a second server": {
			server("server_name blog.example.com;") + server("server_name shop.example.com;"), []string{"shop.example.com"}, false,
		},
		"a server of another certificate": {
			server("server_name blog.example.com;") + strings.ReplaceAll(server("server_name shop.example.com;"), "tls/shop", "tls/other"),
			[]string{"shop.example.com"},
			true,
		},
		"for all servers": {
			atHTTP + "server { listen 8080; listen 8443 ssl; server_name blog.example.com; }", []string{"shop.example.com"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := tlsSpec("shop", "other")
			spec.Config = &v1alpha2.Config{}
			problems, warnings := Check(&spec, Whole(test.text), nil, map[string][]string{"shop": test.known})
			isWarned := strings.Contains(fmt.Sprint(warnings), "clients refuse the certificate in Secret shop: ")
			if isWarned != test.warned || len(problems) > 0 {
				t.Errorf("warnings: %q, problems: %q", warnings, problems)
			}
		})
	}
}

// TestServerNamesAreBounded verifies that the number of compared names is bounded.
func TestServerNamesAreBounded(t *testing.T) {
	spec := tlsSpec("shop")
	text := "server { listen 8080; listen 8443 ssl; server_name" + strings.Repeat(" a.b", 200_000) + ";\n" +
		"ssl_certificate /etc/nginx/tls/shop/tls.crt;\nssl_certificate_key /etc/nginx/tls/shop/tls.key; }"
	known := strings.Split(strings.TrimSuffix(strings.Repeat(strings.Repeat("c.", 500)+"d,", 15), ","), ",")
	boundstest.Cheap(t, func() { Check(&spec, Whole(text), nil, map[string][]string{"shop": known}) })
}
