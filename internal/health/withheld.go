package health

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/wellknown"
)

// More users may read a status than Secrets or logs. So a message about a Pod that may see a Secret
// retains only its form, and its values are withheld. The location in a message of nginx does not
// show where the words come from: nginx reports a value of an included file at the end of the
// including block, with the line of that end.

// publicFromLog returns a line of a container's log without words that may quote a Secret, and a
// hint to append to the message, or "" if no word was removed.
func publicFromLog(pod *corev1.Pod, line, container string) (safe, hint string) {
	if line == "" || !cached.MaySeeSecrets(pod) {
		return line, ""
	}
	if safe = safeLine(line); safe == line {
		return safe, ""
	}
	return safe, fmt.Sprintf(" (withheld because it may quote a Secret; see: "+
		"kubectl logs -n %s -l %s=%s -c %s --previous --tail=-1 --ignore-errors)",
		pod.Namespace, wellknown.LabelInstance, pod.Labels[wellknown.LabelInstance], container)
}

// publicFromKubelet is publicFromLog for a message of the kubelet about a container that it cannot
// start. Such a message quotes commands and paths with expanded environment variables.
func publicFromKubelet(pod *corev1.Pod, message string) (safe, hint string) {
	if !cached.MaySeeSecrets(pod) || safeOfKubelet.MatchString(message) {
		return message, ""
	}
	return elided, fmt.Sprintf(" (withheld because it may quote a Secret; see: kubectl describe pods -n %s -l %s=%s)",
		pod.Namespace, wellknown.LabelInstance, pod.Labels[wellknown.LabelInstance])
}

// elided replaces the words that are withheld.
const elided = "…"

// safeLine returns the form of a line with [emerg] of nginx's log. It elides any other line.
func safeLine(line string) string {
	words, isFatal := strings.CutPrefix(line, "[emerg] ")
	if !isFatal {
		return elided
	}

	location := ""
	at := nginxLocation.FindStringSubmatch(words)
	if at != nil && at[1] == modulesFile && loadFailure.MatchString(words) {
		return line
	}
	if at != nil && isKnownFile(at[1]) && strings.Count(words, `"`)%2 == 0 {
		words, location = strings.TrimSuffix(words, at[0]), at[0]
	}
	return "[emerg] " + safeWords(words) + location
}

// isKnownFile reports whether a file belongs to the configuration or to spec.files, whose paths are
// public.
func isKnownFile(name string) bool {
	return name == path.Join(nginxconf.Directory, nginxconf.MainFile) || nginxconf.FieldOf(name) != "" ||
		declaredFile.MatchString(name) || configKey.MatchString(nginxconf.KeyOf(name))
}

// safeWords elides the values in a message, except for nginx's own words. If the form of the
// message is unknown, it retains only the name of a failed system call.
func safeWords(words string) string {
	form, values := quoted.ReplaceAllString(words, `""`), quoted.FindAllString(words, -1)
	if !slices.Contains(messageForms, systemError.ReplaceAllString(form, "")) {
		return systemCallName.FindString(words) + elided
	}

	at := 0
	return quoted.ReplaceAllStringFunc(words, func(string) string {
		value := values[at]
		at++
		if text := strings.Trim(value, `"`); nginxconf.IsDirective(text) || slices.Contains(nginxWords, text) {
			return value
		}
		return `"` + elided + `"`
	})
}

var (
	// declaredFile matches the paths that spec.files can have in a container.
	declaredFile = regexp.MustCompile(`^` + nginxconf.FilesDirectory + `/[A-Za-z0-9._/-]{1,381}$`)
	// configKey matches the keys that a mask of spec.config can match.
	configKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)
	quoted    = regexp.MustCompile(`"[^"]*"`)
	// loadFailure matches nginx's messages about a module that cannot be loaded (ngx_module.c and
	// nginx.c).
	loadFailure = regexp.MustCompile(`^(?:dlopen\(\) "|dlsym\(\) "|module "|"load_module" directive )`)
	// systemError matches the cause of a failed system call: " (2: No such file or directory)".
	systemError = regexp.MustCompile(` \(\d{1,3}: [A-Z][A-Za-z ]{2,60}\)$`)
	// systemCallName matches the start of a message about a failed system call.
	systemCallName = regexp.MustCompile(`^(?:still could not )?(?:bind|chown|connect|listen|mkdir|open|rename|socket|stat|write)\(\) `)
	// nginxWords are nginx's own words that it writes in quotes.
	nginxWords = []string{"{", "}", ";", ")", "on", "off", "if", "limit_except"}
	// messageForms are nginx's messages that have values only in quotes, with "" for each value.
	messageForms = strings.Split(`"" cannot have URI part in location given by regular expression, `+
		`or inside named location, or inside "" statement, or inside "" block
"" directive invalid value
"" directive is duplicate
"" directive is not allowed here
conflicting parameter ""
directive "" has no opening ""
directive "" is not terminated by ""
duplicate location ""
duplicate upstream ""
host not found in upstream ""
host not found in resolver ""
invalid address or mask ""
invalid condition ""
invalid event type ""
invalid host in upstream ""
invalid network ""
invalid number of arguments in "" directive
invalid parameter ""
invalid port in upstream ""
invalid rate ""
invalid return code ""
invalid URL prefix
invalid URL prefix in ""
invalid value ""
invalid value "" in "" directive
invalid value "" in "" directive, it must be "" or ""
invalid variable name ""
location "" cannot be inside the exact location ""
location "" cannot be inside the named location ""
location "" is outside location ""
named location "" can be on the server level only
no "" is defined for the "" directive
no host in upstream ""
no port in upstream ""
no servers are inside upstream
open() "" failed
stat() "" failed
mkdir() "" failed
the "" parameter is duplicate
thread pool "" not found
the duplicate "" variable
unexpected ""
unexpected end of file, expecting ""
unexpected end of file, expecting "" or ""
unexpected end of parameter, expecting "" or ""
unknown "" variable
unknown directive ""
unknown log format ""
unknown parameter ""
unsupported parameter ""
zero size shared memory zone ""`, "\n")
)
