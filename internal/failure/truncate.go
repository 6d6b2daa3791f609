package failure

import (
	"strings"
	"unicode/utf8"
)

// MaxMessage is the limit for a message in bytes. It is the API server's limit for the note of an
// Event.
const MaxMessage = 1024

// ellipsis ends a message that was cut.
const ellipsis = "…"

// Truncate returns a message of at most MaxMessage bytes, in valid UTF-8. It cuts a longer message
// between two characters.
func Truncate(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= MaxMessage {
		return message
	}
	end := MaxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
