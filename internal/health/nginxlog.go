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
// One exit is final if it follows from the text alone: a host or a file that is missing may exist
// at the next start. An error in the operator's own file is caused by the image, and a failed
// system call by the node, so both are a crash loop.
func nginxVerdict(exitCode int32, line string) *failure.Failure {
	verdict, refused := strings.CutPrefix(line, "[emerg] ")
	if !refused || exitCode != 1 {
		return nil
	}

	message, final := "nginx refuses its configuration: "+verdict, refusedText.MatchString(verdict)
	at := nginxLocation.FindStringSubmatch(verdict)
	switch {
	case at == nil && systemCall.MatchString(verdict), at != nil && at[1] == path.Join(nginxconf.Directory, nginxconf.MainFile):
		return nil
	case at != nil && at[1] == path.Join(nginxconf.Directory, nginxconf.ServersFile):
		message = fmt.Sprintf("nginx refuses spec.config, line %s: %s", at[2], strings.TrimSuffix(verdict, at[0]))
	case at != nil && nginxconf.KeyOf(at[1]) != "":
		message = fmt.Sprintf("nginx refuses spec.config, key %q, line %s: %s",
			nginxconf.KeyOf(at[1]), at[2], strings.TrimSuffix(verdict, at[0]))
	}

	return &failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: message, Certain: final, Final: final}
}

// refusedText matches nginx's messages that depend on nothing but the text (ngx_conf_file.c,
// ngx_http_core_module.c, ngx_http_variables.c, and ngx_http.c of nginx 1.29).
var refusedText = regexp.MustCompile(`^(?:unknown (?:directive|parameter|log format|"[^"]*" variable)` +
	`|unexpected (?:"|end of (?:file|parameter))|value must be ` +
	`|too (?:long|many|few) (?:parameter|arguments|values)` +
	`|directive "[^"]*" (?:is not terminated by|has no opening)` +
	`|"[^"]*" directive (?:is (?:not allowed here|duplicate)|invalid value)` +
	`|invalid (?:number of arguments in|value "|value in|parameter|arguments|variable name|condition|URL prefix|location modifier)` +
	`|duplicate (?:location|upstream|listen|default server|MIME type|value)|a duplicate (?:listen|default server)` +
	`|location "[^"]*" (?:is outside location|cannot be inside))`)

var (
	// randomPodName and podReference match the parts of messages that differ from Pod to Pod.
	randomPodName = regexp.MustCompile(`pods "[^"]*" is `)
	podReference  = regexp.MustCompile(` \(pod: ".*\)$`)
	// nginxLocation matches the file and the line of an error in a configuration.
	nginxLocation = regexp.MustCompile(` in (/\S+):(\d+)$`)
	// systemCall matches the start of a message such as "bind() to 0.0.0.0:80 failed".
	systemCall = regexp.MustCompile(`^(still could not )?\w+\(.*\)`)
)
