package health

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// nginxVerdict returns why nginx refuses its configuration, or nil if it ended for another reason.
// One exit proves a refusal, because nginx reads the same text at the next start. The file of
// spec.config has only the user's text, so line numbers are the user's. An error in the operator's
// file is caused by the image, and a failed system call by the node. These two count only in a
// crash loop.
func nginxVerdict(exitCode int32, line string) *failure.Failure {
	verdict, refused := strings.CutPrefix(line, "[emerg] ")
	if !refused || exitCode != 1 {
		return nil
	}
	found := nginxLocation.FindStringSubmatch(verdict)
	switch {
	case found == nil && systemCall.MatchString(verdict), found != nil && found[1] == path.Join(nginxconf.Directory, nginxconf.MainFile):
		return nil
	case found != nil && found[1] == path.Join(nginxconf.Directory, nginxconf.ServersFile):
		words := strings.TrimSuffix(verdict, found[0])
		return &failure.Failure{
			Reason:  v1alpha2.ReasonInvalidConfiguration,
			Message: fmt.Sprintf("nginx refuses spec.config, line %s: %s", found[2], words),
		}
	}
	return &failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: "nginx refuses its configuration: " + verdict}
}

var (
	// randomPodName and podReference match the parts of messages that differ from Pod to Pod.
	randomPodName = regexp.MustCompile(`pods "[^"]*" is `)
	podReference  = regexp.MustCompile(` \(pod: ".*\)$`)
	// nginxLocation matches the file and the line of an error in a configuration.
	nginxLocation = regexp.MustCompile(` in (/\S+):(\d+)$`)
	// systemCall matches the start of a message about the node, such as "bind() to 0.0.0.0:80
	// failed".
	systemCall = regexp.MustCompile(`^(still could not )?\w+\(.*\)`)
)
