package health

import (
	"strings"
	"testing"

	"github.com/example/nginx-operator/test/golden"
)

// TestEveryMessageIsInAGoldenFile verifies that reviewers see each message.
func TestEveryMessageIsInAGoldenFile(t *testing.T) {
	golden.Messages(t, map[string]string{
		strings.Join(messageForms, "\n"): "messages of nginx, which are compared and not written",
	}, "testdata/messages.txt", "testdata/messages-pods.txt", "testdata/messages-progress.txt", "testdata/messages-withheld.txt")
}
