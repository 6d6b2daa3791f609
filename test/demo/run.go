package main

// This file runs commands, and sends the request.

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/nginx-operator/test/harness"
)

// make makes targets of this repository and passes on what is printed, because the first time takes minutes.
func (d *demo) make(ctx context.Context, targets ...string) error {
	cmd := exec.CommandContext(ctx, "make", targets...)
	cmd.Dir = d.repo
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("failed to run make: %w", err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("failed to run make: %w", err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Print(indent(lines.Text()))
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("failed to make %s: %w", strings.Join(targets, " "), err)
	}
	return nil
}

// inCluster runs a command where the cluster can be reached and returns what it printed. Its error holds that, too.
func (d *demo) inCluster(ctx context.Context, stdin, name string, args ...string) (string, error) {
	stdout, _, err := d.outputs(ctx, stdin, name, args...)
	return stdout, err
}

// outputs does the same and returns what went to stderr as well.
func (d *demo) outputs(ctx context.Context, stdin, name string, args ...string) (stdout, stderr string, err error) {
	args = append([]string{name}, args...)
	if d.local && !d.inside {
		args = append([]string{filepath.Join(d.repo, "bin", "cluster"), "exec", "--"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = d.repo
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("failed to run %s: %w\n%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), errOut.String())
	}
	return out.String(), errOut.String(), err
}

func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	return d.inCluster(ctx, "", "kubectl", args...)
}

func (d *demo) apply(ctx context.Context, manifest string) error {
	_, err := d.inCluster(ctx, manifest, "kubectl", "apply", "--filename=-")
	return err
}

func (d *demo) waitForReady(ctx context.Context, namespace string, objects ...string) error {
	_, err := d.kubectl(ctx, append([]string{"wait", "-n", namespace, "--for=condition=Ready", "--timeout=2m"}, objects...)...)
	return err
}

// get sends a request and prints the status line and the first lines of the answer. It tries again for a moment, because
// the nodes follow a Service that is new or has moved within about a second.
func get(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, serviceDelay)
	defer cancel()
	client := newClient(2*time.Second, false)
	var response *answer
	err := harness.Eventually(ctx, 200*time.Millisecond, func(ctx context.Context) (err error) {
		response, err = getOnce(ctx, client, url)
		return err
	})
	if err != nil {
		return fmt.Errorf("failed to get %s: %w", url, err)
	}
	_, err = fmt.Fprintf(out, "%s %s\nServer: %s\n\n%s", response.Proto, response.Status, response.Header.Get("Server"), response.text)
	return err
}

// serviceDelay bounds how long the nodes may take to follow a Service.
const serviceDelay = 10 * time.Second

// newClient returns a client whose requests take no longer than a limit, on one connection or with a new one for each.
func newClient(limit time.Duration, keepAlive bool) *http.Client {
	return &http.Client{Timeout: limit, Transport: &http.Transport{
		DisableKeepAlives: !keepAlive,
		// #nosec G402 -- the certificate of the demo signs itself
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

type answer struct {
	*http.Response
	text string
}

func getOnce(ctx context.Context, client *http.Client, url string) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) // #nosec G704 -- the user says what to ask
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request) // #nosec G704 -- the user says what to ask
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	return &answer{response, firstLines(string(body))}, nil
}

// firstLines returns the beginning of a text.
func firstLines(text string) string {
	const most = 5
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:min(len(lines), most)], "")
}

// indent sets a text off from the names of the steps.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
