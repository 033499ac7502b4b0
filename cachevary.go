package heed

import (
	"encoding/binary"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// parseVary reads all lines of a Vary field (RFC 9110, 12.5.5): the canonical
// names, sorted, each once. ok is false when no request matches: for "*"
// anywhere (RFC 9111, 4.1), for what is no field name, and for a flood.
func parseVary(lines []string) (names []string, ok bool) {
	if len(lines) > maxLines {
		return nil, false
	}
	for _, line := range lines {
		for line != "" {
			var name string
			name, line, _ = strings.Cut(line, ",")
			if name = strings.Trim(name, " \t"); name == "" {
				continue
			}
			if !fieldName(name) || len(names) == maxItems {
				return nil, false
			}
			names = append(names, textproto.CanonicalMIMEHeaderKey(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// fieldName says that s is a token, and not "*", which is one too.
func fieldName(s string) bool { return s != "*" && isToken(s) }

// variant is the digest of the fields that an answer varies by; zero when it does not vary.
func (k *keyer) variant(names []string, h http.Header) digest {
	if len(names) == 0 {
		return digest{}
	}
	return k.digest(func(b []byte) []byte { return appendVariant(b, names, h) })
}

// choose selects the entry for a request among those of its key: the newest
// that matches, by Date (RFC 9111, 4 and 4.1). Where some vary, one that does
// not say by what is no answer: servers forget Vary on their default answer.
func (k *keyer) choose(found []*entry, h http.Header, head bool) (best *entry) {
	varied := newestVary(found) != nil
	var names []string // whose variant is at hand
	var variant digest
	for _, e := range found {
		if e.id.head && !head || len(e.vary) == 0 && varied {
			continue
		}
		if len(e.vary) > 0 {
			if !slices.Equal(names, e.vary) {
				names, variant = e.vary, k.variant(e.vary, h)
			}
			if e.id.variant != variant {
				continue
			}
		}
		if best == nil || e.newer(best) {
			best = e
		}
	}
	return best
}

// newer orders entries by Date, and by receipt within one second.
func (e *entry) newer(than *entry) bool {
	if c := e.policy.date.Compare(than.policy.date); c != 0 {
		return c > 0
	}
	return e.received.mono >= than.received.mono
}

// newestVary is what the newest of the entries that vary does so by.
func newestVary(found []*entry) []string {
	var newest *entry
	for _, e := range found {
		if len(e.vary) > 0 && (newest == nil || e.newer(newest)) {
			newest = e
		}
	}
	if newest == nil {
		return nil
	}
	return newest.vary
}

// appendVariant writes the fields that Vary names as the request has them, so
// that two requests write the same if and only if they match (RFC 9111, 4.1).
func appendVariant(b []byte, names []string, h http.Header) []byte {
	for _, name := range names {
		b = appendField(b, name)
		lines, present := h[name]
		if !present || len(lines) == 0 {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		b = appendSelecting(b, name, lines)
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	return b
}

// appendSelecting writes a field's lines as one, normalised as far as its
// syntax is known: whitespace around the delimiters of the Accept fields, and
// the letter case of codings, charsets and languages, mean nothing.
func appendSelecting(b []byte, name string, lines []string) []byte {
	list, fold := false, false
	switch name {
	case "Accept":
		list = true
	case "Accept-Charset", "Accept-Encoding", "Accept-Language":
		list, fold = true, true
	}
	for i, line := range lines {
		if i > 0 {
			b = append(b, ',')
			if !list {
				b = append(b, ' ')
			}
		}
		line = strings.Trim(line, " \t")
		if !list || strings.IndexByte(line, '"') >= 0 {
			b = append(b, line...)
			continue
		}
		for j := range len(line) {
			c := line[j]
			switch {
			case (c == ' ' || c == '\t') && besideDelimiter(line, j):
				continue
			case fold && 'A' <= c && c <= 'Z':
				c += 'a' - 'A'
			}
			b = append(b, c)
		}
	}
	return b
}

// besideDelimiter says that only whitespace stands between line[i] and a comma or semicolon.
func besideDelimiter(line string, i int) bool {
	before, after := strings.TrimRight(line[:i], " \t"), strings.TrimLeft(line[i:], " \t")
	return strings.HasSuffix(before, ",") || strings.HasSuffix(before, ";") ||
		strings.HasPrefix(after, ",") || strings.HasPrefix(after, ";")
}

// appendField writes a string so that what follows cannot be taken for part of it.
func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
