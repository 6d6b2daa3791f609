package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const asProgram = "RUN_NGINX_REQUEST_METRICS"

// TestMain runs the program in a process of its own if a test starts this binary again.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...) // #nosec G204 G702 -- this test
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// entry is a line of the program's log.
type entry struct{ Msg, Address, Error string }

// running is a program with the entries of its log.
type running struct {
	*exec.Cmd
	log chan entry
}

func start(t *testing.T, args ...string) running {
	t.Helper()
	out := running{program(t, args...), make(chan entry, 100)}
	stderr, err := out.StderrPipe()
	if err == nil {
		err = out.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			one := entry{}
			_ = json.Unmarshal(lines.Bytes(), &one)
			out.log <- one
		}
		close(out.log)
	}()
	return out
}

// wait returns the next entry with a message.
func (r running) wait(t *testing.T, message string) entry {
	t.Helper()
	for one := range r.log {
		if one.Msg == message {
			return one
		}
	}
	t.Fatalf("the program ended without %q", message)
	return entry{}
}

// addresses returns the addresses of both ports.
func (r running) addresses(t *testing.T) (syslog, metrics string) {
	t.Helper()
	for one := range r.log {
		switch one.Msg {
		case "Receiving messages":
			syslog = one.Address
		case "Serving metrics":
			metrics = one.Address
		}
		if syslog != "" && metrics != "" {
			return syslog, metrics
		}
	}
	t.Fatal("the program ended before both ports were open")
	return "", ""
}

// end sends a signal and requires a successful exit.
func (r running) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := r.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(); err != nil {
		t.Errorf("%v ends the program with %v", signal, err)
	}
}

func getBody(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestProgram checks that only a signal ends the program, and that the metrics have each message.
func TestProgram(t *testing.T) {
	program := start(t, "--listen=127.0.0.1:0", "--metrics-address=127.0.0.1:0")
	syslog, metrics := program.addresses(t)
	conn, err := net.Dial("udp4", syslog)
	if err != nil {
		t.Fatal(err)
	}
	for _, datagram := range []string{"", "bad", strings.Repeat("large", 12000), header + "1|503|0.012|512|78|-|shop"} {
		send(t, conn, []byte(datagram))
	}
	if code, body := getBody(t, "http://"+metrics+"/healthz"); code != http.StatusOK {
		t.Errorf("%d: %s", code, body)
	}
	eventually(t, "the message", func() bool {
		_, body := getBody(t, "http://"+metrics+"/metrics")
		return strings.Contains(body, "\nnginx_server_requests_total{class=\"5xx\",server=\"shop\"} 1\n") &&
			strings.Contains(body, "\nnginx_request_metrics_invalid_messages_total 3\n")
	})
	for _, path := range []string{"/", "/debug/pprof/"} {
		if code, _ := getBody(t, "http://"+metrics+path); code != http.StatusNotFound {
			t.Errorf("%s responds with %d", path, code)
		}
	}
	program.end(t, syscall.SIGTERM)
}

// TestOccupiedPorts checks that the program waits for its ports.
func TestOccupiedPorts(t *testing.T) {
	udp, udpErr := net.ListenPacket("udp4", "127.0.0.1:0")
	tcp, tcpErr := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(udpErr, tcpErr); err != nil {
		t.Fatal(err)
	}
	program := start(t, "--listen="+udp.LocalAddr().String(), "--metrics-address="+tcp.Addr().String())
	if one := program.wait(t, "Cannot serve metrics"); !strings.Contains(one.Error, "address already in use") {
		t.Errorf("%+v", one)
	}
	_ = tcp.Close()
	program.wait(t, "Serving metrics")
	if code, body := getBody(t, "http://"+tcp.Addr().String()+"/healthz"); code != http.StatusServiceUnavailable {
		t.Errorf("%d: %s", code, body)
	}
	_ = udp.Close()
	program.wait(t, "Receiving messages")
	if code, body := getBody(t, "http://"+tcp.Addr().String()+"/healthz"); code != http.StatusOK {
		t.Errorf("%d: %s", code, body)
	}
	program.end(t, syscall.SIGINT)
}

func TestArguments(t *testing.T) {
	for argument, want := range map[string]string{
		"--listen=0.0.0.0:9514":   `--listen is "0.0.0.0:9514", must be an IPv4 loopback address with a port, for example 127.0.0.1:9514`,
		"--listen=localhost:9514": "must be an IPv4 loopback address",
		"--listen=[::1]:9514":     "must be an IPv4 loopback address",
		"--metrics-address=9114":  `--metrics-address is "9114", must be host:port or :port`,
		"more":                    `unexpected argument "more": only flags are accepted, see --help`,
		"--unknown":               "flag provided but not defined: -unknown",
	} {
		output, err := program(t, argument).CombinedOutput()
		failed := &exec.ExitError{}
		if !errors.As(err, &failed) || failed.ExitCode() != 2 || !strings.Contains(string(output), want) {
			t.Errorf("%s: %v: %s", argument, err, output)
		}
	}
	if output, err := program(t, "--help").CombinedOutput(); err != nil || !strings.Contains(string(output), "-metrics-address") {
		t.Errorf("%v: %s", err, output)
	}
}
