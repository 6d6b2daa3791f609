package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	// The name of a process can contain any character, including parentheses.
	line := "42 (a (b) c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 123456 1000 200 18446744073709551615\n"
	stat, err := parseStat(line)
	if err != nil {
		t.Fatal(err)
	}
	if stat.start != 123456 || stat.state != 'S' {
		t.Errorf("got %+v", stat)
	}
	for _, line := range []string{"", "42 (x) S 1 2", "42 x S"} {
		if _, err := parseStat(line); err == nil {
			t.Errorf("%q: want an error", line)
		}
	}
}

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

const mountinfo = `22 27 0:21 / /proc rw,relatime - proc proc rw
30 23 0:25 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
31 23 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
32 27 0:27 / /with\040blank rw - ext4 /dev/sda rw
33 32 0:28 / /with\040blank/inner rw - tmpfs tmpfs rw
`

func TestParseMounts(t *testing.T) {
	want := []mountPoint{
		{"/with blank/inner", "tmpfs"},
		{"/with blank", "ext4"},
		{"/sys/fs/cgroup/unified", "cgroup2"},
		{"/sys/fs/cgroup/cpu", "cgroup"},
		{"/proc", "proc"},
	}
	if diff := cmp.Diff(want, parseMounts(mountinfo), cmp.AllowUnexported(mountPoint{})); diff != "" {
		t.Error(diff)
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
