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

	if c.spec.Content != nil && !strings.Contains(c.text, ContentDirectory) && !c.mayServe(ContentDirectory) {
		c.warnings.add(Problem{Field: "spec.content", Message: fmt.Sprintf(
			"the configuration does not reference %s, so the content is not served; add `root %s;`", ContentDirectory, ContentDirectory)})
	}
	for i, tls := range c.spec.TLS {
		directory := path.Join(TLSDirectory, tls.SecretName)
		if !strings.Contains(c.text, directory+"/") && !c.mayReadFrom(directory) {
			c.warnings.add(Problem{Field: fmt.Sprintf("spec.tls[%d]", i), Message: fmt.Sprintf(
				"the configuration does not reference %s, so the certificate is not served; set ssl_certificate and ssl_certificate_key", directory)})
		}
	}
}

// mayServe reports whether a root or an alias serves a directory, or can do so because it has a
// variable.
func (c *checker) mayServe(directory string) bool {
	return slices.ContainsFunc(c.withNames("root", "alias"), func(d *directive) bool {
		return exposes(d.first(), directory) || mayBegin(d.first(), directory)
	})
}

// mayBegin reports whether a file has a variable in its path, and the text before the variable is
// the beginning of a directory.
func mayBegin(file, directory string) bool {
	literal, _, hasVariable := strings.Cut(file, "$")
	return hasVariable && strings.HasPrefix(directory, literal)
}

// mayReadFrom reports whether a certificate or a key has a path with a variable that can be in a
// directory.
func (c *checker) mayReadFrom(directory string) bool {
	return slices.ContainsFunc(c.withNames(readAtStart...), func(d *directive) bool { return mayBegin(d.first(), directory+"/") })
}
