package revision

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestForgedConfigMaps verifies that a mutable ConfigMap, and one with other data, which a tenant
// could create under the same name, is detected, by the data of the spec and by a stored hash.
func TestForgedConfigMaps(t *testing.T) {
	object := fixture.NewObject(fixture.WithFiles("a/b.conf", "c.mmdb"))
	copied := operand.NewDeclaredFiles(map[string][]byte{"a/b.conf": []byte("one"), "c.mmdb": {0xff, 0}})
	pages := operand.NewContent(&corev1.ConfigMap{Data: map[string]string{"index.html": "hello"}}, nil)
	in := operand.Inputs{
		Image: fixture.Image, Config: operand.NewConfiguration(nginxconf.Files{nginxconf.MainFile: "# main"}),
		Content: &operand.Content{Hash: pages.Hash}, Files: &operand.Content{Hash: copied.Hash},
	}
	reads := 0
	genuine := NewContent(object, in, func(context.Context) (operand.Files, error) {
		reads++
		return operand.Files{Config: in.Config.Files, Text: pages.Text, FileText: copied.Text, FileBinary: copied.Binary}, nil
	})
	for _, child := range operand.Desired(object, in)[:3] {
		declared := child.(*corev1.ConfigMap)
		live := declared.DeepCopy()
		live.Data, live.BinaryData = nil, nil
		if err := genuine.Fill(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		digest, err := digestOf(live)
		if err != nil {
			t.Fatal(err)
		}
		for how, content := range map[string]apply.Content{"compared": genuine, "hashed": digests{of: map[string]string{declared.Name: digest}}} {
			t.Run(how+" "+declared.Name, func(t *testing.T) {
				for name, test := range map[string]struct {
					change func(*corev1.ConfigMap)
					want   bool
				}{
					"genuine":     {func(*corev1.ConfigMap) {}, true},
					"other data":  {func(c *corev1.ConfigMap) { c.Data = map[string]string{nginxconf.MainFile: "# theirs"} }, false},
					"more data":   {func(c *corev1.ConfigMap) { c.Data = map[string]string{"more": "x", nginxconf.MainFile: "# main"} }, false},
					"more binary": {func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"more": {1}} }, false},
					"mutable":     {func(c *corev1.ConfigMap) { c.Immutable = ptr.To(false) }, false},
					"no marker":   {func(c *corev1.ConfigMap) { c.Immutable = nil }, false},
				} {
					now := live.DeepCopy()
					test.change(now)
					got, err := content.Holds(t.Context(), declared.DeepCopy(), now)
					if err != nil || got != test.want {
						t.Errorf("%s: %t, %v", name, got, err)
					}
				}
				if holds, err := content.Holds(t.Context(), &corev1.Service{}, &corev1.Service{}); !holds || err != nil {
					t.Errorf("a Service: %t, %v", holds, err)
				}
			})
		}
	}
	if reads != 1 {
		t.Errorf("the files were read %d times", reads)
	}
}

// TestLostConfigMap verifies that a lost ConfigMap of stored Pods is created again only if the spec
// renders it.
func TestLostConfigMap(t *testing.T) {
	object := fixture.NewObject()
	in := operand.Inputs{Config: operand.NewConfiguration(nginxconf.Files{nginxconf.MainFile: "# main"})}
	rendered := operand.Desired(object, in)[0].(*corev1.ConfigMap)
	spec := &Declaration{
		Children: []client.Object{rendered},
		Content: NewContent(object, in, func(context.Context) (operand.Files, error) {
			return operand.Files{Config: in.Config.Files}, nil
		}),
	}
	same, other := rendered.DeepCopy(), rendered.DeepCopy()
	same.Data, other.Data, other.Name = nil, nil, "web-other"
	lost := Lost{}
	for name, test := range map[string]struct {
		spec      *Declaration
		configMap *corev1.ConfigMap
		lost      bool
	}{
		"the spec renders it":         {spec, same, false},
		"the spec renders another":    {spec, other, true},
		"the spec cannot be rendered": {nil, same.DeepCopy(), true},
	} {
		err := digests{spec: test.spec}.Fill(t.Context(), test.configMap)
		if errors.As(err, &lost) != test.lost || test.lost != (test.configMap.Data == nil) {
			t.Errorf("%s: %v, %v", name, test.configMap.Data, err)
		}
	}
}
