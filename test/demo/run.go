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
	args = append([]string{name}, args...)
	if d.local {
		args = append([]string{filepath.Join(d.repo, "bin", "cluster"), "exec", "--"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = d.repo
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("failed to run %s: %w\n%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), stderr.String())
	}
	return stdout.String(), nil
}

func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	return d.inCluster(ctx, "", "kubectl", args...)
}

func (d *demo) apply(ctx context.Context, manifest string) error {
	_, err := d.inCluster(ctx, manifest, "kubectl", "apply", "--filename=-")
	return err
}

// get sends a request and prints the status line and the first lines of the answer. It tries again for a moment, because
// the nodes follow a Service that is new or has moved within about a second.
func get(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		response, err := getOnce(ctx, url)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s %s\nServer: %s\n\n%s", response.Proto, response.Status, response.Header.Get("Server"), response.text)
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("failed to get %s: %w", url, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

type answer struct {
	*http.Response
	text string
}

func getOnce(ctx context.Context, url string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) // #nosec G704 -- the user says what to ask
	if err != nil {
		return nil, err
	}
	// #nosec G402 -- the certificate of the demo signs itself
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
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

// line returns what to type to run a command where the cluster can be reached.
func (d *demo) line(command string) string {
	if d.local {
		return "make cluster-exec CMD='" + command + "'"
	}
	return "make cluster-exec CLUSTER=external CMD='" + command + "'"
}

// hints are commands that show what the operator does.
func (d *demo) hints() string {
	const moved = 8081
	request := "bin/demo get " + serviceURL(moved)
	if !d.local {
		request = fmt.Sprintf("kubectl get --raw /api/v1/namespaces/%s/services/%s:%d/proxy/", serverNamespace, server, moved)
	}
	object := fmt.Sprintf("nginxoperator/%s -n %s", server, serverNamespace)
	wait := "kubectl wait --for=condition=Ready --timeout=60s " + object
	deployment := fmt.Sprintf("deployment/%s -n %s", server, serverNamespace)
	var out strings.Builder
	for _, hint := range []struct{ what, command string }{
		{"Scale it", "kubectl scale --replicas=3 " + object + " && " + wait + " && kubectl get " + object},
		{"Move it to another port", fmt.Sprintf(`kubectl patch %s --type=merge --patch="spec: {ports: [{name: http, port: %d}]}" && %s && %s`, object, moved, wait, request)},
		{"Delete a child and watch it come back", "kubectl delete " + deployment + " && kubectl wait --for=create " + deployment + " && kubectl rollout status " + deployment},
		{"Replace its Pods and nothing else", `kubectl patch ` + object + ` --type=merge --patch="spec: {forceRedeploy: now}" && ` + wait + " && kubectl get pods -n " + serverNamespace},
		{"Read what each field means", "kubectl explain nginxoperator.spec"},
	} {
		fmt.Fprintf(&out, "  # %s\n  %s\n\n", hint.what, d.line(hint.command))
	}
	if d.local {
		out.WriteString("  # Stop the cluster; nothing is left behind\n  make cluster-down\n")
	} else {
		fmt.Fprintf(&out, "  # Remove the server, then the operator\n  %s\n  %s\n",
			d.line("kubectl delete namespace "+serverNamespace), d.line("kubectl delete namespace "+operatorNamespace))
	}
	return out.String()
}
