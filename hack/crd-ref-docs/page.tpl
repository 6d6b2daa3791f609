{{- /* One page for one version of the API. The anchors are those of the page that had both versions. */ -}}
{{- define "gvList" -}}
{{- range . -}}
# API reference: {{ .Version }}

{{ if eq .Version "v1alpha2" -}}
<a id="api-reference"></a><a id="packages"></a><a id="resource-types-1"></a><a id="operatorexamplecomv1alpha1"></a><a id="operatorexamplecomv1alpha2"></a>
Generated from `api/v1alpha2`, the stored version. For explanations and examples, see [the fields](../guide/fields.md).
For the deprecated version, see [API reference: v1alpha1](api-v1alpha1.md).
{{- else -}}
Generated from `api/{{ .Version }}`, a deprecated version. For the stored version, see [API reference: v1alpha2](api.md).
{{- end }}

## Resource types

{{ $version := . }}
{{- range .SortedKinds -}}
* {{ $version.TypeForKind . | markdownRenderTypeLink }}
{{ end }}
## Types
{{- range .SortedTypes }}
{{- template "type" dict "type" . "version" $version.Version }}
{{- end }}
{{ end }}
{{- end -}}

{{- define "type" -}}
{{- $version := .version -}}
{{- with .type -}}
{{- if markdownShouldRenderType . }}

### {{ .Name }}

{{ if and (eq $version "v1alpha2") (has .Name (list "NginxOperator" "NginxOperatorSpec")) -}}
<a id="{{ lower .Name }}-1"></a>
{{ end -}}
{{ .Doc }}
{{- if .IsAlias }}

Underlying type: {{ markdownRenderTypeLink .UnderlyingType }}
{{- end }}
{{- with .Validation }}

Validation: {{ join "; " . }}
{{- end }}
{{- with .SortedReferences }}

Appears in: {{ range $i, $reference := . }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $reference }}{{ end }}
{{- end }}
{{- if .Members }}

| Field | Description | Default | Validation |
| --- | --- | --- | --- |
{{- with .GVK }}
| `apiVersion` _string_ | `{{ .Group }}/{{ .Version }}` | | |
| `kind` _string_ | `{{ .Kind }}` | | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` _{{ template "link" dict "version" $version "text" (markdownRenderType .Type) }}_ | {{ template "meaning" . }} | {{ markdownRenderDefault .Default }} | {{ range .Validation }}{{ markdownRenderFieldDoc . }} <br />{{ end }} |
{{- end }}
{{- end }}
{{- if .EnumValues }}

| Value | Description |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* v1alpha1 has the status of v1alpha2. */ -}}
{{- define "link" -}}
{{- $status := "(#nginxoperatorstatus)" -}}
{{- if eq .version "v1alpha1" }}{{ .text | replace $status (printf "(api.md%s" (trimPrefix "(" $status)) }}{{ else }}{{ .text }}{{ end }}
{{- end -}}

{{- define "meaning" -}}
{{- if eq .Name "metadata" -}}
Refer to the Kubernetes API documentation for the fields of `metadata`.
{{- else -}}
{{ markdownRenderFieldDoc .Doc }}
{{- end -}}
{{- end -}}
