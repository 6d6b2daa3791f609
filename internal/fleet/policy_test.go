package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// tenPercent is the default policy.
var tenPercent = Policy{MaxUnavailable: intstr.FromString("10%"), FailureThreshold: DefaultFailureThreshold}

// TestNextInOneNamespace verifies the order within one namespace. No instance starts before all
// instances were seen, or while one has failed. Canaries start first, and instances that did not
// serve start last.
func TestNextInOneNamespace(t *testing.T) {
	const all = 30
	for name, test := range map[string]struct {
		counts      Counts
		unseen, all int
		want        Place
	}{
		"none waits":                {counts: Counts{}, want: Outside},
		"a slot is free":            {counts: Counts{Waiting: 28, Rolling: 2}, want: Waiting},
		"no slot is free":           {counts: Counts{Waiting: 27, Rolling: 3}, want: Outside},
		"more roll after a restart": {counts: Counts{Waiting: 27, Rolling: 4}, want: Outside},
		"one slot at least":         {counts: Counts{Waiting: 5}, all: 5, want: Waiting},
		"one slot is taken":         {counts: Counts{Waiting: 4, Rolling: 1}, all: 5, want: Outside},
		"not all were seen":         {counts: Counts{Waiting: 29}, unseen: 1, want: Outside},
		"one has failed":            {counts: Counts{Waiting: 29, Failed: 1}, want: Outside},
		"one is overdue":            {counts: Counts{Waiting: 29, Overdue: 1}, want: Outside},
		"canaries go first":         {counts: Counts{WaitingCanary: 2, Waiting: 20}, want: WaitingCanary},
		"canaries are bounded too":  {counts: Counts{WaitingCanary: 9, Waiting: 20, Rolling: 3, rollingCanary: 3}, want: Outside},
		"others wait for canaries":  {counts: Counts{Waiting: 20, Rolling: 1, rollingCanary: 1}, want: Outside},
		"canaries do not wait":      {counts: Counts{WaitingCanary: 2, Rolling: 1, rollingCanary: 1}, want: WaitingCanary},
		"a canary that came later":  {counts: Counts{WaitingCanary: 1, Waiting: 20, Rolling: 2}, want: WaitingCanary},
		"unready comes last":        {counts: Counts{Waiting: 1, WaitingUnready: 20}, want: Waiting},
		"what does not serve":       {counts: Counts{WaitingUnready: 20, Rolling: 1}, want: WaitingUnready},
		"unready waits for canary":  {counts: Counts{WaitingUnready: 20, Rolling: 1, rollingCanary: 1}, want: Outside},
	} {
		t.Run(name, func(t *testing.T) {
			if test.all == 0 {
				test.all = all
			}
			state := stateOf(test.all, test.unseen, by{"shop": test.counts})
			if _, got := tenPercent.Next(state); got != test.want {
				t.Errorf("starts one from %d, want %d", got, test.want)
			}
		})
	}
}

// by has the counts of instances by namespace.
type by = map[string]Counts

// stateOf returns the state for the counts of instances by namespace.
func stateOf(all, unseen int, namespaces by) *State {
	out := newState()
	out.All, out.Unseen = all, unseen
	for namespace, counts := range namespaces {
		out.set(namespace, counts)
	}
	return &out
}

// TestNextBetweenNamespaces verifies the order between namespaces. A namespace gets at most all
// slots except one if others wait. A namespace with a failed or slow instance stops only itself. A
// canary goes first only within its own namespace.
func TestNextBetweenNamespaces(t *testing.T) {
	chosen, first, third, never, one := tenPercent, tenPercent, tenPercent, tenPercent, tenPercent
	chosen.CanaryNamespaces = sets.New("mallory", "staging")
	first.FailureThreshold, third.FailureThreshold, never.FailureThreshold = 1, 3, 0
	one.MaxUnavailable = intstr.FromInt32(1)
	waits, failed, slow := Counts{Waiting: 5}, Counts{Waiting: 5, Failed: 1}, Counts{Waiting: 5, Overdue: 1}
	for name, test := range map[string]struct {
		policy     Policy
		all        int
		namespaces by
		want       string
	}{
		"fewer slots go first":   {tenPercent, 100, by{"mallory": {Waiting: 90, Rolling: 2}, "shop": {Waiting: 8, Rolling: 1}}, "shop"},
		"all but one are held":   {tenPercent, 100, by{"mallory": {Waiting: 90, Rolling: 9}, "shop": {Rolling: 1}}, ""},
		"the last is another's":  {tenPercent, 100, by{"mallory": {Waiting: 90, Rolling: 9}, "shop": waits}, "shop"},
		"started without asking": {tenPercent, 100, by{"mallory": {Rolling: 50}, "shop": waits}, "shop"},
		"no other takes part":    {tenPercent, 100, by{"mallory": {Waiting: 90, Rolling: 9}}, "mallory"},
		"the other is stuck":     {tenPercent, 100, by{"mallory": failed, "shop": {Waiting: 90, Rolling: 9}}, "shop"},
		"a small cluster":        {tenPercent, 5, by{"mallory": {Rolling: 1, Waiting: 3}, "shop": waits}, "shop"},
		"a bound of one":         {one, 100, by{"mallory": {Rolling: 1, Waiting: 3}, "shop": waits}, "shop"},
		"a bound of one, held":   {one, 100, by{"mallory": {Rolling: 1}, "shop": {Waiting: 3, Rolling: 1}}, ""},
		"a failure":              {tenPercent, 100, by{"mallory": failed, "shop": waits}, "shop"},
		"a slow one":             {tenPercent, 100, by{"mallory": slow, "shop": waits}, "shop"},
		"failures in two":        {tenPercent, 100, by{"mallory": failed, "shop": failed, "bank": waits}, ""},
		"slow ones in two":       {tenPercent, 100, by{"mallory": slow, "shop": slow, "bank": waits}, "bank"},
		"threshold 1":            {first, 100, by{"mallory": failed, "shop": waits}, ""},
		"threshold 3":            {third, 100, by{"mallory": failed, "shop": failed, "bank": waits}, "bank"},
		"threshold 0":            {never, 100, by{"mallory": failed, "shop": failed, "bank": waits}, "bank"},
		"threshold 0, itself":    {never, 100, by{"mallory": failed, "shop": {Rolling: 1}}, ""},
		"a canary that waits":    {tenPercent, 100, by{"mallory": {WaitingCanary: 2, Rolling: 1, rollingCanary: 1}, "shop": waits}, "shop"},
		"a canary that rolls":    {tenPercent, 100, by{"mallory": {Waiting: 3, Rolling: 1, rollingCanary: 1}, "shop": waits}, "shop"},
		"a canary that fails":    {tenPercent, 100, by{"mallory": {Failed: 1, failedCanary: 1}, "shop": waits}, "shop"},
		"chosen canary, waits":   {chosen, 100, by{"mallory": {WaitingCanary: 1, Rolling: 1, rollingCanary: 1}, "shop": waits}, "mallory"},
		"chosen canary, rolls":   {chosen, 100, by{"mallory": {Rolling: 1, rollingCanary: 1}, "shop": waits}, ""},
		"chosen canary, is slow": {chosen, 100, by{"mallory": {Overdue: 1, WaitingCanary: 1}, "shop": waits}, "shop"},
		"chosen canary, fails":   {chosen, 100, by{"mallory": {Failed: 1, failedCanary: 1}, "shop": waits}, ""},
		"chosen, no canary":      {chosen, 100, by{"mallory": failed, "shop": waits}, "shop"},
		"canary not chosen":      {chosen, 100, by{"mallory": {Waiting: 1, Rolling: 1}, "shop": {WaitingCanary: 1}}, "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(test.all, 0, test.namespaces)
			got, from := test.policy.Next(state)
			if got != test.want || from != test.namespaces[got].next() {
				t.Errorf("starts one of %q from %d, want %q from %d", got, from, test.want, test.namespaces[test.want].next())
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

// TestSlotTime verifies that the failure of an instance with the default deadline is known before
// its slot is free for another one.
func TestSlotTime(t *testing.T) {
	if SlotTime <= time.Duration(v1alpha2.DefaultProgressDeadlineSeconds)*time.Second {
		t.Errorf("a slot is free after %s", SlotTime)
	}
}

// TestVerdict verifies when OLM may replace the operator: if no instance waits, rolls, or has
// failed. This is known only after all objects were seen. A single namespace can block the
// replacement for at most an hour, as a protection against a hostile tenant. Several namespaces
// block it for as long as they roll or have failed.
func TestVerdict(t *testing.T) {
	third, never := tenPercent, tenPercent
	third.FailureThreshold, never.FailureThreshold = 3, 0
	waits, failed, slow := Counts{Waiting: 9}, Counts{Waiting: 9, Failed: 9}, Counts{Waiting: 9, Overdue: 9}
	for name, test := range map[string]struct {
		policy     Policy
		namespaces by
		unseen     int
		// before and after are the reasons before and after HoldTime, or "" if none is reported.
		before, after string
	}{
		"idle":                 {tenPercent, by{}, 0, ReasonIdle, ReasonIdle},
		"starting":             {tenPercent, by{}, 1, "", ""},
		"one waits":            {tenPercent, by{"mallory": waits}, 0, ReasonRolling, ReasonReleased},
		"one rolls":            {tenPercent, by{"mallory": {Rolling: 1}}, 0, ReasonRolling, ReasonReleased},
		"one fails":            {tenPercent, by{"mallory": failed}, 0, ReasonStopped, ReasonReleased},
		"one is slow":          {tenPercent, by{"mallory": slow}, 0, ReasonRolling, ReasonReleased},
		"its canary fails":     {tenPercent, by{"mallory": {Failed: 1, failedCanary: 1}}, 0, ReasonStopped, ReasonReleased},
		"one fails, one rolls": {tenPercent, by{"mallory": failed, "shop": {Rolling: 1}}, 0, ReasonStopped, ReasonReleased},
		"one slow, one rolls":  {tenPercent, by{"mallory": slow, "shop": waits}, 0, ReasonRolling, ReasonReleased},
		"two roll":             {tenPercent, by{"mallory": {Rolling: 1}, "shop": waits}, 0, ReasonRolling, ReasonRolling},
		"two fail":             {tenPercent, by{"mallory": failed, "shop": failed}, 0, ReasonStopped, ReasonStopped},
		"two fail, three may":  {third, by{"mallory": failed, "shop": failed}, 0, ReasonStopped, ReasonReleased},
		"two fail, all may":    {never, by{"mallory": failed, "shop": failed}, 0, ReasonStopped, ReasonReleased},
		"not all were seen":    {tenPercent, by{"mallory": waits}, 1, ReasonRolling, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(20, test.unseen, test.namespaces)
			failing := ""
			if state.Sum[Failed] > 0 {
				failing = "mallory/web"
			}
			alone, now := holds{}, time.Now()
			at := func(after time.Duration) verdict { return test.policy.verdict(state, failing, alone, now.Add(after)) }
			isTrue := func(of verdict) bool { return of.status == metav1.ConditionTrue }

			first := at(0)
			if first.reason != test.before || isTrue(first) != (test.before == ReasonIdle) {
				t.Errorf("%+v", first)
			}
			if last := at(HoldTime - 1); last != first {
				t.Errorf("%+v before the hour has passed, want %+v", last, first)
			}
			after := at(HoldTime)
			if after.reason != test.after || isTrue(after) != (test.after == ReasonIdle || test.after == ReasonReleased) {
				t.Errorf("%+v after an hour", after)
			}

			// An interruption gives the namespace no additional time.
			idle := test.policy.verdict(stateOf(0, 0, nil), "", alone, now.Add(HoldTime))
			if again := at(HoldTime + time.Second); idle.reason != ReasonIdle || again.reason != test.after {
				t.Errorf("%+v, and again %+v", idle, again)
			}
		})
	}
}
