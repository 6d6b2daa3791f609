package nginxconf

import "fmt"

// MaxBytes is the maximum size of all files of a configuration in bytes. It is the limit of a
// ConfigMap, minus room for its metadata.
const MaxBytes = 1<<20 - 16<<10

// slots limits concurrent checks, because each check needs memory.
var slots = make(chan struct{}, 2)

func tooLarge(size int) Problem {
	const message = "the configuration has %d bytes, and the limit is %d. " + splitRemedy
	return Problem{Message: fmt.Sprintf(message, size, MaxBytes)}
}
