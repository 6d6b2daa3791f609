package node

import "testing"

func TestRecordMatches(t *testing.T) {
	record := processRecord{PID: 42, Start: 100, Boot: "a"}
	for _, test := range []struct {
		name   string
		record processRecord
		boot   string
		stat   processStat
		want   bool
	}{
		{"the same process", record, "a", processStat{'S', 100}, true},
		{"the id was used again", record, "a", processStat{'S', 101}, false},
		{"after a reboot start times come again", record, "b", processStat{'S', 100}, false},
		{"it ended and nobody collected it", record, "a", processStat{'Z', 100}, false},
		{"no process", processRecord{}, "", processStat{'S', 0}, false},
	} {
		if got := test.record.matches(test.boot, test.stat); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}

func TestInCgroup(t *testing.T) {
	for data, want := range map[string]bool{
		"4:memory:/nginx-operator-1/kubepods/pod1\n0::/\n": true,
		"0::/nginx-operator-1\n":                           true,
		"0::/docker/abc/nginx-operator-1/kubepods\n":       true,
		"0::/nginx-operator-12/kubepods\n":                 false,
		"0::/x-nginx-operator-1\n":                         false,
		"1:name=systemd:/\n":                               false,
		"":                                                 false,
	} {
		if got := inCgroup(data, "nginx-operator-1"); got != want {
			t.Errorf("%q: got %v", data, got)
		}
	}
}
