package docs_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// descriptor is a specDescriptor of a ClusterServiceVersion, by which consoles build their forms.
type descriptor struct {
	Path         string
	DisplayName  string   `json:"displayName"`
	XDescriptors []string `json:"x-descriptors"`
}

// bundled is the ClusterServiceVersion of the bundle.
type bundled struct {
	Spec struct {
		Description               string
		CustomResourceDefinitions struct {
			Owned []struct {
				Version         string
				DisplayName     string       `json:"displayName"`
				SpecDescriptors []descriptor `json:"specDescriptors"`
			}
		} `json:"customresourcedefinitions"`
	}
}

func readBundled(t *testing.T) bundled {
	t.Helper()
	var csv bundled
	if err := yaml.Unmarshal([]byte(read(t, "bundle/manifests/nginx-operator.clusterserviceversion.yaml")), &csv); err != nil {
		t.Fatal(err)
	}
	return csv
}

// The forms of consoles offer the ConfigMaps, Secrets, and Service types that exist. The two
// versions have different names, because consoles list both.
func TestPickersOfTheBundle(t *testing.T) {
	const prefix = "urn:alm:descriptor:"
	selected := prefix + "com.tectonic.ui:select:"
	want := map[string][]string{
		"config.configMapRef.name":  {prefix + "io.kubernetes:ConfigMap"},
		"content.configMapRef.name": {prefix + "io.kubernetes:ConfigMap"},
		"tls[0].secretName":         {prefix + "io.kubernetes:Secret"},
		"service.type":              {selected + "ClusterIP", selected + "NodePort", selected + "LoadBalancer"},
		"serviceAccountName":        {prefix + "io.kubernetes:ServiceAccount", prefix + "com.tectonic.ui:advanced"},
	}
	names := map[string]string{}
	for _, owned := range readBundled(t).Spec.CustomResourceDefinitions.Owned {
		names[owned.Version] = owned.DisplayName
		if owned.Version != "v1alpha2" {
			continue
		}
		for _, found := range owned.SpecDescriptors {
			if pickers, expected := want[found.Path]; expected && slices.Equal(pickers, found.XDescriptors) && found.DisplayName != "" {
				delete(want, found.Path)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("the bundle has no descriptors %v", want)
	}
	if names["v1alpha1"] != "NGINX instance (v1alpha1, deprecated)" || names["v1alpha2"] != "NGINX instance" {
		t.Errorf("display names %q", names)
	}
}

// The description names fields of the API that exist, those of the main features among them, and
// each permission that an administrator questions. Its links lead to pages and headings.
func TestDescriptionOfTheBundle(t *testing.T) {
	description := readBundled(t).Spec.Description
	var named []string
	for _, field := range regexp.MustCompile("`spec\\.(\\w+)").FindAllStringSubmatch(description, -1) {
		named = append(named, field[1])
	}
	fields := jsonNames(reflect.TypeFor[v1alpha2.NginxOperatorSpec]())
	for _, name := range named {
		if !slices.Contains(fields, name) {
			t.Errorf("the description names spec.%s, which does not exist", name)
		}
	}
	for _, name := range []string{"autoscaling", "files", "patches", "tls"} {
		if !slices.Contains(named, name) {
			t.Errorf("the description does not name spec.%s", name)
		}
	}

	_, permissions, _ := strings.Cut(description, "\n## Permissions\n")
	for _, resources := range []string{"Secrets", "CRD", "Webhook configurations", "Deployments"} {
		if !regexp.MustCompile(`(?m)^\* \*\*[^*]*` + resources).MatchString(permissions) {
			t.Errorf("no item of the permissions names %s", resources)
		}
	}
	for _, link := range regexp.MustCompile(`/blob/main/([^)#]+)#?([^)]*)\)`).FindAllStringSubmatch(description, -1) {
		if page := read(t, link[1]); link[2] != "" && !anchors(page)[link[2]] {
			t.Errorf("%s has no heading %q", link[1], link[2])
		}
	}
}
