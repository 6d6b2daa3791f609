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

	refusal := failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Final: refusedText.MatchString(verdict)}
	refusal.Certain = refusal.Final
	at, place := nginxLocation.FindStringSubmatch(verdict), ""
	switch {
	case at == nil && systemCall.MatchString(verdict), at != nil && at[1] == path.Join(nginxconf.Directory, nginxconf.MainFile):
		return nil
	case at != nil:
		place = placeOf(at[1], at[2])
		// The file of a module does not come while the image is the same.
		refusal.Certain = refusal.Certain || at[1] == modulesFile
	}

	refusal.Message = "nginx refuses its configuration: " + verdict
	if place != "" {
		refusal.Message = fmt.Sprintf("nginx refuses %s: %s", place, strings.TrimSuffix(verdict, at[0]))
	}
	return &refusal
}

// placeOf returns the field of the spec, with the key and the line, that has a line of a
// configuration, or "".
func placeOf(file, line string) string {
	field, key := nginxconf.FieldOf(file), nginxconf.KeyOf(file)
	switch {
	case key != "":
		return fmt.Sprintf("spec.config, key %q, line %s", key, line)
	case field == "", file == modulesFile: // each line has the name of its module
		return field
	}
	return fmt.Sprintf("%s, line %s", field, line)
}

// modulesFile has no words of the user but the names of modules.
var modulesFile = path.Join(nginxconf.Directory, nginxconf.ModulesFile)

// refusedText matches nginx's messages that depend on nothing but the text (ngx_conf_file.c,
// ngx_http_core_module.c, ngx_http_variables.c, and ngx_http.c of nginx 1.29).
var refusedText = regexp.MustCompile(`^(?:unknown (?:directive|parameter|log format|"[^"]*" variable)` +
	`|unexpected (?:"|end of (?:file|parameter))|value must be ` +
	`|too (?:long|many|few) (?:parameter|arguments|values)` +
	`|directive "[^"]*" (?:is not terminated by|has no opening)` +
	`|"[^"]*" directive (?:is (?:not allowed here|duplicate)|invalid value)` +
	`|invalid (?:event type|number of arguments in|value "|value in|parameter|arguments|variable name)` +
	`|invalid (?:condition|URL prefix|location modifier)|thread pool "[^"]*" not found` +
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
