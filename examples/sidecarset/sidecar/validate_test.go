package sidecar

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/test/refusal"
	"github.com/example/nginx-operator/examples/test/sample"
)

// Each manifest of testdata/refused/webhook has in its first line the message that its user sees.
func TestRefused(t *testing.T) {
	manifests, err := refusal.Read("../testdata/refused/webhook")
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range manifests {
		t.Run(manifest.Name, func(t *testing.T) {
			errs := Validate(sample.Read[v1alpha1.SidecarSet](t, "../testdata/refused/webhook/"+manifest.Name+".yaml"))
			if len(errs) != 1 || !strings.Contains(errs.ToAggregate().Error(), manifest.Want) {
				t.Errorf("want one error with\n%s\ngot\n%v", manifest.Want, errs)
			}
		})
	}
}

// What the schema refuses is refused here as well: it may have been stored before the schema had the rule.
func TestRulesOfTheSchema(t *testing.T) {
	for _, name := range []string{"no-selector", "no-containers", "empty-containers", "container-without-name", "name", "apiserver/container-twice", "apiserver/volume-twice"} {
		set := sample.Read[v1alpha1.SidecarSet](t, "../testdata/refused/"+name+".yaml")
		if errs := Validate(set); len(errs) != 1 {
			t.Errorf("%s: got %v", name, errs)
		}
	}
}

func TestSampleIsValid(t *testing.T) {
	set := sampleSet(t)
	if errs := Validate(set); len(errs) > 0 {
		t.Error(errs)
	}
	Default(&set.Spec)
	if errs := Validate(set); len(errs) > 0 {
		t.Errorf("with defaults: %v", errs)
	}
}
