package harness

import (
	"os"
	"regexp"
	"strings"
)

// olderAPIServer is the variable of envtest with the path of an API server. The tests run on an
// older one if it is set.
const olderAPIServer = "TEST_ASSET_KUBE_APISERVER"

// invalidValue also has a word after the value, because an older API server may not quote a value.
var invalidValue = regexp.MustCompile(`(?m)Invalid value: (?:(?:"(?:[^"\\]|\\.)*"|-?[\d.]+)(?:: |$))?(?:\w+: )?`)

// Says reports whether an error of the API server contains a text. Older API servers name the type
// in place of an invalid value, or another form of it, or one where newer ones have none. Invalid
// values are not compared there.
func Says(err error, text string) bool {
	if err == nil {
		return false
	}
	if !OnOlderAPIServer() {
		return strings.Contains(err.Error(), text)
	}
	return strings.Contains(WithoutValues(err.Error()), WithoutValues(text))
}

// OnOlderAPIServer reports whether the tests run on an older API server than that of the newest
// supported Kubernetes.
func OnOlderAPIServer() bool { return os.Getenv(olderAPIServer) != "" }

// WithoutValues removes the invalid values from messages of the API server.
func WithoutValues(text string) string {
	return invalidValue.ReplaceAllString(strings.ReplaceAll(text, "map[string]interface {}", ""), "Invalid value: ")
}
