package nginxconf

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// checkUnused warns of content and certificates that the configuration does not serve. A file whose
// text is unknown may serve them, so it prevents these warnings.
func (c *checker) checkUnused() {
	if c.unseen || c.unseenEntries {
		return
	}

	isServed := slices.ContainsFunc(c.withNames("root", "alias"), func(d *directive) bool {
		return exposes(d.first(), ContentDirectory) || mayBegin(d.first(), ContentDirectory)
	})
	if c.spec.Content != nil && !isServed && !c.servers.contains(ContentDirectory) {
		c.warnings.add(Problem{Field: "spec.content", Message: fmt.Sprintf(
			"no directive uses %s, so the content is not served. Add `root %s;`", ContentDirectory, ContentDirectory)})
	}

	certificates := c.withNames(readAtStart...)
	for i, tls := range c.spec.TLS {
		directory := path.Join(TLSDirectory, tls.SecretName)
		isRead := slices.ContainsFunc(certificates, func(d *directive) bool { return mayBegin(d.first(), directory+"/") })
		if !isRead && !c.servers.contains(directory+"/") {
			c.warnings.add(Problem{Field: fmt.Sprintf("spec.tls[%d]", i), Message: fmt.Sprintf(
				"no directive uses %s, so the certificate is not served. Set ssl_certificate and ssl_certificate_key", directory)})
		}
	}
}

// mayBegin reports whether a file has a variable in its path, and the text before the variable is
// the beginning of a directory.
func mayBegin(file, directory string) bool {
	literal, _, hasVariable := strings.Cut(file, "$")
	return hasVariable && strings.HasPrefix(directory, literal)
}
