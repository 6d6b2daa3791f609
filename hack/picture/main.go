// Command picture draws a dashboard of Grafana from a Prometheus: it asks the queries of the panels and draws their answers, as one SVG.
// The same answers give the same bytes. It is no Grafana: every panel is drawn as lines over time.
//
//	picture -prometheus http://127.0.0.1:9090 -dashboard config/monitoring/dashboard-instances.json \
//	  -var namespace=shop -var instance=web -range 10m -rate-interval 15s -out picture.svg
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	prometheus, dashboard, out string
	variables                  map[string]string
	// span is the time that is drawn, until end; rateInterval is what $__rate_interval stands for.
	span, rateInterval time.Duration
	end                time.Time
}

func parse(args []string, now time.Time) (*options, error) {
	o := &options{variables: map[string]string{}, end: now}
	flags := flag.NewFlagSet("picture", flag.ContinueOnError)
	flags.StringVar(&o.prometheus, "prometheus", "", "`URL` of Prometheus; required")
	flags.StringVar(&o.dashboard, "dashboard", "", "`file` with the dashboard's JSON; required")
	flags.StringVar(&o.out, "out", "", "`file` that the SVG is written to; required")
	const variable = "`name=value` of a variable of the dashboard, once for each; one that is not given stands for all values"
	flags.Func("var", variable, func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return errors.New("it is not name=value")
		}
		o.variables[name] = value
		return nil
	})
	durations := []struct {
		to                 *time.Duration
		name, value, usage string
	}{
		{&o.span, "range", "1h", "`duration` that is drawn, from 1m"},
		{&o.rateInterval, "rate-interval", "1m", "`duration` that $__rate_interval stands for, four times the scrape interval or more"},
	}
	for _, d := range durations {
		*d.to = mustDuration(d.value)
		flags.Func(d.name, d.usage+" (default "+d.value+")", func(text string) error {
			duration, err := model.ParseDuration(text)
			*d.to = time.Duration(duration)
			return err
		})
	}
	flags.Func("end", "`time` at which the picture ends, as in 2026-01-31T15:04:05Z (default now)", func(text string) (err error) {
		o.end, err = time.Parse(time.RFC3339, text)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case o.prometheus == "" || o.dashboard == "" || o.out == "" || flags.NArg() > 0:
		return nil, errors.New("-prometheus, -dashboard and -out are required, and there is nothing but flags")
	case o.span < time.Minute || o.rateInterval < time.Second:
		return nil, errors.New("-range is at least 1m, and -rate-interval at least 1s")
	}
	return o, nil
}

func mustDuration(text string) time.Duration {
	duration, err := model.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(duration)
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args, time.Now())
	if err != nil {
		return err
	}
	board, err := readDashboard(o.dashboard)
	if err != nil {
		return err
	}
	window := newWindow(o.end, o.span)
	values, err := board.values(o.variables, o.span, window.rateInterval(o.rateInterval))
	if err != nil {
		return err
	}
	source, err := newSource(o.prometheus, window)
	if err != nil {
		return err
	}
	panels, err := board.ask(ctx, source, values)
	if err != nil {
		return err
	}
	svg, err := drawPicture(&picture{title: board.Title, selected: board.selected(o.variables), window: window, panels: panels})
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.out, svg, 0o644); err != nil { //nolint:gosec // a picture is for everybody
		return fmt.Errorf("failed to write the picture: %w", err)
	}
	return nil
}
