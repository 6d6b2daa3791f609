package resolve

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
)

// valuesFrom sets a configuration with a literal, a field, and a value of a key of ConfigMap
// environment. Without a text, the configuration is in ConfigMap servers.
func valuesFrom(text, key string) func(*v1alpha2.NginxOperatorSpec) {
	return func(spec *v1alpha2.NginxOperatorSpec) {
		spec.Config = &v1alpha2.Config{Inline: text}
		if text == "" {
			spec.Config.ConfigMapRef = &v1alpha2.ConfigMapKeyReference{Name: "servers"}
		}
		spec.Config.Values = []v1alpha2.ConfigValue{
			{Name: "BODY", ValueFrom: &v1alpha2.ConfigValueSource{
				ConfigMapKeyRef: &v1alpha2.ObjectKeyReference{Name: "environment", Key: key},
			}},
			{Name: "TENANT", ValueFrom: &v1alpha2.ConfigValueSource{FieldRef: &v1alpha2.ConfigValueField{FieldPath: "metadata.namespace"}}},
			{Name: "NAME", ValueFrom: &v1alpha2.ConfigValueSource{FieldRef: &v1alpha2.ConfigValueField{FieldPath: "metadata.name"}}},
			{Name: "GREETING", Value: "good $host"},
		}
	}
}

const valuedText = "server {\n    listen 8080;\n    client_max_body_size ${BODY};\n    return 200 \"${GREETING} ${TENANT}/${NAME}\";\n}\n"

// environment returns ConfigMap environment with a key, next to ConfigMap servers.
func environment(value string) []client.Object {
	return []client.Object{
		newConfigMap("environment", map[string]string{"body": value}), newConfigMap("servers", map[string]string{"nginx.conf": valuedText}),
	}
}

// TestResolveValues verifies the final text of an inline configuration and of one in a ConfigMap,
// that a changed value changes the hash of the user's part, that the text is read again with its
// values, and that the second reconcile reads nothing.
func TestResolveValues(t *testing.T) {
	for name, text := range map[string]string{"inline": valuedText, "in a ConfigMap": ""} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(valuesFrom(text, "body"))
			resolved := func(value string) operand.Inputs {
				r, reads := newResolver(t, asRead, environment(value)...)
				first, blockers, err := r.Resolve(t.Context(), object, nil)
				if err != nil || len(blockers) > 0 {
					t.Fatalf("%v, %v", blockers, err)
				}
				before := reads()
				second, _, err := r.Resolve(t.Context(), object, nil)
				if err != nil || reads() != before || second.Config.Hash != first.Config.Hash || second.ServersHash != first.ServersHash {
					t.Errorf("the second reconcile read %d more, %v", reads()-before, err)
				}
				files, err := r.ReadFiles(object, second)(t.Context())
				if diff := gocmp.Diff(first.Config.Files, files.Config); diff != "" || err != nil {
					t.Errorf("%v, read again (-first +second):\n%s", err, diff)
				}
				return first
			}

			first, same, changed := resolved("2m"), resolved("2m\n"), resolved("5m")
			want := strings.NewReplacer("${BODY}", "2m", "${GREETING}", "good $host", "${TENANT}", object.Namespace, "${NAME}", object.Name).
				Replace(valuedText)
			if got := first.Config.Files[nginxconf.ServersFile]; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if first.ServersHash == "" || same.ServersHash != first.ServersHash || changed.ServersHash == first.ServersHash ||
				changed.Config.Hash == first.Config.Hash {
				t.Errorf("hashes %q, %q, %q", first.ServersHash, same.ServersHash, changed.ServersHash)
			}
		})
	}
}

// TestResolveResolver verifies that a resolver needs the name servers of the cluster or its own, and
// that those of the cluster change the configuration but not the user's part.
func TestResolveResolver(t *testing.T) {
	object := fixture.NewObject(func(spec *v1alpha2.NginxOperatorSpec) {
		spec.Nginx = &v1alpha2.Nginx{Resolver: &v1alpha2.Resolver{}}
		spec.Config = &v1alpha2.Config{Inline: goodConfig}
	})
	hashes := map[string]bool{}
	for _, servers := range [][]string{nil, {"10.96.0.10"}, {"10.96.0.11"}} {
		r, _ := newResolver(t, asRead)
		r.Nameservers = servers
		in, blockers, err := r.Resolve(t.Context(), object, nil)
		if err != nil || (len(blockers) == 0) != (servers != nil) || in.ServersHash != "" {
			t.Errorf("%v: blockers %v, user's part %q, %v", servers, blockers, in.ServersHash, err)
		}
		hashes[in.Config.Hash] = true
	}
	if len(hashes) != 3 {
		t.Errorf("hashes %v", hashes)
	}
}
