// Package docs reads what the documentation tells users to run, so that tests run exactly that.
package docs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	tryItSection = regexp.MustCompile(`(?ms)^## Try it\n(.*?)(?:^## |\z)`)
	shellFence   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	yamlFence    = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	textFence    = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
)

// TryIt returns the lines that the README's section "Try it" tells readers to run, and what the
// last of them answers.
func TryIt(readme string) (script, answer string, err error) {
	section := tryItSection.FindStringSubmatch(readme)
	if section == nil {
		return "", "", errors.New(`the README has no section "Try it"`)
	}
	scripts, answers := shellFence.FindAllStringSubmatch(section[1], -1), textFence.FindAllStringSubmatch(section[1], -1)
	if len(scripts) != 1 || len(answers) != 1 {
		return "", "", fmt.Errorf(`the section "Try it" has %d sh and %d text blocks, want one of each`, len(scripts), len(answers))
	}
	return scripts[0][1], answers[0][1], nil
}

// Section returns the lines that a section tells readers to run, in the only sh block under its
// heading.
func Section(page, heading string) (string, error) { return onlyBlock(page, heading, "sh", shellFence) }

// Manifests returns the manifests that a section tells readers to apply, in the only yaml block
// under its heading.
func Manifests(page, heading string) (string, error) {
	return onlyBlock(page, heading, "yaml", yamlFence)
}

func onlyBlock(page, heading, language string, fence *regexp.Regexp) (string, error) {
	section, err := sectionOf(page, heading)
	if err != nil {
		return "", err
	}
	blocks := fence.FindAllStringSubmatch(section, -1)
	if len(blocks) != 1 {
		return "", fmt.Errorf("the section %q has %d %s blocks, want one", heading, len(blocks), language)
	}
	return blocks[0][1], nil
}

// sectionOf returns the text below a heading of the second level or deeper, up to the next one. A
// line of a block that starts with one "#" is a comment.
func sectionOf(page, heading string) (string, error) {
	section := regexp.MustCompile(`(?ms)^##+ ` + regexp.QuoteMeta(heading) + `\n(.*?)(?:^##+ |\z)`).FindStringSubmatch(page)
	if section == nil {
		return "", fmt.Errorf("the page has no section %q", heading)
	}
	return section[1], nil
}

var yamlFile = regexp.MustCompile("(?ms)^```yaml\n# ([a-z-]+\\.yaml)\n(.*?)^```$")

// Files returns the files that a section tells readers to write, by name. Each is a yaml block
// under its heading whose first line is a comment with the name.
func Files(page, heading string) (map[string]string, error) {
	section, err := sectionOf(page, heading)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, block := range yamlFile.FindAllStringSubmatch(section, -1) {
		out[block[1]] = block[2]
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the section %q has no files", heading)
	}
	return out, nil
}

var remoteDirectory = regexp.MustCompile(`https://github\.com/example/nginx-operator//(\S+)\?ref=v\S+`)

// WriteOverlay writes the files of a section, a kustomize overlay, into a directory. They reference
// the directories of a local tree of the release instead of its URL.
func WriteOverlay(page, heading, directory, tree string) error {
	files, err := Files(page, heading)
	if err != nil {
		return err
	}
	// kustomize does not accept an absolute path.
	relative, err := filepath.Rel(directory, tree)
	if err != nil {
		return fmt.Errorf("failed to find the way to %s: %w", tree, err)
	}
	for name, text := range files {
		text = remoteDirectory.ReplaceAllString(text, filepath.ToSlash(relative)+"/$1")
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("failed to write the overlay: %w", err)
		}
	}
	return nil
}

// Request is a request that the comment of a sample names, and what it answers.
type Request struct {
	// URL names a Service of the sample, as a Pod in the same namespace does.
	URL *url.URL
	// Header is what the request carries, Host included.
	Header http.Header
	// User is nil unless the request has a password.
	User *url.Userinfo
	// Status and Text are the answer; the text is in its body or in one of its headers.
	Status int
	Text   string
}

var (
	requestPattern = regexp.MustCompile(`(?m)^# \$ curl (.+)\n# (\d{3})(?: (.+))?$`)
	commandPattern = regexp.MustCompile(`(?m)^# \$ `)
	wordPattern    = regexp.MustCompile(`'[^']*'|#.*|\S+`)
)

// Requests returns the requests in the comment of a sample, in their order.
func Requests(sample string) ([]Request, error) {
	found := requestPattern.FindAllStringSubmatch(sample, -1)
	if commands := len(commandPattern.FindAllString(sample, -1)); commands == 0 || commands != len(found) {
		return nil, fmt.Errorf("%d of %d commands are a curl with its answer in the next line", len(found), commands)
	}
	var out []Request
	for _, match := range found {
		request, err := parseCurl(match[1])
		if err != nil {
			return nil, fmt.Errorf("failed to read curl %s: %w", match[1], err)
		}
		if request.Status, err = strconv.Atoi(match[2]); err != nil {
			return nil, fmt.Errorf("failed to read the status: %w", err)
		}
		request.Text = match[3]
		out = append(out, request)
	}
	return out, nil
}

// parseCurl reads the arguments of curl, of which it knows what samples use.
func parseCurl(arguments string) (Request, error) {
	out := Request{Header: http.Header{}}
	words := wordPattern.FindAllString(arguments, -1)
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], "'")
		switch {
		case word == "-i", word == "-k", strings.HasPrefix(word, "#"):
			continue
		case (word == "-H" || word == "-u") && i+1 < len(words):
			i++
			name, value, found := strings.Cut(strings.Trim(words[i], "'"), ":")
			if !found {
				return out, fmt.Errorf("%s has no colon", words[i])
			}
			if word == "-u" {
				out.User = url.UserPassword(name, value)
			} else {
				out.Header.Set(name, strings.TrimSpace(value))
			}
		case strings.HasPrefix(word, "http") && out.URL == nil:
			address, err := url.Parse(word)
			if err != nil {
				return out, fmt.Errorf("failed to read the address: %w", err)
			}
			out.URL = address
		default:
			return out, fmt.Errorf("%q is not known here", word)
		}
	}
	if out.URL == nil {
		return out, errors.New("it has no address")
	}
	return out, nil
}

// Port returns the number of the port that the request goes to.
func (r Request) Port() (int32, error) {
	text := r.URL.Port()
	if text == "" {
		text = map[string]string{"http": "80", "https": "443"}[r.URL.Scheme]
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("failed to read the port of %s: %w", r.URL, err)
	}
	return int32(port), nil
}

// Check returns an error that shows the answer where it is another than the sample says.
func (r Request) Check(response *http.Response, body string) error {
	var headers strings.Builder
	if err := response.Header.Write(&headers); err != nil {
		return fmt.Errorf("failed to write the headers: %w", err)
	}
	if response.StatusCode != r.Status || !strings.Contains(headers.String(), r.Text) && !strings.Contains(body, r.Text) {
		return fmt.Errorf("%s answered %d instead of %d %s:\n%s\n%.500s", r.URL, response.StatusCode, r.Status, r.Text, headers.String(), body)
	}
	return nil
}

// NewRequest makes the request to the Service as it is named in the sample.
func (r Request) NewRequest(ctx context.Context) (*http.Request, error) {
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("failed to make a request: %w", err)
	}
	out.Header = r.Header.Clone()
	if host := r.Header.Get("Host"); host != "" {
		out.Host = host
	}
	if r.User != nil {
		password, _ := r.User.Password()
		out.SetBasicAuth(r.User.Username(), password)
	}
	return out, nil
}
