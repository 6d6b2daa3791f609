package options

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/internal/fleet"
)

func parse(args []string, env map[string]string) (*Options, error) {
	return Parse(args, func(key string) (string, bool) { value, found := env[key]; return value, found }, &bytes.Buffer{})
}

// TestPrecedence verifies that a flag overrides its environment variable, and the variable
// overrides the default.
func TestPrecedence(t *testing.T) {
	env := map[string]string{
		"RELATED_IMAGE_NGINX":                      "from-env",
		"NGINX_OPERATOR_MAX_CONCURRENT_RECONCILES": "3",
		"NGINX_OPERATOR_LEADER_ELECT":              "true",
		"RELATED_IMAGE_NGINX_REQUEST_METRICS":      "receiver-from-env",
	}
	got, err := parse([]string{"--max-concurrent-reconciles=4"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if got.NginxImage != "from-env" || got.MaxConcurrentReconciles != 4 || !got.LeaderElect || got.HealthProbeBindAddress != ":8081" ||
		got.RequestMetricsImage != "receiver-from-env" {
		t.Errorf("%+v", got)
	}
}

// TestFleetRollout verifies the environment variables that control how a release rolls out to
// instances. An administrator can set them in an OLM Subscription.
func TestFleetRollout(t *testing.T) {
	const prefix = "NGINX_OPERATOR_FLEET_ROLLOUT_"
	for name, test := range map[string]struct {
		env  map[string]string
		want fleet.Policy
	}{
		"default": {nil, fleet.Policy{MaxUnavailable: intstr.FromString("10%"), FailureThreshold: 2}},
		"all set": {
			map[string]string{prefix + "MAX_UNAVAILABLE": "3", prefix + "CANARY_NAMESPACES": "staging,qa", prefix + "FAILURE_THRESHOLD": "0"},
			fleet.Policy{MaxUnavailable: intstr.FromInt32(3), CanaryNamespaces: sets.New("qa", "staging")},
		},
		"no namespaces": {
			map[string]string{prefix + "CANARY_NAMESPACES": ""}, fleet.Policy{MaxUnavailable: intstr.FromString("10%"), FailureThreshold: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]string{"--nginx-image=nginx:1"}, test.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.FleetRollout, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestIPv6 verifies that operands listen on IPv6 only if the operator's own Pod has an IPv6
// address.
func TestIPv6(t *testing.T) {
	for ips, want := range map[string]bool{"": false, "192.0.2.1": false, "2001:db8::1": true, "192.0.2.1,2001:db8::1": true} {
		got, err := parse(nil, map[string]string{"RELATED_IMAGE_NGINX": "nginx:1", "POD_IPS": ips})
		if err != nil {
			t.Fatal(err)
		}
		if got.IPv6() != want {
			t.Errorf("%q: %t, want %t", ips, got.IPv6(), want)
		}
	}
}

// TestRefusals verifies that an error names the wrong flag or variable.
func TestRefusals(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"set --nginx-image or RELATED_IMAGE_NGINX": {"RELATED_IMAGE_NGINX": ""},
		"NGINX_OPERATOR_KUBE_API_QPS":              {"RELATED_IMAGE_NGINX": "nginx:1", "NGINX_OPERATOR_KUBE_API_QPS": "fast"},
	} {
		if _, err := parse(nil, env); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	for _, arg := range []string{
		"--nope", "--kube-api-burst=many", "--max-concurrent-reconciles=0", "--fleet-rollout-max-unavailable=0%",
		"--fleet-rollout-failure-threshold=-1", "--fleet-rollout-canary-namespaces=staging,*",
		"--fleet-rollout-canary-namespaces=staging,", "--kube-api-qps=0", "--webhook-bind-address=127.0.0.1",
		"--webhook-url=http://127.0.0.1:9443",
		"--webhook-url=https://127.0.0.1:9443/convert", "--webhook-url=https://127.0.0.1:9443?a=b", "--webhook-url=https://",
		"--webhook-url=127.0.0.1:9443", "--log-level=loud", "--log-format=xml",
	} {
		flag, _, _ := strings.Cut(arg, "=")
		if _, err := parse([]string{arg}, imageOnly); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: want an error that names the flag, got %v", arg, err)
		}
	}
	_, err := parse([]string{"nope"}, imageOnly)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "nope"`) {
		t.Errorf("error %v", err)
	}
}

// TestWebhooks verifies the names of the webhook Service and Secret. If no flag or variable sets
// them, they depend on whether OLM installed the operator.
func TestWebhooks(t *testing.T) {
	type names struct{ Service, Secret, CSV, Namespace string }
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		want names
	}{
		"config/": {nil, nil, names{"nginx-operator-webhook-service", "nginx-operator-webhook-server-cert", "", "nginx-operator-system"}},
		"OLM": {
			nil,
			map[string]string{"OPERATOR_CONDITION_NAME": "nginx-operator.v0.2.0", "POD_NAMESPACE": "operators"},
			names{
				"nginx-operator-controller-manager-service", "nginx-operator-controller-manager-service-cert",
				"nginx-operator.v0.2.0", "operators",
			},
		},
		"OLM v1": {
			[]string{"--olm"},
			map[string]string{"POD_NAMESPACE": "operators"},
			names{"nginx-operator-controller-manager-service", "nginx-operator-controller-manager-service-cert", "", "operators"},
		},
		"told": {
			[]string{"--webhook-service-name=a", "--webhook-secret-name=b", "--operator-namespace=c"},
			map[string]string{"OPERATOR_CONDITION_NAME": "d", "POD_NAMESPACE": "e"},
			names{"a", "b", "d", "c"},
		},
		"told by variables": {
			nil,
			map[string]string{"NGINX_OPERATOR_WEBHOOK_SERVICE_NAME": "a", "NGINX_OPERATOR_WEBHOOK_SECRET_NAME": "b"},
			names{"a", "b", "", "nginx-operator-system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(append(test.args, "--nginx-image=nginx:1"), test.env)
			if err != nil {
				t.Fatal(err)
			}
			got := names{o.WebhookServiceName, o.WebhookSecretName, o.ClusterServiceVersion, o.OperatorNamespace}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for url, want := range map[string]string{
		"":                            "",
		"https://127.0.0.1:9443":      "https://127.0.0.1:9443",
		"https://laptop.example.com/": "https://laptop.example.com",
	} {
		o, err := parse([]string{"--webhook-url=" + url}, imageOnly)
		if err != nil || o.WebhookURL != want {
			t.Errorf("%q: %v, %v", url, o, err)
		}
	}
}

// TestHelpAndVersion verifies that the help lists flags with their environment variables, and that
// --version requires no image.
func TestHelpAndVersion(t *testing.T) {
	var help bytes.Buffer
	if _, err := Parse([]string{"--help"}, func(string) (string, bool) { return "", false }, &help); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{
		"--leader-elect ", "[NGINX_OPERATOR_LEADER_ELECT]", "--nginx-image ", "[RELATED_IMAGE_NGINX]", "[NGINX_OPERATOR_LOG_LEVEL]",
	} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, help.String())
		}
	}
	if got, err := parse([]string{"--version"}, nil); err != nil || !got.Version {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLogger(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		for level, info := range map[string]bool{"debug": true, "info": true, "warn": false, "error": false} {
			if got := (&Options{LogLevel: level, LogFormat: format}).Logger().Enabled(); got != info {
				t.Errorf("%s, level %s: informs %t, want %t", format, level, got, info)
			}
		}
	}
}

var imageOnly = map[string]string{"RELATED_IMAGE_NGINX": "nginx:1"}

// TestWatchNamespaces verifies that the watched namespaces are sorted and have no duplicates, and
// that the operator watches all namespaces by default.
func TestWatchNamespaces(t *testing.T) {
	for value, want := range map[string][]string{
		"": {}, "shop": {"shop"}, "web,shop,web": {"shop", "web"}, "a-1,0": {"0", "a-1"},
	} {
		flag, err := parse([]string{"--watch-namespaces=" + value}, imageOnly)
		if err != nil {
			t.Fatal(err)
		}
		variable, err := parse(nil, map[string]string{"RELATED_IMAGE_NGINX": "nginx:1", "NGINX_OPERATOR_WATCH_NAMESPACES": value})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []*Options{flag, variable} {
			if diff := cmp.Diff(want, got.WatchNamespaces); diff != "" {
				t.Errorf("%q: %s", value, diff)
			}
			if got.Watches("shop") != (value == "" || strings.Contains(value, "shop")) || got.Watches("sho") != (value == "") {
				t.Errorf("%q: watches shop %t, sho %t", value, got.Watches("shop"), got.Watches("sho"))
			}
		}
	}
	got, err := parse([]string{"--watch-namespaces=shop", "--fleet-rollout-canary-namespaces=shop"}, imageOnly)
	if err != nil || !got.FleetRollout.CanaryNamespaces.Has("shop") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWatchNamespacesRefusals verifies that an error names the flag and the wrong namespace.
func TestWatchNamespacesRefusals(t *testing.T) {
	names := make([]string, maxWatchNamespaces+1)
	for i := range names {
		names[i] = fmt.Sprintf("shop-%d", i)
	}
	if _, err := parse([]string{"--watch-namespaces=" + strings.Join(names[1:], ",")}, imageOnly); err != nil {
		t.Errorf("%d namespaces: %v", maxWatchNamespaces, err)
	}
	for args, want := range map[string]string{
		"--watch-namespaces=shop,":                       `--watch-namespaces has "", which is not a valid namespace name`,
		"--watch-namespaces=shop, web":                   `--watch-namespaces has " web", which is not a valid namespace name`,
		"--watch-namespaces=Shop":                        `--watch-namespaces has "Shop"`,
		"--watch-namespaces=shop.web":                    `--watch-namespaces has "shop.web"`,
		"--watch-namespaces=*":                           `--watch-namespaces has "*"`,
		"--watch-namespaces=" + strings.Repeat("a", 64):  `--watch-namespaces has "aaa`,
		"--watch-namespaces=" + strings.Join(names, ","): "--watch-namespaces has 101 namespaces, must have at most 100",
		"--watch-namespaces=shop --fleet-rollout-canary-namespaces=shop,web": `--fleet-rollout-canary-namespaces has "web", which ` +
			"--watch-namespaces does not have",
	} {
		var split []string
		for arg := range strings.SplitSeq(args, " --") {
			split = append(split, "--"+strings.TrimPrefix(arg, "--"))
		}
		if _, err := parse(split, imageOnly); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: want an error with %q, got %v", args, want, err)
		}
	}
}
