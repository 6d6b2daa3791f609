package options

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var imageOnly = map[string]string{"RELATED_IMAGE_NGINX": "nginx:1"}

// TestWatchNamespaces verifies that the watched namespaces are sorted and have no duplicates, and
// that the operator watches all namespaces by default.
func TestWatchNamespaces(t *testing.T) {
	for value, want := range map[string][]string{
		"": {}, "shop": {"shop"}, "web,shop,web": {"shop", "web"}, "a-1,0": {"0", "a-1"},
	} {
		flag, err := parse([]string{"--watch-namespaces=" + value}, imageOnly)
		if err != nil {
			t.Fatal(err)
		}
		variable, err := parse(nil, map[string]string{"RELATED_IMAGE_NGINX": "nginx:1", "NGINX_OPERATOR_WATCH_NAMESPACES": value})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []*Options{flag, variable} {
			if diff := cmp.Diff(want, got.WatchNamespaces); diff != "" {
				t.Errorf("%q: %s", value, diff)
			}
			if got.Watches("shop") != (value == "" || strings.Contains(value, "shop")) || got.Watches("sho") != (value == "") {
				t.Errorf("%q: watches shop %t, sho %t", value, got.Watches("shop"), got.Watches("sho"))
			}
		}
	}
	got, err := parse([]string{"--watch-namespaces=shop", "--fleet-rollout-canary-namespaces=shop"}, imageOnly)
	if err != nil || !got.FleetRollout.CanaryNamespaces.Has("shop") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWatchNamespacesRefusals verifies that an error names the flag and the wrong namespace.
func TestWatchNamespacesRefusals(t *testing.T) {
	names := make([]string, maxWatchNamespaces+1)
	for i := range names {
		names[i] = fmt.Sprintf("shop-%d", i)
	}
	if _, err := parse([]string{"--watch-namespaces=" + strings.Join(names[1:], ",")}, imageOnly); err != nil {
		t.Errorf("%d namespaces: %v", maxWatchNamespaces, err)
	}
	for args, want := range map[string]string{
		"--watch-namespaces=shop,":                       `--watch-namespaces has "", which is not a valid namespace name`,
		"--watch-namespaces=shop, web":                   `--watch-namespaces has " web", which is not a valid namespace name`,
		"--watch-namespaces=Shop":                        `--watch-namespaces has "Shop"`,
		"--watch-namespaces=shop.web":                    `--watch-namespaces has "shop.web"`,
		"--watch-namespaces=*":                           `--watch-namespaces has "*"`,
		"--watch-namespaces=" + strings.Repeat("a", 64):  `--watch-namespaces has "aaa`,
		"--watch-namespaces=" + strings.Join(names, ","): "--watch-namespaces has 101 namespaces, must have at most 100",
		"--watch-namespaces=shop --fleet-rollout-canary-namespaces=shop,web": `--fleet-rollout-canary-namespaces has "web", which ` +
			"--watch-namespaces does not have",
	} {
		var split []string
		for arg := range strings.SplitSeq(args, " --") {
			split = append(split, "--"+strings.TrimPrefix(arg, "--"))
		}
		if _, err := parse(split, imageOnly); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: want an error with %q, got %v", args, want, err)
		}
	}
}
