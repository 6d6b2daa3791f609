package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
)

// specManifest returns an object from the YAML of its spec.
func specManifest(t *testing.T, version, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(spec), &object.Object))
	object.Object = map[string]any{"spec": object.Object}
	object.SetAPIVersion(v1alpha2.GroupVersion.Group + "/" + version)
	object.SetKind("NginxOperator")
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// inline returns a spec with an inline configuration that has these lines in a server on the
// default port.
func inline(lines ...string) string {
	return "config:\n  inline: |\n    server {\n      listen 8080;\n      " + strings.Join(lines, "\n      ") + "\n    }\n"
}

// TestAdmissionTakes verifies that admission accepts valid objects, with warnings that start with
// the field.
func TestAdmissionTakes(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	i := 0
	for title, test := range map[string]struct {
		spec string
		want []string
	}{
		"nothing":            {spec: "{}"},
		"certificate":        {spec: "tls: [{secretName: shop}]"},
		"ports":              {spec: "ports: [{name: http, port: 80}, {name: tls, port: 18080}]"},
		"no plain HTTP":      {spec: "{ports: [], tls: [{secretName: shop}]}"},
		"targets that cross": {spec: "ports: [{name: a, port: 80, targetPort: 81}, {name: b, port: 81, targetPort: 80}]"},
		"node port":          {spec: "{ports: [{name: a, port: 80, nodePort: 30090}], service: {type: NodePort}}"},
		"protocols": {
			spec: "ports: [{name: a, port: 80, appProtocol: kubernetes.io/h2c}, {name: b, port: 81, appProtocol: example.com/My_1.0}]",
		},
		"configuration":           {spec: inline("location / {", "  root /usr/share/nginx/html;", "}")},
		"configuration elsewhere": {spec: "config: {configMapRef: {name: shop.servers}}"},
		"where the Pods run": {
			spec: "podTemplate: {labels: {team: shop}, nodeSelector: {a: b}, tolerations: [{operator: Exists}], " +
				"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}",
		},
		"load balancer": {
			spec: "service: {type: LoadBalancer, loadBalancerClass: example.com/lb, externalTrafficPolicy: Local, " +
				"annotations: {example.com/lb: internal}}",
		},
		"networks and families": {
			spec: "service: {type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.0/24, '2001:db8::/32'], sessionAffinity: ClientIP, " +
				"internalTrafficPolicy: Local, ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6, IPv4]}",
		},
		"peers": {
			spec: "networkPolicy: {from: [{podSelector: {}}, {namespaceSelector: {matchLabels: {team: shop}}}, " +
				"{ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.7/32]}}]}",
		},
		"no NetworkPolicy": {spec: "networkPolicy: {mode: None}"},
		"files and a cache": {
			spec: "files: [{path: a.conf, configMapRef: {name: a, key: b}}, {path: b/c, secretRef: {name: a, key: b}}]\n" +
				"cache: {size: 1Gi, path: /data}\n" +
				inline("include /etc/nginx/files/a.conf;", "location / { auth_basic a; auth_basic_user_file /etc/nginx/files/b/c; }"),
		},
		"Ingress": {
			spec: "expose: {ingress: {className: nginx, annotations: {example.com/a: b}, " +
				"hosts: [{host: '*.example.com'}, {host: a.example.com, paths: [/a, /b/], tlsSecretName: a.b}]}}",
		},
		"HTTPRoute": {
			spec: "expose: {httpRoute: {parentRefs: [{name: a.b, namespace: infra, sectionName: https, port: 443}, {name: c}], " +
				"hostnames: ['*.example.com', a.example.com]}}",
		},
		"moving tag":               {spec: "image: quay.io/me/nginx:latest", want: []string{"spec.image: "}},
		"host name of an upstream": {spec: inline("location / {", "  proxy_pass http://app;", "}")},
		"directives of nginx 1.30": {spec: inline("max_headers 100;", "location / {", "  early_hints 1;", "  add_header_inherit merge;", "}")},
		"rewrite that exposes a vulnerability": {
			spec: "image: nginx:1.28.3\n" + inline("rewrite ^/(.*)$ /new?c=$1;", "set $old $1;"),
			want: []string{"spec.image: docker.io/library/nginx runs as root, ", "spec.config.inline: line 3: CVE-2026-42945 "},
		},
		"host name of a variable": {
			spec: inline("set $app app;", "location / {", "  proxy_pass http://$app;", "}"),
			want: []string{"spec.config.inline: line 5: no resolver defined to resolve app: nginx answers 502"},
		},
		"content that an included file serves": {
			spec: "content: {configMapRef: {name: pages}}\nfiles: [{path: a.conf, configMapRef: {name: a, key: b}}]\n" +
				inline("include /etc/nginx/files/a.conf;"),
		},
		"cache in a volume of a patch": {
			spec: `patches:
- target: {kind: Deployment}
  patch: |
    spec:
      template:
        spec:
          containers:
          - name: nginx
            volumeMounts: [{name: big, mountPath: /var/cache/big}]
          volumes:
          - name: big
            ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 200Gi}}}}}
` + inline("location / {", "  proxy_temp_path /var/cache/big;", "}"),
		},
		"image that runs as root": {
			spec: "sidecars: [{name: ship, image: 'busybox:1.36'}]",
			want: []string{"spec.sidecars[0].image: docker.io/library/busybox runs as root, "},
		},
		"connections beyond the usual limit": {spec: "nginx: {workerConnections: 65535}", want: []string{"spec.nginx.workerConnections: "}},
		"pause":                              {spec: "paused: true", want: []string{"spec.paused: "}},
	} {
		i++
		t.Run(title, func(t *testing.T) {
			warnings := &recordedWarnings{}
			object := specManifest(t, v1alpha2.GroupVersion.Version, namespace, fmt.Sprintf("web-%d", i), test.spec)
			must(t, client.WithFieldValidation(warningClient(t, warnings), "Strict").Create(t.Context(), object))
			if got := warnings.list(); !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("warnings %q, want %q", got, test.want)
			}
		})
	}
}

// TestAdmissionChangesNoNewObject verifies that the API server stores a new object as the client
// sent it, and that no mutating webhook is called for it.
func TestAdmissionChangesNoNewObject(t *testing.T) {
	t.Parallel()
	object := newInstance(newNamespace(t), "web")
	object.Spec.TLS = []v1alpha2.TLS{{SecretName: "a"}, {SecretName: "b"}}
	create(t, object)
	if object.Spec.TLS[0].Port != nil || object.Spec.TLS[1].Port != nil {
		t.Errorf("tls %+v", object.Spec.TLS)
	}

	list := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	must(t, suite.admin.List(t.Context(), list))
	for _, configuration := range list.Items {
		for _, webhook := range configuration.Webhooks {
			for _, rule := range webhook.Rules {
				if slices.Contains(rule.APIVersions, v1alpha2.GroupVersion.Version) && slices.Contains(rule.APIGroups, v1alpha2.GroupVersion.Group) &&
					slices.Contains(rule.Operations, admissionregistrationv1.Create) {
					t.Errorf("%s is called for each new object", webhook.Name)
				}
			}
		}
	}
}

// TestAdmissionOfV1alpha1KnowsTheRest verifies that the message names the v1alpha2 field if a
// v1alpha1 client changes the port of an object with a configuration.
func TestAdmissionOfV1alpha1KnowsTheRest(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; }"}
	create(t, object)
	old := newObject(namespace, "web")
	err := tryUpdate(t, old, func(o *v1alpha1.NginxOperator) { o.Spec.Port = ptr.To[int32](9090) })
	// The message has the command that opens the field.
	const edit = "kubectl edit nginxoperators.v1alpha2.operator.example.com web"
	if message := must1(refusal{field: "spec.config.inline", reason: invalid}.messageOf(err))(t); !strings.Contains(message, edit) {
		t.Errorf("want %q in %q", edit, message)
	}
}

// TestAdmissionIsAway verifies that objects at v1alpha2, the storage version, can be created,
// changed, and deleted while the operator is down. The status later reports invalid objects that
// were stored in that time. Clients can still label and delete these objects.
func TestAdmissionIsAway(t *testing.T) {
	namespace := newNamespace(t)
	create(t, newObject(namespace, "kept"))
	kept, gone := newInstance(namespace, "kept"), newInstance(namespace, "gone")
	create(t, newObject(namespace, "gone"))
	waitForChildren(t, namespace, "gone")

	suite.operator.Stop()
	away := true
	comeBack := func() {
		if away {
			away = false
			startNextOperator(t)
		}
	}
	t.Cleanup(comeBack)
	// A v1alpha1 write needs the conversion, so it fails.
	err := suite.admin.Create(t.Context(), newObject(namespace, "waits"))
	if !apierrors.IsInternalError(err) && !strings.Contains(fmt.Sprint(err), "conversion webhook") {
		t.Errorf("want an error of the conversion webhook, got %v", err)
	}

	bad := newInstance(namespace, "bad")
	bad.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; daemon on; }"}
	must(t, suite.admin.Create(t.Context(), bad))
	judged := specManifest(t, v1alpha2.GroupVersion.Version, namespace, "judged", "podTemplate: {tolerations: [{key: a, operator: Is}]}")
	must(t, suite.admin.Create(t.Context(), judged))
	update(t, kept, func(object *v1alpha2.NginxOperator) { object.Spec.ForceRedeploy = "now" })
	update(t, kept, func(object *v1alpha2.NginxOperator) { object.Labels = map[string]string{"team": "shop"} })
	must(t, suite.admin.Status().Update(t.Context(), kept))
	must(t, suite.admin.Delete(t.Context(), gone))

	comeBack()
	condition := waitForCondition(t, namespace, "bad", v1alpha2.ConditionDegraded, "True", v1alpha2.ReasonInvalidConfiguration)
	if want := `line 1: "daemon" directive is not allowed here`; !strings.Contains(condition.Message, want) {
		t.Errorf("want %q in %q", want, condition.Message)
	}
	condition = waitForCondition(t, namespace, "judged", v1alpha2.ConditionDegraded, "True", v1alpha2.ReasonInvalidConfiguration)
	if want := `spec.podTemplate.tolerations[0].operator: Unsupported value: "Is"`; !strings.HasPrefix(condition.Message, want) {
		t.Errorf("want %q in %q", want, condition.Message)
	}
	update(t, newInstance(namespace, "judged"), func(object *v1alpha2.NginxOperator) { object.Spec.PodTemplate = nil })
	waitForChildren(t, namespace, "judged")
	stored := newInstance(namespace, "bad")
	update(t, stored, func(object *v1alpha2.NginxOperator) { object.Labels = map[string]string{"team": "shop"} })
	err = tryUpdate(t, stored, func(o *v1alpha2.NginxOperator) { o.Spec.DrainSeconds = ptr.To[int32](30) })
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("a change that leaves the rest as wrong as it was is taken: %v", err)
	}
	must(t, suite.admin.Delete(t.Context(), stored))
}
