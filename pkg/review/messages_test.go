package review

import (
	"testing"

	"github.com/example/nginx-operator/test/golden"
)

// TestMessages verifies that each message is in the golden file of the webhooks.
func TestMessages(t *testing.T) {
	const ofLog = "a message of the log"
	golden.Messages(t, map[string]string{
		"Rejected an AdmissionReview": ofLog, "Failed to answer an AdmissionReview": ofLog,
		"Failed to encode the patch of an admission response": ofLog,
		"failed to encode the patch":                          "every patch can be encoded",
	}, "../../internal/webhook/testdata/reviews.txt")
}
