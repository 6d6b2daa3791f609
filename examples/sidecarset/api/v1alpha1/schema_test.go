package v1alpha1_test

import (
	"testing"

	"github.com/example/nginx-operator/examples/test/refusal"
)

// What the schema takes and refuses, and what a user is told.
func TestSchema(t *testing.T) {
	refusal.Test(t, "../../../config/crd/apps.kruise.io_sidecarsets.yaml", "../..")
}
