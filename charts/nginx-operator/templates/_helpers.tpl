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

{{- /* The ports of config/, which apply without a flag. */ -}}
{{- define "nginx-operator.defaultPorts" -}}
metrics: 8443
probes: 8081
webhooks: 9443
{{- end -}}

{{- /* The number of a port. The argument has the root and the name. `helm upgrade --reuse-values` from 0.7.0 has no ports. */ -}}
{{- define "nginx-operator.port" -}}
{{- index (merge (dict) (.root.Values.ports | default dict) (include "nginx-operator.defaultPorts" .root | fromYaml)) .name | int -}}
{{- end -}}

{{- /* The flags for ports with another number than in config/. */ -}}
{{- define "nginx-operator.portFlags" -}}
{{- $root := . -}}
{{- $defaults := include "nginx-operator.defaultPorts" . | fromYaml -}}
{{- $flags := dict "metrics" "--metrics-bind-address" "probes" "--health-probe-bind-address" "webhooks" "--webhook-bind-address" -}}
{{- $numbers := list -}}
{{- range $name, $flag := $flags -}}
{{- $port := include "nginx-operator.port" (dict "root" $root "name" $name) -}}
{{- if has $port $numbers -}}
{{- fail (printf "ports.%s: another entry of ports also has the number %s; set a different number" $name $port) -}}
{{- end -}}
{{- $numbers = append $numbers $port -}}
{{- if and $root.Values.hostNetwork (eq $port "10250") -}}
{{- fail (printf "ports.%s: the kubelet uses 10250 on the network of the nodes; set another number" $name) -}}
{{- end -}}
{{- range $root.Values.extraArgs -}}
{{- if and (hasPrefix (print $flag "=") .) (not (hasSuffix (print ":" $port) .)) (ne "--metrics-bind-address=0" .) -}}
{{- fail (printf "extraArgs: nothing connects to the port of %q: set ports.%s instead" . $name) -}}
{{- end -}}
{{- end -}}
{{- if ne $port (index $defaults $name | toString) }}
- {{ printf "%s=:%s" $flag $port | quote }}
{{- end -}}
{{- end -}}
{{- end -}}
