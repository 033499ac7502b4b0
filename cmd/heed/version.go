package main

import (
	"runtime/debug"
	"strings"
)

// version is the version that the program was built as, "(devel)" from a work tree.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// userAgent says to servers who is asking (RFC 9110, 10.1.5).
func userAgent() string {
	return "heed/" + strings.Trim(version(), "()")
}
