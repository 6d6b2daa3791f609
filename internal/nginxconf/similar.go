package nginxconf

import "strings"

// common are the directives that nearest may propose.
var common = strings.Fields(`absolute_redirect access_log add_header add_trailer alias allow auth_basic auth_basic_user_file
	auth_request auth_request_set autoindex break charset client_body_buffer_size client_body_temp_path client_body_timeout
	client_header_buffer_size client_header_timeout client_max_body_size default_type deny disable_symlinks error_log error_page
	etag expires fastcgi_buffer_size fastcgi_buffers fastcgi_cache fastcgi_cache_key fastcgi_cache_path fastcgi_index
	fastcgi_intercept_errors fastcgi_param fastcgi_pass fastcgi_read_timeout fastcgi_split_path_info geo grpc_pass
	grpc_read_timeout grpc_set_header gunzip gzip gzip_comp_level gzip_disable gzip_min_length gzip_proxied gzip_static gzip_types
	gzip_vary hash http2 if if_modified_since include index internal ip_hash keepalive keepalive_requests keepalive_timeout
	large_client_header_buffers least_conn limit_conn limit_conn_status limit_conn_zone limit_except limit_rate limit_req
	limit_req_status limit_req_zone listen location log_format log_not_found map map_hash_bucket_size memcached_pass merge_slashes
	mirror open_file_cache port_in_redirect proxy_bind proxy_buffer_size proxy_buffering proxy_buffers proxy_busy_buffers_size
	proxy_cache proxy_cache_bypass proxy_cache_key proxy_cache_lock proxy_cache_methods proxy_cache_path proxy_cache_use_stale
	proxy_cache_valid proxy_connect_timeout proxy_cookie_domain proxy_cookie_path proxy_hide_header proxy_http_version
	proxy_ignore_headers proxy_intercept_errors proxy_method proxy_next_upstream proxy_no_cache proxy_pass proxy_pass_header
	proxy_pass_request_body proxy_pass_request_headers proxy_read_timeout proxy_redirect proxy_request_buffering proxy_send_timeout
	proxy_set_body proxy_set_header proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_name proxy_ssl_server_name
	proxy_ssl_trusted_certificate proxy_ssl_verify proxy_store proxy_temp_path random real_ip_header real_ip_recursive resolver
	resolver_timeout return rewrite root satisfy scgi_pass send_timeout sendfile server server_name server_name_in_redirect
	server_names_hash_bucket_size server_names_hash_max_size server_tokens set set_real_ip_from split_clients ssi ssl_certificate
	ssl_certificate_key ssl_ciphers ssl_client_certificate ssl_dhparam ssl_ecdh_curve ssl_prefer_server_ciphers ssl_protocols
	ssl_reject_handshake ssl_session_cache ssl_session_tickets ssl_session_timeout ssl_stapling ssl_trusted_certificate
	ssl_verify_client ssl_verify_depth stub_status sub_filter sub_filter_once tcp_nodelay tcp_nopush try_files types
	types_hash_max_size underscores_in_headers upstream userid uwsgi_param uwsgi_pass uwsgi_read_timeout valid_referers zone`)

// nearest returns the directive that somebody who wrote the name may have meant, "" where none is near.
func nearest(name string) string {
	best, least := "", 3
	if len(name) < 5 {
		least = 2
	}
	for _, candidate := range common {
		if d := distance(strings.ToLower(name), candidate, least); d < least {
			best, least = candidate, d
		}
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
