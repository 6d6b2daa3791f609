package nginxconf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/example/nginx-operator/internal/defaults"
)

// requestLogFormat is the name of the log format from which requests are counted.
const requestLogFormat = "nginx_operator_requests"

// requestLog returns the directive that sends each request to the receiver of request metrics.
func requestLog(port int32) string {
	return fmt.Sprintf("access_log syslog:server=127.0.0.1:%d,facility=local7,tag=nginx_requests,nohostname %s;", port, requestLogFormat)
}

// checkRequestLog warns of requests that are not counted: a block with an access_log does not
// inherit the operator's line, and off disables all lines of its block.
func (c *checker) checkRequestLog() {
	port := defaults.RequestLogPort(c.spec)
	if port == 0 {
		return
	}

	for _, d := range c.withNames("log_format") {
		if d.first() == requestLogFormat {
			c.refuse(d, `duplicate "log_format" name %q: spec.monitoring.requestMetrics defines it. Use another name`, d.first())
		}
	}

	line, seen := requestLog(port), map[*directive]bool{}
	counts := func(log *directive) bool { return "access_log "+strings.Join(log.args, " ")+";" == line }
	for _, d := range c.withNames("access_log") {
		if seen[d.parent] {
			continue
		}
		seen[d.parent] = true

		logs := c.children(d.parent, "access_log")
		off := slices.IndexFunc(logs, func(log *directive) bool { return log.first() == "off" })
		isCounted := slices.ContainsFunc(logs, counts)
		switch {
		case off >= 0 && d.parent == nil:
			c.warn(logs[off], "access_log off: no request is counted, because it disables `"+line+
				"`, which spec.monitoring.requestMetrics adds. Remove it, and set spec.nginx.accessLog to false")
		case off >= 0:
			c.warn(logs[off], "access_log off: requests to this block are not counted. Replace it with `"+line+"`")
		case d.parent == nil && isCounted:
			c.warn(d, "each request is counted twice, because spec.monitoring.requestMetrics adds `"+line+"` here. Remove the line")
		case d.parent != nil && !isCounted:
			c.warn(d, "requests to this block are not counted, because its access_log replaces that of the http context. Add `"+line+"`")
		}
	}
}
