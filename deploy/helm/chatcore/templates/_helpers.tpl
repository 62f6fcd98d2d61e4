{{- define "chatcore.labels" -}}
app.kubernetes.io/name: chatcore
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "chatcore.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - secretRef: {name: {{ .Values.existingSecret }}}
env:
  - {name: CHATCORE_PUBLIC_URL, value: {{ .Values.publicUrl | quote }}}
  - {name: CHATCORE_TRUSTED_PROXIES, value: "*"}
  - {name: CHATCORE_LOG_FORMAT, value: json}
  - {name: CHATCORE_DRAIN_SECONDS, value: {{ .Values.web.drainSeconds | quote }}}
  {{- range $name, $value := .Values.env }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: data, mountPath: /data}
  - {name: outputs, mountPath: /data/outputs}
{{- end }}
{{- define "chatcore.pod" -}}
securityContext: {runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
volumes:
  - {name: tmp, emptyDir: {}}
  - {name: data, emptyDir: {}}
  - name: outputs
    {{- if .Values.outputsClaim }}
    persistentVolumeClaim: {claimName: {{ .Values.outputsClaim }}}
    {{- else }}
    emptyDir: {}
    {{- end }}
{{- end }}
