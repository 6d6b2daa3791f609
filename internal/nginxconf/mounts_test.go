package nginxconf

import (
	"fmt"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// volumeCases are configurations with files in volumes, which are assumed to exist, and are writable
// if the volume is.
func volumeCases() map[string]checked {
	return map[string]checked{"volumes": {
		spec: v1alpha2.NginxOperatorSpec{Volumes: []v1alpha2.Volume{
			{Name: "pages", MountPath: "/var/cache/nginx", EmptyDir: &v1alpha2.EmptyDirVolume{}},
			{Name: "fixed", MountPath: "/var/cache/nginx/fixed", ReadOnly: true, EmptyDir: &v1alpha2.EmptyDirVolume{}},
			{Name: "snippets", MountPath: "/etc/nginx/snippets", ConfigMap: &v1alpha2.ConfigMapVolume{Name: "snippets"}},
			{Name: "elsewhere", EmptyDir: &v1alpha2.EmptyDirVolume{}},
		}},
		text: inHTTP(
			"proxy_cache_path /var/cache/nginx/a keys_zone=a:1m;",
			"proxy_temp_path /var/cache/nginx/fixed/a;",
			"client_body_temp_path /etc/nginx/snippets/a;",
			"access_log /var/cache/nginx/log;",
			"include /etc/nginx/snippets/*.conf;",
			"ssl_trusted_certificate /etc/nginx/snippets/ca.crt;",
		),
	}}
}

// patched returns a spec with a patch of the Deployment.
func patched(patch string) v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{
		Volumes: []v1alpha2.Volume{{Name: "scratch", EmptyDir: &v1alpha2.EmptyDirVolume{}}},
		Patches: []v1alpha2.Patch{{Target: v1alpha2.PatchTarget{Kind: "Deployment", Name: "web"}, Patch: patch}},
	}
}

// mounting returns a spec with a strategic merge patch that mounts a volume in a container.
func mounting(container, mount, source string) v1alpha2.NginxOperatorSpec {
	return patched(fmt.Sprintf("spec: {template: {spec: {containers: [{name: %s, volumeMounts: [{name: extra, %s}]}], "+
		"volumes: [{name: extra, %s}]}}}", container, mount, source))
}

// patchCases are configurations that use a volume that a patch mounts.
func patchCases() map[string]checked {
	claim := "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 200Gi}}}}}"
	write, read := inServer("access_log /var/big/a.log;"), inServer("include /var/big/*.conf;")
	return map[string]checked{
		"ephemeral claim": {spec: mounting("nginx", "mountPath: /var/big", claim), text: write},
		"emptyDir":        {spec: mounting("nginx", "mountPath: /var/big/", "emptyDir: {}"), text: write},
		"operations": {
			spec: patched(`[{"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "big", "emptyDir": {}}},
			{"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts/-", "value": {"name": "big", "mountPath": "/var/big"}}]`),
			text: write,
		},
		"volume of the spec": {
			spec: patched("spec: {template: {spec: {containers: [{name: nginx, volumeMounts: [{name: scratch, mountPath: /var/big}]}]}}}"),
			text: write,
		},
		"cache": {
			spec: mounting("nginx", "mountPath: /var/big", claim),
			text: inHTTP("proxy_cache_path /var/big keys_zone=a:1m max_size=180g use_temp_path=off;"),
		},
		"read-only mount": {spec: mounting("nginx", "mountPath: /var/big, readOnly: true", claim), text: write},
		"ConfigMap":       {spec: mounting("nginx", "mountPath: /var/big", "configMap: {name: a}"), text: write},
		"elsewhere":       {spec: mounting("nginx", "mountPath: /var/bigger", claim), text: write},
		"another container": {
			spec: mounting("other, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}",
				"mountPath: /var/big", claim),
			text: write,
		},
		"include": {spec: mounting("nginx", "mountPath: /var/big", "configMap: {name: a}"), text: read},
		"instead of spec.files": {
			spec: mounting("nginx", "mountPath: /etc/nginx/files", "secret: {secretName: a}"),
			text: inServer("ssl_dhparam /etc/nginx/files/dh.pem;"),
		},
		"instead of spec.tls": {
			spec: mounting("nginx", "mountPath: /etc/nginx/tls/own", "secret: {secretName: a}"),
			text: inServer("ssl_trusted_certificate /etc/nginx/tls/own/ca.crt;"),
		},
		"Secret that clients can read": {
			spec: mounting("nginx", "mountPath: /srv/keys", "secret: {secretName: a}"), text: inServer("root /srv;"),
		},
		// The operator applies such a patch to the Deployment, which has more than the asset.
		"patch of another part": {
			spec: patched(`[{"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "big", "emptyDir": {}}},
				{"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts/3", "value": {"name": "big", "mountPath": "/var/big"}}]`),
			text: inServer(
				"access_log /var/big/a.log;", "ssl_dhparam /etc/nginx/files/dh.pem;", "ssl_certificate /etc/nginx/tls/own/tls.crt;",
				"include /etc/nginx/files/a;",
			),
		},
	}
}
