package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/options"
	"github.com/example/nginx-operator/internal/validation"
)

// oneLine returns a text with one blank between its words.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// The table of settings has the default of each flag that has one.
func TestDefaultsOfFlags(t *testing.T) {
	const page = "docs/guide/operations/settings.md"
	guide := read(t, page)
	var help strings.Builder
	_, _ = options.Parse([]string{"--help"}, os.LookupEnv, &help)
	found := 0
	for _, usage := range regexp.MustCompile(`(?m)^ +--`).Split(help.String(), -1) {
		name, _, _ := strings.Cut(usage, " ")
		byDefault := regexp.MustCompile(`\(default ([^)]+)\)$`).FindStringSubmatch(oneLine(usage))
		if byDefault == nil {
			continue
		}
		found++
		row := regexp.MustCompile("(?m)^\\| `--" + name + "` \\| `[A-Z_]+` \\| ([^|]*) \\|").FindStringSubmatch(guide)
		if want := strings.Trim(byDefault[1], `"`); row == nil || !strings.HasPrefix(strings.ReplaceAll(row[1], "`", ""), want) {
			t.Errorf("%s has the default %q for --%s, the operator %s", page, row, name, want)
		}
	}
	if found < 10 {
		t.Errorf("%d flags with a default in the help:\n%s", found, help.String())
	}
}

// The pages and the CRD have the defaults of the code.
func TestDefaultsOfFields(t *testing.T) {
	for _, test := range []struct {
		value int32
		at    map[string]string
	}{
		{v1alpha2.DefaultProgressDeadlineSeconds, map[string]string{
			"docs/guide/fields/rollout.md": "| `progressDeadlineSeconds` | %d |", "docs/guide/behaviour.md": "`progressDeadlineSeconds: %d`",
			"docs/reference/api.md": "fails, 10 to 3600. Defaults to %d.",
		}},
		{v1alpha2.DefaultDrainSeconds, map[string]string{
			"docs/guide/fields/rollout.md": "The default is %d seconds.", "docs/reference/api.md": "5 to 3600. Defaults to %d.",
		}},
		{v1alpha2.DefaultWorkerConnections, map[string]string{
			"docs/guide/fields/nginx.md": "Above 1024, see [open files](#open-files) | %d |",
			"docs/reference/api.md":      "both count. Defaults to %d.",
		}},
		{v1alpha2.DefaultTLSPort, map[string]string{
			"docs/guide/fields/tls.md": "none; %d for the first certificate", "docs/reference/api.md": "the first certificate defaults to %d.",
		}},
		{v1alpha2.DefaultPort, map[string]string{
			"docs/guide/fields/ports-and-service.md": "one port, `http`, with the number %d.",
			"docs/reference/api.md":                  "one port named http with the number %d.",
		}},
		{v1alpha2.DefaultTargetCPUUtilization, map[string]string{
			"docs/guide/fields/replicas-and-autoscaling.md": "the CPU target is %d.",
			"docs/reference/api.md":                         "Defaults to %d if targetMemoryUtilizationPercentage",
		}},
		{int32(fleet.SlotTime.Minutes()), map[string]string{
			"docs/guide/operations/metrics.md":       "lost the slot after %d minutes,",
			"docs/guide/operations/fleet-rollout.md": "| %d minutes, independent",
			"docs/guide/fields/rollout.md":           "not Ready %d minutes after its start",
		}},
	} {
		for page, form := range test.at {
			if want := fmt.Sprintf(form, test.value); !strings.Contains(oneLine(strings.ReplaceAll(read(t, page), "<br />", " ")), want) {
				t.Errorf("%s does not say %q", page, want)
			}
		}
	}
}

// knows reports whether admission knows the directives of an image, and therefore rejects others.
func knows(image string) bool {
	spec := &v1alpha2.NginxOperatorSpec{
		Image: image, Config: &v1alpha2.Config{Inline: "server { listen 8080; no_directive_of_nginx on; }"},
	}
	return len(validation.Spec(spec, field.NewPath("spec"))) > 0
}

// Examples use tags of NGINX that admission knows, and the pages name the newest one.
func TestTagsOfExamples(t *testing.T) {
	files := pages(t)
	samples, err := fs.Glob(repository, "config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range samples {
		files[name] = read(t, name)
	}
	tagged := regexp.MustCompile(`docker\.io/(?:library/nginx|nginxinc/nginx-unprivileged):[0-9][\w.-]*`)
	found := 0
	for name, text := range files {
		for _, image := range tagged.FindAllString(text, -1) {
			if found++; !knows(strings.TrimRight(image, ".")) {
				t.Errorf("%s: admission does not know the directives of %s", name, image)
			}
		}
	}
	if found < 12 {
		t.Errorf("%d images", found)
	}

	const mainline = "docker.io/library/nginx:1.31."
	newest := 0
	for knows(mainline + strconv.Itoa(newest+1)) {
		newest++
	}
	if knows(mainline[:len(mainline)-1]) || knows("docker.io/library/nginx:1.32.0") || !knows("docker.io/library/nginx:1.30") {
		t.Error("admission knows 1.31 or 1.32, or not 1.30: correct the pages and this test")
	}
	for page, form := range map[string]string{
		"docs/guide/fields/image-and-config.md": "with a version up to 1.30, or from 1.31.0 to 1.31.%d.",
		"docs/support.md":                       "all directives up to nginx 1.30, and of 1.31 up to 1.31.%d |",
	} {
		if want := fmt.Sprintf(form, newest); !strings.Contains(oneLine(read(t, page)), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

// A client-side apply stores the CRD in an annotation. The pages give server-side apply another
// reason than the size while the CRD fits.
func TestSizeOfTheDefinition(t *testing.T) {
	const limit = 256 << 10 // of all annotations of an object
	raw, err := yaml.YAMLToJSON([]byte(read(t, "config/crd/bases/operator.example.com_nginxoperators.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > limit-8<<10 {
		t.Errorf("the CRD has %d bytes as JSON, client-side apply accepts %d: correct the pages", len(raw), limit)
	}
	if want := fmt.Sprintf("it is about %d KB.", (len(raw)+5_000)/10_000*10); !strings.Contains(read(t, "docs/journeys/gitops.md"), want) {
		t.Errorf("docs/journeys/gitops.md does not say %q of %d bytes", want, len(raw))
	}
	for page, text := range pages(t) {
		if strings.Contains(oneLine(text), "too long for the annotation") {
			t.Errorf("%s says that the CRD is too long for the annotation of a client-side apply, and it fits", page)
		}
	}
}

// A runbook and an alert that say for how long something has lasted say the time of the alert.
func TestMinutesOfAlerts(t *testing.T) {
	minutes := regexp.MustCompile(`\b(?:[Ff]or|in the last) (\d+) minutes\b`)
	found := 0
	for _, manifest := range []string{"config/monitoring/prometheusrule.yaml", "assets/manifests/prometheusrule.yaml"} {
		for _, rule := range alertsOf(t, manifest) {
			_, meaning, _ := strings.Cut(read(t, "docs/runbooks/"+rule.Alert+".md"), "\n## Meaning\n\n")
			meaning, _, _ = strings.Cut(meaning, ".")
			for _, text := range []string{meaning, rule.Annotations["description"]} {
				for _, stated := range minutes.FindAllStringSubmatch(text, -1) {
					if found++; stated[1]+"m" != rule.For {
						t.Errorf("%s fires after %s: %s", rule.Alert, rule.For, text)
					}
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("%d texts name minutes", found)
	}
}

// docs/development/tests.md has the measured times of make check. The README repeats them in
// minutes, and no other page does.
func TestMinutesOfTheGate(t *testing.T) {
	totals := regexp.MustCompile(`(?m)^\| total \| ([\d,]+) \| [\d,]+ \| ([\d,]+) \| [\d,]+ \|$`)
	total := totals.FindStringSubmatch(read(t, "docs/development/tests.md"))
	if total == nil {
		t.Fatal("docs/development/tests.md has no total of make check")
	}
	readme := read(t, "README.md")
	for row, seconds := range map[string]string{"first time, on two cores": total[2], "again": total[1]} {
		measured, err := strconv.Atoi(strings.ReplaceAll(seconds, ",", ""))
		stated := regexp.MustCompile(`(?m)^\| ` + row + ` \| [^|]+ \| (\d+) to (\d+) minutes \|$`).FindStringSubmatch(readme)
		if err != nil || stated == nil {
			t.Fatalf("README.md has no row %q with minutes of make check: %v", row, err)
		}
		least, _ := strconv.Atoi(stated[1])
		most, _ := strconv.Atoi(stated[2])
		if up := (measured + 59) / 60; up < least || up > most {
			t.Errorf("README.md says %s minutes (%s), docs/development/tests.md %d seconds", stated[0], row, measured)
		}
	}
	decision := read(t, "docs/adr/0038-the-gate.md")
	_, consequences, _ := strings.Cut(decision, "\n## Consequences\n")
	if repeated := regexp.MustCompile(`run takes \d+ minutes|\d+ minutes and`).FindString(consequences); repeated != "" ||
		!strings.Contains(consequences, "../development/tests.md#output-of-make-check") {
		t.Errorf("docs/adr/0038-the-gate.md repeats %q, or does not link to the times of make check", repeated)
	}
}

// The page on upgrades names the newest release with the vulnerable NGINX 1.28.0 as its default
// image.
func TestGoingBackToAnotherNginx(t *testing.T) {
	bundles, err := fs.Glob(repository, "catalog/nginx-operator/bundles/v*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(bundles, func(a, b string) int { return semver.Compare(releaseOf(a), releaseOf(b)) })
	newest := ""
	for _, bundle := range bundles {
		if strings.Contains(read(t, bundle), "\n- image: docker.io/nginxinc/nginx-unprivileged:1.28.0\n") {
			newest = strings.TrimPrefix(releaseOf(bundle), "v")
		}
	}
	if want := "Going back to " + newest + " or earlier rolls instances without `spec.image` to NGINX 1.28.0"; newest == "" ||
		!strings.Contains(oneLine(read(t, "docs/upgrades.md")), want) {
		t.Errorf("docs/upgrades.md does not say %q", want)
	}
}

func releaseOf(bundle string) string { return strings.TrimSuffix(path.Base(bundle), ".yaml") }

// The pages quote log messages that the operator writes.
func TestLogMessages(t *testing.T) {
	code := codeOf(t)
	quoted := regexp.MustCompile("(?:log (?:has|names it)|The operator logs)[^.`]*\\(?`([A-Z][a-z]+(?: [A-Za-z]+)+)`|" +
		"logs the [^.`]*\\(`([A-Z][^`]+)`")
	found := 0
	for page, text := range pages(t) {
		for _, match := range quoted.FindAllStringSubmatch(oneLine(text), -1) {
			if found++; !strings.Contains(code, `"`+match[1]+match[2]) {
				t.Errorf("%s: the operator does not log %q", page, match[1]+match[2])
			}
		}
	}
	if found < 2 {
		t.Errorf("%d log messages", found)
	}
}

// All probes of nginx use the operator's own server, so Ready does not depend on the answers of the
// user's servers. The pages on Ready, on rollbacks, and on production say so.
func TestReadyIsNotAboutAnswers(t *testing.T) {
	nginx := assets.Deployment().Spec.Template.Spec.Containers[0]
	for _, probe := range []*corev1.Probe{nginx.StartupProbe, nginx.ReadinessProbe, nginx.LivenessProbe} {
		if probe == nil || probe.HTTPGet.Port.StrVal != "health" {
			t.Fatalf("nginx has the probe %v: correct the pages that say what Ready does not check", probe)
		}
	}
	const anchor = "#what-ready-does-not-check"
	for _, page := range []string{
		"docs/guide/behaviour.md", "docs/guide/fields/rollout.md", "docs/production-checklist.md", "docs/journeys/change-not-live.md",
		"docs/troubleshooting.md", "docs/guide/how-to.md",
	} {
		if !strings.Contains(read(t, page), anchor) {
			t.Errorf("%s does not link to %s", page, anchor)
		}
	}
	csv := readBundled(t).Spec.Description
	for _, text := range []string{"wrong responses", "404 or 502"} {
		if !strings.Contains(csv, text) {
			t.Errorf("the description of the bundle does not say %q", text)
		}
	}
	_, section, _ := strings.Cut(read(t, "docs/guide/behaviour.md"), "\n### What Ready does not check\n")
	section, _, _ = strings.Cut(section, "\n#")
	for _, text := range []string{"404 or 502", "`lastGoodRevision`", "does not roll"} {
		if !strings.Contains(oneLine(section), text) {
			t.Errorf("docs/guide/behaviour.md does not say %q of Ready", text)
		}
	}
}
