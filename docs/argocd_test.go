package docs_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// healths is what Argo CD's health check says of each status of the golden files, by the name of
// its file in internal/status/testdata: its health, and how the message begins.
var healths = map[string][2]string{
	"status-blocked":                     {"Degraded", "ReferenceNotFound: "},
	"status-blocked-at-first":            {"Degraded", "ReferenceNotFound: "},
	"status-complete":                    {"Healthy", "AllReplicasReady: "},
	"status-complete-with-a-failing-pod": {"Healthy", "AllReplicasReady: "},
	"status-image-missing":               {"Degraded", "ImagePullFailed: "},
	"status-image-missing-for-long":      {"Degraded", "ImagePullFailed: "},
	"status-lost-a-pod":                  {"Progressing", "ReplicasUnavailable: "},
	"status-name-conflict":               {"Degraded", "NameConflict: "},
	"status-not-seen-yet":                {"Progressing", "RolloutInProgress: "},
	"status-nothing-yet":                 {"Progressing", "RolloutInProgress: "},
	"status-paused":                      {"Healthy", "AllReplicasReady: "},
	"status-paused-and-blocked":          {"Degraded", "ReferenceNotFound: "},
	"status-paused-while-rolling":        {"Progressing", "RolloutInProgress: "},
	"status-paused-with-changes":         {"Suspended", "Paused: spec.paused blocks: Deployment "},
	"status-predecessor":                 {"Progressing", "RolloutInProgress: "},
	"status-rolling":                     {"Progressing", "RolloutInProgress: "},
	"status-rolled-back":                 {"Degraded", "RolledBack: "},
	"status-rolling-back":                {"Degraded", "RolledBack: "},
	"status-stalled":                     {"Degraded", "ProgressDeadlineExceeded: "},
	"status-zero":                        {"Healthy", "ScaledToZero: "},
}

// The health check of the documentation, run as Argo CD runs it, on every status that the operator
// writes.
func TestArgoCDHealth(t *testing.T) {
	script := healthScript(t)
	files, err := fs.Glob(repository, "internal/status/testdata/status-*.yaml")
	if err != nil || len(files) != len(healths) {
		t.Errorf("there are %d statuses, want %d: %v", len(files), len(healths), err)
	}
	for _, file := range files {
		var status map[string]any
		if err := yaml.Unmarshal([]byte(read(t, file)), &status); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			metadata := map[string]any{"generation": status["observedGeneration"]}
			requireHealth(t, script, map[string]any{"metadata": metadata, "status": status}, healths[name])
		})
	}
	waiting := [2]string{"Progressing", "waiting for the operator"}
	metadata := map[string]any{"generation": 2.0}
	complete := map[string]any{
		"observedGeneration": 1.0,
		"conditions":         []any{map[string]any{"type": "Ready", "status": "True", "reason": "AllReplicasReady", "message": "1 of 1"}},
	}
	for name, object := range map[string]map[string]any{
		"no status yet":                     {"metadata": metadata},
		"a status without conditions":       {"metadata": metadata, "status": map[string]any{"observedGeneration": 2.0}},
		"a status of the generation before": {"metadata": metadata, "status": complete},
	} {
		t.Run(name, func(t *testing.T) { requireHealth(t, script, object, waiting) })
	}
}

// healthScript returns the script that the documentation puts into argocd-cm.
func healthScript(t *testing.T) string {
	t.Helper()
	const page = "docs/guide/gitops.md"
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1) {
		var configMap struct{ Data map[string]string }
		if err := yaml.Unmarshal([]byte(block[1]), &configMap); err != nil {
			continue // several documents, of which none is this one
		}
		if script := configMap.Data["resource.customizations.health.operator.example.com_NginxOperator"]; script != "" {
			return script
		}
	}
	t.Fatalf("%s has no health check for Argo CD", page)
	return ""
}

// requireHealth runs the script on an object, as Argo CD does: with the base library and tables,
// the object as the global obj, and the returned table as the result.
func requireHealth(t *testing.T, script string, object map[string]any, want [2]string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	health, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", state.Get(-1))
	}
	status, message := health.RawGetString("status").String(), health.RawGetString("message").String()
	if status != want[0] || !strings.HasPrefix(message, want[1]) {
		t.Errorf("the health is %s, %q; want %s, %q", status, message, want[0], want[1])
	}
}

// luaValue returns a value of JSON as Lua has it.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, field := range value {
			table.RawSetString(key, luaValue(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	default:
		return lua.LNil
	}
}
