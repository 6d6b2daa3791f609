package e2e

// The project's repository under its published URL, for tests that run the commands of a document
// as they are.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// repositoryURL is the URL from which users clone the repository.
const repositoryURL = "https://github.com/example/nginx-operator"

// serveRepository makes git read the repository with its published URL from this machine, until the
// tests end, for the commands that the tests start. Each release has its tag: this release the
// current commit, earlier releases the commit of their delivery.
func serveRepository(t *testing.T) {
	t.Helper()
	must(t, cloneRepository())
}

// cloneRepository makes the repository that serveRepository serves, at the first call.
var cloneRepository = sync.OnceValue(func() error {
	clone := filepath.Join(suite.dir, "repository.git")
	git := func(args ...string) error {
		_, err := command(context.Background(), "git", args...)
		return err
	}
	if err := git("clone", "--quiet", "--bare", "--shared", suite.repository, clone); err != nil {
		return err
	}
	for _, r := range suite.releases {
		commit := "HEAD"
		if r.version != suite.version {
			origin, err := os.ReadFile(filepath.Join(r.delivery, ".commit"))
			if err != nil {
				return fmt.Errorf("failed to find the commit of release %s: %w", r.version, err)
			}
			commit, _, _ = strings.Cut(string(origin), " ")
		}
		if err := git("-C", clone, "tag", "--force", "v"+r.version, commit); err != nil {
			return err
		}
	}
	// Environment variables, because a git configuration file belongs to the user.
	for name, value := range map[string]string{
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url.file://" + clone + ".insteadOf", "GIT_CONFIG_VALUE_0": repositoryURL,
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
})
