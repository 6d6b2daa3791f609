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
// One exit is final if it follows from the text alone, because nginx reads the same text at the
// next start. A host that is not found, or a missing file, may exist then. The file of spec.config
// has only the user's text, so line numbers are the user's. An error in the operator's file is
// caused by the image, and a failed system call by the node. These two are a crash loop.
func nginxVerdict(exitCode int32, line string) *failure.Failure {
	verdict, refused := strings.CutPrefix(line, "[emerg] ")
	if !refused || exitCode != 1 {
		return nil
	}
	final := refusedText.MatchString(verdict)
	found := nginxLocation.FindStringSubmatch(verdict)
	switch {
	case found == nil && systemCall.MatchString(verdict), found != nil && found[1] == path.Join(nginxconf.Directory, nginxconf.MainFile):
		return nil
	case found != nil && found[1] == path.Join(nginxconf.Directory, nginxconf.ServersFile):
		words := strings.TrimSuffix(verdict, found[0])
		return &failure.Failure{
			Reason:  v1alpha2.ReasonInvalidConfiguration,
			Message: fmt.Sprintf("nginx refuses spec.config, line %s: %s", found[2], words),
			Certain: final, Final: final,
		}
	}
	return &failure.Failure{
		Reason:  v1alpha2.ReasonInvalidConfiguration,
		Message: "nginx refuses its configuration: " + verdict,
		Certain: final, Final: final,
	}
}

// refusedText matches nginx's messages about syntax, directives, and parameters, from its parser
// (src/core/ngx_conf_file.c, ngx_http_core_module.c, ngx_http_variables.c, and ngx_http.c of nginx
// 1.29). They depend on nothing but the text.
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
	// systemCall matches the start of a message about the node, such as "bind() to 0.0.0.0:80
	// failed".
	systemCall = regexp.MustCompile(`^(still could not )?\w+\(.*\)`)
)
