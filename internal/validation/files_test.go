package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
