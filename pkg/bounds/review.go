package bounds

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxReviewBytes bounds an AdmissionReview: two objects of MaxBytes, and the envelope.
const MaxReviewBytes = 7 << 20

// Review is the text of an AdmissionReview, split before any decoder reads it.
type Review struct {
	// Envelope is the review with null in place of its objects, within the bounds of JSON.
	Envelope []byte
	// Object and OldObject are the texts of request.object and request.oldObject, or nil if they
	// are missing or null. They share memory with the body. Only their depth is bounded, so check
	// them with a bound before decoding them.
	Object, OldObject []byte
}

// ReadReview splits an AdmissionReview in one pass, without decoding. It returns an error if the
// body is not a JSON object or exceeds a bound.
func ReadReview(body []byte) (Review, error) {
	if len(body) > MaxReviewBytes {
		return Review{}, fmt.Errorf("exceeds the limit of %d bytes", MaxReviewBytes)
	}
	if !utf8.Valid(body) {
		return Review{}, errors.New("not valid UTF-8") // a decoder replaces each invalid byte by three
	}
	if text := bytes.TrimLeft(body, jsonSpace); len(text) == 0 || text[0] != '{' {
		return Review{}, errors.New("not a JSON object")
	}

	s := splitter{body: body, values: 1}
	for s.at = 0; s.at < len(body); s.at++ {
		if err := s.step(); err != nil {
			return Review{}, err
		}
	}

	if s.depth != 0 {
		return Review{}, errors.New("unexpected end of JSON input")
	}

	s.out.Envelope = append(s.out.Envelope, body[s.copied:]...)
	return s.out, nil
}

const jsonSpace = " \t\r\n"

type splitter struct {
	body []byte
	out  Review
	// at is the index of the current character. The envelope has the body up to copied.
	at, copied    int
	depth, values int
	// key is the last string. inRequest is true if the value of "request" follows.
	key       []byte
	inRequest bool
	// object is the field that the text from start belongs to, or nil outside of objects.
	object *[]byte
	start  int
}

func (s *splitter) step() error {
	switch s.body[s.at] {
	case '"':
		text := s.body[s.at+1:]
		s.key = text[:endOfText(text)]
		s.at += len(s.key) + 1
	case ':':
		s.colon()
	case '{', '[':
		s.depth++
		s.count()
	case '}', ']':
		s.depth--
		if s.depth < requestDepth {
			s.endObject()
		}
	case ',':
		if s.depth <= requestDepth {
			s.endObject()
		}
		s.count()
	}

	most := MaxDepth
	if s.object != nil {
		most = maxStoredDepth
	}

	switch {
	case s.depth > most:
		return fmt.Errorf("exceeds the limit of %d levels of nesting", most)
	case s.values > MaxValues:
		return fmt.Errorf("exceeds the limit of %d values outside of its objects", MaxValues)
	}

	return nil
}

const requestDepth = 2

func (s *splitter) count() {
	if s.object == nil {
		s.values++
	}
}

func (s *splitter) colon() {
	switch {
	case s.depth == requestDepth-1:
		s.inRequest = string(s.key) == "request"
	case s.depth != requestDepth || !s.inRequest || s.object != nil:
	case string(s.key) == "object":
		s.object, s.start = &s.out.Object, s.at+1
	case string(s.key) == "oldObject":
		s.object, s.start = &s.out.OldObject, s.at+1
	}
}

// endObject records the end of an object, which the envelope replaces by null. The last of several
// fields with the same name wins, as in every decoder.
func (s *splitter) endObject() {
	if s.object == nil {
		return
	}

	*s.object = bytes.Trim(s.body[s.start:s.at], jsonSpace)
	if string(*s.object) == "null" {
		*s.object = nil
	}

	s.out.Envelope = append(append(s.out.Envelope, s.body[s.copied:s.start]...), "null"...)
	s.copied, s.object = s.at, nil
}
