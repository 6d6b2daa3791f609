{{- /* The operator's image: by digest if there is one, or by tag. */ -}}
{{- define "nginx-operator.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- /* Labels of every object, next to the labels of config/. They select nothing. The argument has the root and more labels. */ -}}
{{- define "nginx-operator.labels" -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := dict "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $own = merge $own (dict "app.kubernetes.io/version" .root.Chart.AppVersion "helm.sh/chart" $chart) -}}
{{ toYaml (merge $own (.more | default dict) .root.Values.commonLabels) }}
{{- end -}}
