package nginxconf

import (
	"path"
	"slices"
	"strings"
)

// imageDirectory is the directory to which nginx resolves relative paths.
const imageDirectory = "/etc/nginx"

// secretPlace is a file or directory in a Pod that clients must not read, and a description of its
// content.
type secretPlace struct{ path, holds string }

// everyPod are the secret places of every Pod. The list cannot be complete: SECURITY.md describes
// who can read the mounted files.
var everyPod = []secretPlace{
	{TLSDirectory, "private keys"},
	{Directory, "configuration"},
	{"/proc", "environment and files of processes"},
	{"/var/run/secrets", "tokens of ServiceAccounts"},
	{"/run/secrets", "tokens of ServiceAccounts"},
}

// secretPlaces returns the secret places in the Pods of the spec.
func (c *checker) secretPlaces() []secretPlace {
	places := slices.Clone(everyPod)
	for _, file := range c.spec.Files {
		if file.SecretRef != nil {
			places = append(places, secretPlace{path.Join(FilesDirectory, file.Path), "key of a Secret"})
		}
	}

	for _, mount := range c.mounts {
		if mount.secret {
			places = append(places, secretPlace{mount.path, "volume " + mount.volume + " with a Secret or token"})
		}
	}

	return places
}

// checkExposed warns of a root or an alias that lets clients read a secret place.
func (c *checker) checkExposed() {
	places := c.secretPlaces()
	for _, d := range c.withNames("root", "alias") {
		at := slices.IndexFunc(places, func(place secretPlace) bool { return exposes(d.first(), place.path) })
		if at >= 0 {
			c.warn(d, "%s %s: clients can read %s (%s). Use a directory that has only public files",
				d.name, d.first(), places[at].path, places[at].holds)
		}
	}
}

// exposes reports whether a root or an alias serves a place: the served path is the place, is below
// it, or is a directory above it. If the served path has a variable, only the directory before the
// variable is known.
func exposes(served, place string) bool {
	literal, _, hasVariable := strings.Cut(served, "$")
	if hasVariable {
		literal = literal[:strings.LastIndex(literal, "/")+1]
	}
	if literal == "" {
		return false
	}

	if !path.IsAbs(literal) {
		literal = path.Join(imageDirectory, literal)
	}

	literal = path.Clean(literal)
	return isWithin(literal, place) || !hasVariable && (literal == "/" || isBelow(place, literal))
}
