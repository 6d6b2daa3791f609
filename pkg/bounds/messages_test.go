package bounds

import (
	"testing"

	"github.com/example/nginx-operator/test/golden"
)

// TestMessages verifies that each message is in a golden file of the webhooks.
func TestMessages(t *testing.T) {
	golden.Messages(t, nil, "../../internal/webhook/testdata/reviews.txt", "../../internal/webhook/testdata/messages.txt")
}
