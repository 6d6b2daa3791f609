package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestFilesAndCache verifies the schema's rules for files and cache with values that no schema
// validates.
func TestFilesAndCache(t *testing.T) {
	const file = "must be a name, or a directory and a name, for example snippets/headers.conf"
	const from = ", configMapRef: {name: a, key: b}}"
	const one = "spec.files[0]: Invalid value: takes exactly one of configMapRef and secretRef"
	const bad = "spec.files[0].path: Invalid value: " + file
	const cache = "spec.cache.path: Invalid value: must be /var/cache, /cache, /data, /mnt, or /srv, or a directory below one of these"
	const size = "spec.cache.size: Invalid value: must be a number of one to five digits with the unit M, G, Mi, or Gi, for example 500Mi " +
		"or 2Gi"
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"files":      {spec: "files: [{path: a" + from + ", {path: b/c.conf, secretRef: {name: a, key: tls.crt}}]"},
		"outside":    {spec: "files: [{path: ../a" + from + "]", want: []string{bad}},
		"absolute":   {spec: "files: [{path: /a" + from + "]", want: []string{bad}},
		"deep":       {spec: "files: [{path: a/b/c" + from + "]", want: []string{bad}},
		"two dots":   {spec: "files: [{path: a..b" + from + "]", want: []string{bad}},
		"long":       {spec: "files: [{path: " + strings.Repeat("a", 128) + from + "]", want: []string{bad}},
		"path twice": {spec: "files: [{path: a" + from + ", {path: a" + from + "]", want: []string{`spec.files[1].path: Duplicate value: "a"`}},
		"file and directory": {spec: "files: [{path: a" + from + ", {path: a/b" + from + "]", want: []string{
			`spec.files[0].path: Invalid value: "a": cannot be both a file and a directory; rename one of them`,
		}},
		"from nowhere": {spec: "files: [{path: a}]", want: []string{one}},
		"from both":    {spec: "files: [{path: a, secretRef: {name: a, key: b}" + from[:len(from)-1] + "}]", want: []string{one}},
		"mask": {spec: "files: [{path: a, configMapRef: {name: a, key: '*'}}]", want: []string{
			`spec.files[0].configMapRef.key: Invalid value: "*": has a *, which this release does not support; ` +
				`write one key, for example nginx.conf`,
		}},
		"mask of a Secret": {spec: "files: [{path: a, secretRef: {name: a, key: '*'}}]", want: []string{
			`spec.files[0].secretRef.key: Invalid value: "*": a valid config key must consist of alphanumeric characters, '-', ` +
				`'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
		}},
		"many": {
			spec: "files: [" + strings.Repeat("{path: a},", 17) + "]", want: []string{"spec.files: Too many: 17: must have at most 16 items"},
		},

		"cache":              {spec: "cache: {size: 1Gi}"},
		"cache elsewhere":    {spec: "cache: {size: 1Gi, path: /srv}"},
		"no size":            {spec: "cache: {}", want: []string{size}},
		"endless size":       {spec: "cache: {size: 1e-1000000000}", want: []string{size}},
		"over the system":    {spec: "cache: {size: 1Gi, path: /etc}", want: []string{cache}},
		"out of its parents": {spec: "cache: {size: 1Gi, path: /mnt/../etc}", want: []string{cache}},
		"beside them":        {spec: "cache: {size: 1Gi, path: /var/cached}", want: []string{cache}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Spec(specOf(t, test.spec), field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnusedFilesAndCache(t *testing.T) {
	for spec, want := range map[string][]string{
		"files: [{path: a, secretRef: {name: a, key: b}}]": {"spec.files: files have no effect without spec.config"},
		"cache: {size: 1Gi}": {"spec.cache: a cache has no effect without spec.config"},
		"{cache: {size: 1Gi, inMemory: true}, resources: {limits: {memory: 1Gi}}, config: {configMapRef: {name: a}}}": {
			"spec.cache.inMemory: the content counts toward resources.limits.memory (1Gi), and nginx is killed above the limit; set a limit " +
				"above size",
		},
		"{cache: {size: 1Gi}, resources: {limits: {memory: 1Gi}}, config: {configMapRef: {name: a}}}":                 nil,
		"{cache: {size: 1Gi, inMemory: true}, resources: {limits: {memory: 2Gi}}, config: {configMapRef: {name: a}}}": nil,
		"{cache: {size: 1Gi, inMemory: true}, config: {configMapRef: {name: a}}}":                                     nil,
	} {
		if diff := cmp.Diff(want, Warnings(specOf(t, spec), nil)); diff != "" {
			t.Errorf("%s:\n%s", spec, diff)
		}
	}
}
