package main

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// The same picture is drawn until a step has passed.
func TestWindow(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 29, 999, time.UTC)
	for _, test := range []struct {
		span, step time.Duration
		end        string
	}{{time.Minute, time.Second, "12:00:29"}, {10 * time.Minute, 6 * time.Second, "12:00:24"}, {time.Hour, 36 * time.Second, "12:00:00"}} {
		w := newWindow(at, test.span)
		if w.step != test.step || w.end.Format("15:04:05") != test.end || w.end.Sub(w.start)%w.step != 0 || w.end.Sub(w.start) != test.span {
			t.Errorf("%s: %+v, want a step of %s until %s", test.span, w, test.step, test.end)
		}
	}
	if w := newWindow(at, time.Hour); w.rateInterval(time.Second) != w.step || w.rateInterval(time.Minute) != time.Minute {
		t.Errorf("the interval of rates is %s, %s", w.rateInterval(time.Second), w.rateInterval(time.Minute))
	}
}

// A step without a value, and one that is no number, are gaps. Points within a level stretch are left out.
func TestSplit(t *testing.T) {
	var samples []model.SamplePair
	for at, value := range []float64{1, 1, 1, 2, math.NaN(), 3, 3, -1, 5, 5, 5, 5} {
		if value != -1 {
			samples = append(samples, model.SamplePair{Timestamp: model.Time(at * 15_000), Value: model.SampleValue(value)})
		}
	}
	want := [][]point{{{0, 1}, {30, 1}, {45, 2}}, {{75, 3}, {90, 3}}, {{120, 5}, {165, 5}}}
	if got := split(samples, 15*time.Second); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := split(samples[4:5], 15*time.Second); got != nil {
		t.Errorf("%v of no number", got)
	}
}

func TestNameOf(t *testing.T) {
	labels := model.Metric{"__name__": "nginx_up", "namespace": "shop", "pod": "web-a"}
	for legend, want := range map[string]string{
		"answer": "answer", "{{namespace}}/{{ pod }}": "shop/web-a", "in {{zone}}": "in ", "": `nginx_up{namespace="shop", pod="web-a"}`,
	} {
		if got := nameOf(labels, legend); got != want {
			t.Errorf("%q: %q, want %q", legend, got, want)
		}
	}
}

func TestInterpolate(t *testing.T) {
	values := map[string]string{"namespace": "shop", "__rate_interval": "1m"}
	const query = `rate(nginx_http_requests_total{namespace=~"$namespace", a=~"${namespace}", b=~"${namespace:regex}"}[$__rate_interval])`
	const want = `rate(nginx_http_requests_total{namespace=~"shop", a=~"shop", b=~"shop"}[1m])`
	if got, err := interpolate(query, values); err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if got, err := interpolate(`up{a="$instance"}`, values); err == nil {
		t.Errorf("%s, though $instance has no value", got)
	}
}
