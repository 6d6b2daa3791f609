package fleet

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Who may begin: nobody before all were seen or while one has failed, canaries before all others, and those that did not serve last.
func TestNext(t *testing.T) {
	const all = 30
	for name, test := range map[string]struct {
		counts Counts
		group  Place
		want   int
	}{
		"nobody waits":                         {Counts{All: all}, Outside, 0},
		"ten percent":                          {Counts{All: all, Ready: 30}, Waiting, 3},
		"places are taken":                     {Counts{All: all, Ready: 28, Rolling: 2}, Waiting, 1},
		"all places are taken":                 {Counts{All: all, Ready: 27, Rolling: 3}, Outside, 0},
		"more roll than may after a restart":   {Counts{All: all, Ready: 27, Rolling: 4}, Outside, 0},
		"fewer wait than may begin":            {Counts{All: all, Ready: 2}, Waiting, 2},
		"one at least":                         {Counts{All: 5, Ready: 5}, Waiting, 1},
		"not all were seen":                    {Counts{All: all, Ready: 29, Unseen: 1}, Outside, 0},
		"one has failed":                       {Counts{All: all, Ready: 29, Failed: 1}, Outside, 0},
		"canaries go first":                    {Counts{All: all, Canaries: 2, Ready: 20}, WaitingCanary, 2},
		"canaries are bounded too":             {Counts{All: all, Canaries: 9, Ready: 20}, WaitingCanary, 3},
		"others wait for canaries":             {Counts{All: all, Ready: 20, Rolling: 1, RollingCanaries: 1}, Outside, 0},
		"canaries do not wait for each other":  {Counts{All: all, Canaries: 2, Rolling: 1, RollingCanaries: 1}, WaitingCanary, 2},
		"a canary that came later":             {Counts{All: all, Canaries: 1, Ready: 20, Rolling: 2}, WaitingCanary, 1},
		"what does not serve comes last":       {Counts{All: all, Ready: 1, Unready: 20}, Waiting, 1},
		"what does not serve is bounded":       {Counts{All: all, Unready: 20, Rolling: 1}, WaitingUnready, 2},
		"what does not serve waits for canary": {Counts{All: all, Unready: 20, Rolling: 1, RollingCanaries: 1}, Outside, 0},
	} {
		t.Run(name, func(t *testing.T) {
			group, instances := test.counts.Next(intstr.FromString("10%"))
			if group != test.group || instances != test.want {
				t.Errorf("%d of group %d, want %d of %d", instances, group, test.want, test.group)
			}
		})
	}
}

func TestParseBound(t *testing.T) {
	for text, want := range map[string]int{
		"1": 1, "7": 7, "10%": 20, "1%": 2, "100%": 200, "2147483647": 2147483647,
		"": 0, "0": 0, "0%": 0, "101%": 0, "-1": 0, "+1": 0, "ten": 0, "%": 0, "10%%": 0, "1.5": 0, "4294967296": 0, "1x": 0,
	} {
		bound, err := ParseBound(text)
		if err != nil {
			if want != 0 {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if got := Limit(bound, 200); got != want {
			t.Errorf("%q lets %d roll, want %d", text, got, want)
		}
	}
}
