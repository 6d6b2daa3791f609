package nginxconf

import "strings"

// common are the directives that nearest may propose beside those of the table.
var common = strings.Fields(`access_log add_header allow auth_request_set default_type deny error_log error_page geo
	gzip_types if include index limit_conn limit_conn_zone limit_except limit_req limit_req_zone listen location log_format
	map proxy_cache_path proxy_cache_valid proxy_cookie_path proxy_hide_header proxy_redirect proxy_set_header return
	rewrite server server_name set set_real_ip_from ssl_certificate ssl_certificate_key ssl_session_cache sub_filter
	types upstream fastcgi_param grpc_set_header split_clients stub_status`)

// nearest returns the directive that somebody who wrote the name may have meant, "" where none is near.
func nearest(name string) string {
	best, least := "", 3
	if len(name) < 5 {
		least = 2
	}
	propose := func(candidate string) {
		if d := distance(strings.ToLower(name), candidate, least); d < least {
			best, least = candidate, d
		}
	}
	for _, candidate := range common {
		propose(candidate)
	}
	for _, entry := range once {
		propose(entry.name)
	}
	return best
}

// distance returns how many letters have to be put in, taken out or replaced to come from a to b, or bound where it is
// that many or more.
func distance(a, b string, bound int) int {
	if len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], bound)
}
