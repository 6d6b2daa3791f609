package main

import (
	"bytes"
	"strconv"
)

// Numbers of a message, in the order of its fields. Times are in seconds, sizes in bytes.
const status, duration, sent, received, upstream, fieldCount = 0, 1, 2, 3, 4, 5

// none is the number of a field without one: "-", of a request without an upstream server.
const none = -1

// tag ends the syslog header of a message. The version of the format follows.
var tag, separator = []byte(" nginx_requests: 1|"), []byte("|")

// parse reads a datagram without allocating memory. server is a part of the datagram.
func parse(datagram []byte) (numbers [fieldCount]float64, server []byte, valid bool) {
	header, rest, found := bytes.Cut(datagram, tag)
	if !found || !bytes.HasPrefix(header, []byte("<")) {
		return numbers, nil, false
	}
	for i := range numbers {
		field, after, found := bytes.Cut(rest, separator)
		value, valid := sum(field)
		if !found || !valid || value == none && i != upstream {
			return numbers, nil, false
		}
		numbers[i], rest = value, after
	}
	return numbers, rest, true
}

// sum returns the sum of a list such as "0.010, - : 0.300", which has an entry for each upstream
// server that nginx tried.
func sum(list []byte) (float64, bool) {
	total := float64(none)
	for entry := range bytes.FieldsFuncSeq(list, func(r rune) bool { return r == ' ' || r == ',' || r == ':' }) {
		if string(entry) == "-" {
			continue
		}
		value, err := strconv.ParseFloat(string(entry), 64)
		// A negative number or NaN would damage the counters.
		if err != nil || !(value >= 0 && value < 1<<50) {
			return 0, false
		}
		total = max(total, 0) + value
	}
	return total, true
}
