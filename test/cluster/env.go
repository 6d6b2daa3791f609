package main

// This file merges environments.

import (
	"slices"
	"strings"
)

// mergeEnv returns base with the values of override. Every name comes once, because programs do not agree on which of two
// counts. Proxies are left out: there is no way out, so there is no way to a proxy either.
func mergeEnv(base, override []string) []string {
	overridden := map[string]bool{}
	for _, entry := range override {
		name, _, _ := strings.Cut(entry, "=")
		overridden[name] = true
	}
	merged := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return overridden[name] || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	return append(merged, override...)
}
