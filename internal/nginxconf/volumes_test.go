package nginxconf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestFilesOfVolumes verifies that files in a volume are assumed to exist, and are writable if the
// volume is.
func TestFilesOfVolumes(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{Volumes: []v1alpha2.Volume{
		{Name: "pages", MountPath: "/var/cache/nginx", EmptyDir: &v1alpha2.EmptyDirVolume{}},
		{Name: "fixed", MountPath: "/var/cache/nginx/fixed", ReadOnly: true, EmptyDir: &v1alpha2.EmptyDirVolume{}},
		{Name: "snippets", MountPath: "/etc/nginx/snippets", ConfigMap: &v1alpha2.ConfigMapVolume{Name: "snippets"}},
		{Name: "elsewhere", EmptyDir: &v1alpha2.EmptyDirVolume{}},
	}}
	text := inHTTP(
		"proxy_cache_path /var/cache/nginx/a keys_zone=a:1m;",
		"proxy_temp_path /var/cache/nginx/fixed/a;",
		"client_body_temp_path /etc/nginx/snippets/a;",
		"access_log /var/cache/nginx/log;",
		"include /etc/nginx/snippets/*.conf;",
		"ssl_trusted_certificate /etc/nginx/snippets/ca.crt;",
	)
	const readOnly = "is on a read-only file system; write below /tmp, for example /tmp/a"
	told := func(problems []Problem) (out []string) {
		for _, problem := range problems {
			out = append(out, problem.String())
		}
		return out
	}
	want := []string{
		"line 2: proxy_temp_path: /var/cache/nginx/fixed/a " + readOnly,
		"line 3: client_body_temp_path: /etc/nginx/snippets/a " + readOnly,
	}
	if diff := cmp.Diff(want, told(Check(spec, text))); diff != "" {
		t.Error(diff)
	}
	want = []string{"line 5: include: /etc/nginx/snippets/*.conf is in volume snippets, so that it is not checked before nginx reads it"}
	if diff := cmp.Diff(want, told(Warnings(spec, text, nil))); diff != "" {
		t.Error(diff)
	}
}

// TestEnvironment verifies that worker processes keep the declared environment variables.
func TestEnvironment(t *testing.T) {
	files, err := Render(&v1alpha2.NginxOperatorSpec{Env: []v1alpha2.EnvVar{{Name: "TZ"}, {Name: "A.b"}}}, "", false)
	if err != nil || !strings.Contains(files[MainFile], "s;\nenv TZ;\nenv A.b;\n\nevents {") {
		t.Errorf("%v: %s", err, files[MainFile])
	}
}
