package nginxconf

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestWarnsOfExposedFiles verifies that a literal path that lets clients read keys, tokens, or the
// environment causes a warning. One tenant may write the configuration of another.
func TestWarnsOfExposedFiles(t *testing.T) {
	spec := v1alpha2.NginxOperatorSpec{
		Files: []v1alpha2.File{
			{Path: "private/users", SecretRef: &v1alpha2.ObjectKeyReference{Name: "users", Key: "users"}},
			{Path: "robots.txt", ConfigMapRef: &v1alpha2.FileReference{Name: "robots", Key: "robots.txt"}},
		},
		Volumes: []v1alpha2.Volume{
			{Name: "keys", MountPath: "/srv/keys", Secret: &v1alpha2.SecretVolume{SecretName: "keys"}},
			{Name: "token", MountPath: "/srv/token", Projected: &v1alpha2.ProjectedVolume{
				Sources: []v1alpha2.ProjectedSource{{ServiceAccountToken: &v1alpha2.TokenFile{Path: "token"}}},
			}},
			{Name: "data", MountPath: "/srv/data", ConfigMap: &v1alpha2.ConfigMapVolume{Name: "data"}},
		},
	}
	for name, test := range map[string]struct{ directive, place string }{
		"keys with an index":         {"location /k/ { alias /etc/nginx/tls/; autoindex on; }", "/etc/nginx/tls"},
		"a key":                      {"location /k { alias /etc/nginx/tls/web/tls.key; }", "/etc/nginx/tls"},
		"a directory above":          {"root /etc/nginx;", "/etc/nginx/tls"},
		"all":                        {"root /;", "/etc/nginx/tls"},
		"above, in another spelling": {"root /usr/../etc//nginx/.;", "/etc/nginx/tls"},
		"relative to the image":      {"root tls;", "/etc/nginx/tls"},
		"quoted":                     {`root "/etc/nginx";`, "/etc/nginx/tls"},
		"the environment":            {"location /e { alias /proc/self/environ; }", "/proc"},
		"a token":                    {"location /t { alias /var/run/secrets/kubernetes.io/serviceaccount/token; }", "/var/run/secrets"},
		"the link to it":             {"location /t { alias /run/secrets/; }", "/run/secrets"},
		"the configuration":          {"location /c { alias /etc/nginx-operator/nginx.conf; }", "/etc/nginx-operator"},
		"a variable in there":        {"location ~ ^/k/(.*)$ { alias /etc/nginx/tls/$1; }", "/etc/nginx/tls"},
		"a key of a Secret":          {"location /f/ { alias /etc/nginx/files/private/; }", "/etc/nginx/files/private/users"},
		"a volume of a Secret":       {"location /v/ { root /srv/keys; }", "/srv/keys"},
		"a volume with a token":      {"location /v/ { root /srv/token; }", "/srv/token"},
		"a directory of volumes":     {"location /v/ { root /srv; }", "/srv/keys"},
		"the default":                {"root /usr/share/nginx/html;", ""},
		"the default of the image":   {"root html;", ""},
		"a file of a ConfigMap":      {"location /robots.txt { alias /etc/nginx/files/robots.txt; }", ""},
		"a volume of a ConfigMap":    {"root /srv/data;", ""},
		"a name that begins alike":   {"root /srv/keys-of-nobody;", ""},
		"a variable":                 {"root $document;", ""},
		"a variable below the root":  {"root /$host;", ""},
	} {
		t.Run(name, func(t *testing.T) {
			place := ""
			_, warnings := check(spec, inServer(test.directive))
			for _, warning := range warnings {
				if _, after, exposes := strings.Cut(warning, ": clients can read "); exposes {
					read, _, _ := strings.Cut(after, " (")
					place += read
				}
			}
			if place != test.place {
				t.Errorf("want a warning of %q, got %q", test.place, warnings)
			}
		})
	}
}
