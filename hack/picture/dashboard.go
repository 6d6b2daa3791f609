package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// dashboard is a dashboard of Grafana, as far as it is drawn.
type dashboard struct {
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name     string `json:"name"`
			Type     string `json:"type"`
			AllValue string `json:"allValue"`
		} `json:"list"`
	} `json:"templating"`
}

// panel is one of its panels, or a row: the heading of those below it.
type panel struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	GridPos     cells  `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string   `json:"unit"`
			Min  *float64 `json:"min"`
		} `json:"defaults"`
		Overrides []override `json:"overrides"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

// cells are where a panel is and how large, in a grid of 24 columns.
type cells struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// override sets properties of the series that it matches.
type override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options any    `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string `json:"id"`
		Value any    `json:"value"`
	} `json:"properties"`
}

// fixedColors returns the names of the colours that a panel gives to series, by the names of these.
func (p *panel) fixedColors() map[string]string {
	out := map[string]string{}
	for _, o := range p.FieldConfig.Overrides {
		name, _ := o.Matcher.Options.(string)
		for _, property := range o.Properties {
			value, _ := property.Value.(map[string]any)
			if color, fixed := value["fixedColor"].(string); fixed && o.Matcher.ID == "byName" && property.ID == "color" {
				out[name] = color
			}
		}
	}
	return out
}

func readDashboard(file string) (*dashboard, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, fmt.Errorf("failed to read the dashboard: %w", err)
	}
	out := &dashboard{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("failed to read the dashboard %s: %w", file, err)
	}
	if len(out.Panels) == 0 {
		return nil, fmt.Errorf("the dashboard %s has no panels", file)
	}
	return out, nil
}

// values returns what the variables of the dashboard's queries stand for: what is given, or all.
func (d *dashboard) values(given map[string]string, span, rateInterval time.Duration) (map[string]string, error) {
	out := map[string]string{"__range": model.Duration(span).String(), "__rate_interval": model.Duration(rateInterval).String()}
	var names []string
	for _, variable := range d.Templating.List {
		value, found := given[variable.Name]
		if !found {
			value = variable.AllValue
		}
		if value != "" {
			out[variable.Name] = value
		}
		names = append(names, variable.Name)
	}
	for name := range given {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("the dashboard has no variable %s, but %s", name, strings.Join(names, ", "))
		}
	}
	return out, nil
}

// selected says what is selected: each variable of queries with its value.
func (d *dashboard) selected(given map[string]string) []string {
	var out []string
	for _, variable := range d.Templating.List {
		if variable.Type == "datasource" {
			continue
		}
		value := given[variable.Name]
		if value == "" {
			value = "all"
		}
		out = append(out, variable.Name+": "+value)
	}
	return out
}

var reference = regexp.MustCompile(`\$\{(\w+)(?::\w+)?\}|\$(\w+)`)

// interpolate puts values into the place of the variables of a query: $name, ${name} and ${name:format}.
func interpolate(query string, values map[string]string) (string, error) {
	var unknown []string
	out := reference.ReplaceAllStringFunc(query, func(text string) string {
		match := reference.FindStringSubmatch(text)
		value, found := values[match[1]+match[2]]
		if !found {
			unknown = append(unknown, text)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("no value of %s in %s", strings.Join(unknown, ", "), query)
	}
	return out, nil
}

// answered is a panel with the answers to its queries.
type answered struct {
	*panel
	series []series
}

// ask asks the queries of all panels.
func (d *dashboard) ask(ctx context.Context, source *source, values map[string]string) ([]answered, error) {
	out := make([]answered, len(d.Panels))
	for i := range d.Panels {
		out[i].panel = &d.Panels[i]
		for _, target := range d.Panels[i].Targets {
			query, err := interpolate(target.Expr, values)
			if err != nil {
				return nil, err
			}
			found, err := source.ask(ctx, query, target.LegendFormat)
			if err != nil {
				return nil, fmt.Errorf("panel %q: %w", d.Panels[i].Title, err)
			}
			out[i].series = append(out[i].series, found...)
		}
	}
	return out, nil
}
