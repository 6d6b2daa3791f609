package schema

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

var specPath = field.NewPath("spec")

func specOf(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := bounds.Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wants fails the test unless the errors contain want. If want is empty, there must be no errors.
func wants(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	text := fmt.Sprint(errs.ToAggregate())
	if (len(errs) == 0) != (want == "") || !strings.Contains(text, want) {
		t.Errorf("want %q, got: %s", want, text)
	}
}

// TestViolations covers each kind of rule that the API server evaluates for a v1alpha2 spec, but
// not for the annotation of a v1alpha1 object. test/integration/testdata/refusals.txt has the
// messages.
func TestViolations(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"nothing": {"{}", ""},
		"a valid spec": {
			"{replicas: 2, ports: [{name: http, port: 8080, protocol: TCP}], nginx: {errorLogLevel: warn}, " +
				"tls: [{secretName: web, port: 8443}], monitoring: {podMonitor: {interval: 5s}}}", "",
		},
		"a null":                     {"{ports: null, nginx: {errorLogLevel: null}}", ""},
		"a field of another release": {"{newField: a}", ""},
		"an enum":                    {"{nginx: {errorLogLevel: 'notice; env A'}}", "spec.nginx.errorLogLevel: Unsupported value"},
		"a number above its bound":   {"{nginx: {workerConnections: 70000}}", "spec.nginx.workerConnections"},
		"a number below its bound":   {"{replicas: -1}", "spec.replicas"},
		"a long text":                {"{forceRedeploy: " + strings.Repeat("a", 257) + "}", "spec.forceRedeploy: Too long"},
		"a long list":                {"{patches: [" + strings.Repeat("{},", 9) + "]}", "spec.patches: Too many: 9"},
		"a required field":           {"{tls: [{}]}", "spec.tls[0].secretName: Required value"},
		"another type":               {"{replicas: many}", "spec.replicas: Invalid value"},
		"an object that is none":     {"{expose: 1}", "spec.expose: Invalid value"},
		"a key twice":                {"{volumes: [{name: a}, {name: a}]}", "spec.volumes[1]: Duplicate value"},
		"a rule":                     {"{files: [{path: a}]}", "spec.files[0]: Invalid value"},
		"a rule about a default":     {"{service: {externalTrafficPolicy: Local}}", "requires type NodePort or LoadBalancer"},
		"a rule and a number":        {"{replicas: -1, config: {}}", "config must have exactly one"},
		"more than is evaluated":     {"{patches: [" + strings.Repeat("{},", 9) + "]}", "spec: Invalid value: may have more"},
		"what later releases allow": {
			"{config: {configMapRef: {name: a, key: '*.conf'}}, files: [{path: a, configMapRef: {name: a, key: '*'}}], " +
				"volumes: [{name: a}], expose: {}}", "",
		},
		"a safe path": {"{expose: {ingress: {hosts: [{host: a.example.com, paths: ['/a%20b/~c(d)*,=:@!$&+']}]}}}", ""},
	} {
		t.Run(name, func(t *testing.T) { wants(t, Violations(specOf(t, test.spec), specPath), test.want) })
	}
}

// TestPortRulesCompareProtocols verifies that the rules about port numbers already hold for a
// release that adds UDP to the protocols. No release after 0.7.1 can change a rule.
func TestPortRulesCompareProtocols(t *testing.T) {
	schema, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	structural := schema.structural.DeepCopy()
	protocol := structural.Properties["ports"].Items.Properties["protocol"].ValueValidation
	protocol.Enum = append(protocol.Enum, structuralschema.JSON{Object: "UDP"})
	validator := cel.NewValidator(structural, false, celconfig.PerCallLimit)
	for name, test := range map[string]struct{ spec, want string }{
		"one number":            {"{ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]}", ""},
		"one number of nginx":   {"{ports: [{name: a, port: 80}, {name: b, port: 81, targetPort: 80, protocol: UDP}]}", ""},
		"beside a certificate":  {"{ports: [{name: a, port: 443, protocol: UDP}], tls: [{secretName: a, port: 443}]}", ""},
		"beside its targetPort": {"{ports: [{name: a, port: 44, targetPort: 443, protocol: UDP}], tls: [{secretName: a, port: 443}]}", ""},
		"beside the default":    {"{ports: [{name: a, port: 8443, protocol: UDP}], tls: [{secretName: a}]}", ""},
		"UDP twice": {
			"{ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 53, protocol: UDP}]}", "the same port and protocol twice",
		},
		"UDP twice for nginx": {
			"{ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 54, targetPort: 53, protocol: UDP}]}", "change targetPort",
		},
		"TCP twice, once by default": {"{ports: [{name: a, port: 53, protocol: TCP}, {name: b, port: 53}]}", "the same port and protocol twice"},
		"TCP beside a certificate":   {"{ports: [{name: a, port: 443, protocol: TCP}], tls: [{secretName: a, port: 443}]}", "change port in tls"},
		"TCP beside the default":     {"{ports: [{name: a, port: 8443, protocol: TCP}], tls: [{secretName: a}]}", "set port in tls"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(t, test.spec)
			errs, _ := validator.Validate(t.Context(), specPath, structural, spec, nil, celconfig.RuntimeCELCostBudget)
			wants(t, errs, test.want)
		})
	}
}

// TestErrorLogLevels verifies that defaults.Nginx accepts every log level of the schema.
func TestErrorLogLevels(t *testing.T) {
	schema, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	levels := schema.structural.Properties["nginx"].Properties["errorLogLevel"].ValueValidation.Enum
	if len(levels) < 8 {
		t.Fatalf("the schema has the levels %v", levels)
	}
	for _, level := range levels {
		spec := &v1alpha2.NginxOperatorSpec{Nginx: &v1alpha2.Nginx{ErrorLogLevel: level.Object.(string)}}
		if got := defaults.Nginx(spec).ErrorLogLevel; got != level.Object {
			t.Errorf("the level %v becomes %s", level.Object, got)
		}
	}
}

// TestViolationsAreCheap verifies that no spec within the decoding bounds is expensive to evaluate.
func TestViolationsAreCheap(t *testing.T) {
	Violations(map[string]any{}, specPath) // compiles the CEL rules
	for name, spec := range map[string]string{
		"long lists":        `{"ports":[` + strings.TrimSuffix(strings.Repeat("{},", 8_000), ",") + `]}`,
		"unbounded lists":   `{"podTemplate":{"tolerations":[` + strings.TrimSuffix(strings.Repeat(`{"key":1},`, 2_000), ",") + `]}}`,
		"many wrong types":  `{"podTemplate":{"tolerations":[` + strings.TrimSuffix(strings.Repeat(`1,`, 4_000), ",") + `]}}`,
		"long texts":        `{"files":[` + files() + `]}`,
		"paths of any size": `{"expose":{"ingress":{"hosts":[` + hosts() + `]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			fields := specOf(t, spec)
			var errs field.ErrorList
			boundstest.Cheap(t, func() { errs = Violations(fields, specPath) })
			if name == "paths of any size" {
				wants(t, errs, "")
			} else if len(errs) > maxErrors+1 || errs[len(errs)-1].Field != specPath.String() {
				t.Errorf("%d errors do not end with one of the whole spec", len(errs))
			}
		})
	}
}

// files returns files whose paths are so long that the CEL rules about them exceed their budget.
func files() string {
	var out []string
	for i := range 16 {
		path := strings.Repeat("a", 60_000) + strconv.Itoa(i)
		out = append(out, `{"path":"`+path+`","configMapRef":{"name":"a","key":"b"}}`)
	}
	return strings.Join(out, ",")
}

// hosts returns as many hosts and paths as the schema allows, with the maximum length.
func hosts() string {
	var paths, out []string
	for i := range 16 {
		paths = append(paths, fmt.Sprintf(`"/%s%02d"`, strings.Repeat("a", 253), i))
	}
	for i := range 16 {
		out = append(out, `{"host":"`+strings.Repeat("a", 10+i)+`","paths":[`+strings.Join(paths, ",")+`]}`)
	}
	return strings.Join(out, ",")
}
