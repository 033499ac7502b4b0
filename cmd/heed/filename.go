package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestName bounds a file name in bytes; file systems take 255, and a temporary one is longer.
const longestName = 180

// names gives every item of a run a file name of its own. Names come in the
// order of the list, so that the same list gets the same names each time.
type names struct {
	taken map[string]struct{} // in lower case: some file systems see no difference
}

// assign names the file of one URL.
func (n *names) assign(u *url.URL) string {
	if n.taken == nil {
		n.taken = make(map[string]struct{})
	}
	name, exact := fileName(u)
	if !exact || n.has(name) {
		name = insert(name, digest(u))
	}
	plain := name
	for i := 2; n.has(name); i++ {
		name = insert(plain, fmt.Sprint(i))
	}
	n.taken[strings.ToLower(name)] = struct{}{}
	return name
}

func (n *names) has(name string) bool {
	_, ok := n.taken[strings.ToLower(name)]
	return ok
}

// fileName makes a legible file name of a URL's host and path: one name, never
// a path, never hidden, and none that some system keeps for a device. exact
// says that nothing was lost but the slashes.
func fileName(u *url.URL) (name string, exact bool) {
	path := strings.TrimPrefix(u.Path, "/")
	if path == "" || strings.HasSuffix(path, "/") {
		path += "index"
	}
	exact = u.RawQuery == ""
	var b strings.Builder
	for _, r := range strings.ToLower(u.Host) + "/" + path {
		switch {
		case r == '/':
			b.WriteByte('_')
		case r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-._~=,+@", r)):
			b.WriteRune(r)
		case r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
			exact = false // file systems differ in what they take for the same letter
		case r == ':': // of a port
			b.WriteByte('_')
		default:
			b.WriteByte('_')
			exact = false
		}
	}
	name = b.String()
	if len(name) > longestName {
		cut := longestName
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name, exact = name[:cut], false
	}
	if trimmed := strings.TrimRight(name, "."); trimmed != name {
		name, exact = trimmed+"_", false // Windows drops dots at the end
	}
	if name[0] == '.' || name[0] == '-' || device(name) {
		name, exact = "_"+name, false
	}
	return name, exact
}

// device says that Windows takes the name for a device, whatever its extension.
func device(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "com" || stem[:3] == "lpt") && unicode.IsDigit(rune(stem[3]))
}

// digest tells URLs apart whose names would be the same. It does not depend on
// user info, and shows nothing of the query.
func digest(u *url.URL) string {
	bare := *u
	bare.User = nil
	sum := sha256.Sum256([]byte(bare.String()))
	return hex.EncodeToString(sum[:5])
}

// insert puts a mark before the extension, so that the file keeps its kind.
func insert(name, mark string) string {
	dot := strings.LastIndexByte(name, '.')
	if slash := strings.LastIndexByte(name, '_'); dot < slash || len(name)-dot > 9 {
		dot = len(name) // a dot of the host, or no extension
	}
	return name[:dot] + "-" + mark + name[dot:]
}
