package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
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

// The forms of consoles offer the ConfigMaps, Secrets, and Service types that exist. The two versions have different names, because
// consoles list both.
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

// The description explains the permissions that an administrator questions, and what the operator can do: it names the field of
// every feature that the description of 0.3 did not have.
func TestDescriptionOfTheBundle(t *testing.T) {
	description := strings.Join(strings.Fields(readBundled(t).Spec.Description), " ")
	for _, words := range []string{
		"**Secrets in all namespaces (read)**", "**The CRD and its webhook (update)**", "docs/guide/operations.md#watch-some-namespaces",
		"only cluster administrators to create Pods in its namespace", "Automatic rollback", "an Ingress, or an HTTPRoute", "`spec.autoscaling`",
		"Files from ConfigMaps and Secrets", "sidecars", "`spec.patches`", "PodMonitor", "canaries", "kubectl plugin",
	} {
		if !strings.Contains(description, words) {
			t.Errorf("the description does not say %q", words)
		}
	}
	anchor := regexp.MustCompile(`operations\.md#([a-z-]+)`).FindStringSubmatch(description)
	heading := "\n### " + strings.ReplaceAll(anchor[1], "-", " ") + "\n"
	if !strings.Contains(strings.ToLower(read(t, "docs/guide/operations.md")), heading) {
		t.Errorf("docs/guide/operations.md has no heading %q", heading)
	}
}
