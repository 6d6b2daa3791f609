package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestWorkload(t *testing.T) {
	const (
		apart = "has files of the operator or the image; choose another directory"
		own   = "Forbidden: the names config, tmp, content, files, and cache and the prefixes tls- and operator- are reserved for the " +
			"operator; choose another name"
		clean = "must be an absolute path without .., colons, or a trailing slash, for example /srv/files"
	)
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"variables": {spec: "env: [{name: TZ, value: Europe/Berlin}, {name: a.b-c_D}]"},
		"names of variables": {spec: "env: [{name: 1A}, {name: 'A;'}, {name: NGINX}]", want: []string{
			`spec.env[0].name: Invalid value: "1A": must contain only letters, digits, hyphens, dots, and underscores, and must not start with a ` +
				`digit, for example CACHE_SIZE`,
			`spec.env[1].name: Invalid value: "A;": must contain only letters, digits, hyphens, dots, and underscores, and must not start with a ` +
				`digit, for example CACHE_SIZE`,
			"spec.env[2].name: Forbidden: nginx uses this variable internally and does not start with another value; remove it",
		}},
		"ServiceAccount": {spec: "serviceAccountName: Web", want: []string{`spec.serviceAccountName: Invalid value: "Web": ` + subdomain}},
		"volumes": {spec: `
volumes:
- {name: a, mountPath: /etc/nginx/snippets, configMap: {name: a}}
- {name: b, mountPath: /usr/share/nginx/html, subPath: site/pages, emptyDir: {}}
- {name: c, mountPath: /dev/shm, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
- {name: d, mountPath: /tmpfiles, emptyDir: {}}
- {name: e, emptyDir: {}}
- {name: f, emptyDir: {}}
`},
		"names of volumes": {
			spec: "volumes: [{name: config}, {name: tls-a}, {name: cache}, {name: a.b}]",
			want: []string{
				"spec.volumes[0].name: " + own,
				"spec.volumes[1].name: " + own,
				"spec.volumes[2].name: " + own,
				`spec.volumes[3].name: Invalid value: "a.b": must not contain dots`,
			},
		},
		"paths": {
			spec: `
content: {configMapRef: {name: pages}}
volumes:
- {name: a, mountPath: srv}
- {name: b, mountPath: /srv/../tmp}
- {name: c, mountPath: /srv/, subPath: ../a}
- {name: d, mountPath: /srv/a, subPath: /a}
- {name: e, mountPath: /srv/a}
- {name: f, subPath: a}
- {name: g, mountPath: '/srv:a'}
`,
			want: []string{
				`spec.volumes[0].mountPath: Invalid value: "srv": ` + clean,
				`spec.volumes[1].mountPath: Invalid value: "/srv/../tmp": ` + clean,
				`spec.volumes[2].mountPath: Invalid value: "/srv/": ` + clean,
				`spec.volumes[2].subPath: Invalid value: "../a": must be a relative path in the volume without .., for example site/files`,
				`spec.volumes[3].subPath: Invalid value: "/a": must be a relative path in the volume without .., for example site/files`,
				`spec.volumes[4].mountPath: Duplicate value: "/srv/a"`,
				"spec.volumes[5].mountPath: Required value: subPath requires mountPath; set mountPath, or remove subPath",
				`spec.volumes[6].mountPath: Invalid value: "/srv:a": ` + clean,
			},
		},
		"paths of the operator": {
			spec: `
content: {configMapRef: {name: pages}}
files: [{path: a.conf, configMapRef: {name: a, key: a}}]
cache: {path: /srv/cache/nginx, size: 1Gi}
volumes:
- {name: a, mountPath: /}
- {name: b, mountPath: /etc}
- {name: c, mountPath: /etc/nginx/tls/shop}
- {name: d, mountPath: /etc/nginx/mime.types}
- {name: e, mountPath: /tmp/cache}
- {name: f, mountPath: /dev}
- {name: g, mountPath: /usr/share/nginx/html/files}
- {name: h, mountPath: /usr/share}
- {name: i, mountPath: /etc/nginx/files}
- {name: j, mountPath: /srv/cache}
`,
			want: []string{
				"spec.volumes[0].mountPath: Forbidden: /etc/nginx-operator " + apart,
				"spec.volumes[1].mountPath: Forbidden: /etc/nginx-operator " + apart,
				"spec.volumes[2].mountPath: Forbidden: /etc/nginx/tls " + apart,
				"spec.volumes[3].mountPath: Forbidden: /etc/nginx/mime.types " + apart,
				"spec.volumes[4].mountPath: Forbidden: /tmp " + apart,
				"spec.volumes[5].mountPath: Forbidden: /dev " + apart,
				"spec.volumes[6].mountPath: Forbidden: /usr/share/nginx/html " + apart,
				"spec.volumes[7].mountPath: Forbidden: /usr/share/nginx/html " + apart,
				"spec.volumes[8].mountPath: Forbidden: /etc/nginx/files " + apart,
				"spec.volumes[9].mountPath: Forbidden: /srv/cache/nginx " + apart,
			},
		},
		"containers": {spec: `
volumes: [{name: a, emptyDir: {}}]
initContainers: [{name: make, volumeMounts: [{name: a, mountPath: /tmp}]}]
sidecars: [{name: refresh, image: 'busybox:1.37', volumeMounts: [{name: a, mountPath: /a, subPath: b}, {name: a, mountPath: /c}]}]
`},
		"names of containers": {
			spec: "{initContainers: [{name: a}, {name: nginx}, {name: a_b}], sidecars: [{name: a}, {name: b}, {name: b}]}",
			want: []string{
				`spec.initContainers[1].name: Duplicate value: "nginx"`,
				`spec.initContainers[2].name: Invalid value: "a_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters ` +
					`or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', ` +
					`regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
				`spec.sidecars[0].name: Duplicate value: "a"`,
				`spec.sidecars[2].name: Duplicate value: "b"`,
			},
		},
		"what containers have": {
			spec: `
volumes: [{name: a, emptyDir: {}}]
initContainers:
- {name: a, image: A, resources: {limits: {cpu: 1e99}}}
sidecars:
- {name: b, volumeMounts: [{name: b, mountPath: /b}, {name: config, mountPath: b, subPath: ../a}]}
`,
			want: []string{
				`spec.initContainers[0].image: Invalid value: "A": invalid reference format: repository name (library/A) must be lowercase; ` +
					"write for example docker.io/nginxinc/nginx-unprivileged:1.30.7",
				"spec.initContainers[0].resources.limits[cpu]: Invalid value: must not be more than 1e36; lower it",
				`spec.sidecars[0].volumeMounts[0].name: Invalid value: "b": is not a volume in spec.volumes; add the volume, or correct the name`,
				`spec.sidecars[0].volumeMounts[1].name: Invalid value: "config": is not a volume in spec.volumes; add the volume, or correct the name`,
				`spec.sidecars[0].volumeMounts[1].mountPath: Invalid value: "b": ` + clean,
				`spec.sidecars[0].volumeMounts[1].subPath: Invalid value: "../a": must be a relative path in the volume without .., for example ` +
					`site/files`,
			},
		},
		"endless volume": {spec: "volumes: [{name: a, emptyDir: {sizeLimit: 1e99}}]", want: []string{
			"spec.volumes[0].emptyDir.sizeLimit: Invalid value: must not be more than 1e36; lower it",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Spec(specOf(t, test.spec), field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWorkloadIsBounded verifies that the fields of the workload together have a bounded number of
// values.
func TestWorkloadIsBounded(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{Volumes: []v1alpha2.Volume{{Name: "a", ConfigMap: &v1alpha2.ConfigMapVolume{
		Name: "a", Items: make([]v1alpha2.KeyToPath, maxJudgedValues),
	}}}}
	want := "spec: Invalid value: env, volumes, initContainers, and sidecars together: it has more than 1024 values"
	if got := Spec(spec, field.NewPath("spec")).ToAggregate().Error(); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// TestOriginOfElements verifies that the API server's error in a list element gets the index of the
// element in the spec.
func TestOriginOfElements(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{
		Volumes: make([]v1alpha2.Volume, 1), InitContainers: make([]v1alpha2.Container, 1), Sidecars: make([]v1alpha2.Container, 2),
	}
	for child, want := range map[string]string{
		"spec.template.spec.containers[0].env[3].valueFrom.fieldRef.fieldPath": "env[3].valueFrom.fieldRef.fieldPath",
		"spec.template.spec.serviceAccountName":                                "serviceAccountName",
		"spec.template.spec.volumes[2].csi.driver":                             "volumes[0].csi.driver",
		"spec.template.spec.volumes[1].emptyDir":                               "",
		"spec.template.spec.volumes[3].configMap":                              "",
		"spec.template.spec.volumes":                                           "",
		"spec.template.spec.volumes[" + strings.Repeat("9", 100) + "].name":    "",
		"spec.template.spec.initContainers[0].resources.limits[disk]":          "initContainers[0].resources.limits[disk]",
		"spec.template.spec.initContainers[2].env[0].valueFrom":                "sidecars[1].env[0].valueFrom",
		"spec.template.spec.initContainers[3].image":                           "",
	} {
		if got, _ := origin(child, spec); got != want {
			t.Errorf("%s: got %q, want %q", child, got, want)
		}
	}
	if got, found := origin("spec.template.spec.volumes[2].csi", nil); found {
		t.Errorf("without a spec: %q", got)
	}
}
