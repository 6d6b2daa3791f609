package v1_test

import (
	"testing"

	"github.com/example/nginx-operator/examples/test/refusal"
)

// What the schema takes and refuses, and what a user is told.
func TestSchema(t *testing.T) {
	refusal.Test(t, "../../../config/crd/tutorial.my.domain_foos.yaml", "../..")
}
