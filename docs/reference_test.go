package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// Each version of the API has a page, and v1alpha2's has no link to the types of v1alpha1: the only
// one is to the page. The page keeps the anchors of the time when it had both versions.
func TestAPIReference(t *testing.T) {
	page := read(t, "docs/reference/api.md")
	if want := "`operator.example.com/v1alpha2`"; !strings.Contains(page, want) || strings.Contains(page, "operator.example.com/v1alpha1`") {
		t.Errorf("docs/reference/api.md does not have %s only", want)
	}
	var foreign []string
	local := 0
	for _, link := range linkPattern.FindAllStringSubmatch(page, -1) {
		switch {
		case strings.Contains(link[1], "v1alpha1"):
			foreign = append(foreign, link[1])
		case strings.HasPrefix(link[1], "#"):
			local++
		}
	}
	if len(foreign) != 1 || foreign[0] != "api-v1alpha1.md" || local < 100 {
		t.Errorf("docs/reference/api.md has %d links to its own types, and leads to v1alpha1 with %q", local, foreign)
	}
	for _, kind := range []string{"NginxOperator", "NginxOperatorSpec", "NginxOperatorStatus"} {
		if headings := regexp.MustCompile(`(?m)^#+ `+kind+`$`).FindAllString(page, -1); len(headings) != 1 {
			t.Errorf("docs/reference/api.md has the headings %q of %s, want one", headings, kind)
		}
	}
	all := anchors(page)
	for _, anchor := range []string{
		"operatorexamplecomv1alpha1", "operatorexamplecomv1alpha2", "nginxoperator", "nginxoperator-1", "nginxoperatorspec",
		"nginxoperatorspec-1", "nginxoperatorstatus", "resource-types",
	} {
		if !all[anchor] {
			t.Errorf("docs/reference/api.md lost the anchor %s", anchor)
		}
	}
	older := read(t, "docs/reference/api-v1alpha1.md")
	if !strings.Contains(older, "(api.md#nginxoperatorstatus)") || !strings.Contains(older, "`operator.example.com/v1alpha1`") {
		t.Error("docs/reference/api-v1alpha1.md does not have v1alpha1 with the status of v1alpha2")
	}
}
