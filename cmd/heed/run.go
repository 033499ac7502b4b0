package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// What the program's end says to a script. The help of each command repeats it.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitOutput      = 3
	exitInterrupted = 130
)

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command is one subcommand: its flags are its fields.
type command interface {
	run(ctx context.Context, s streams) int
}

// program is the whole command line. Each command has a file of its own.
type program struct {
	Get     get         `cmd:"" help:"Fetch URLs, waiting where servers want it."`
	Help    helpFlag    `short:"h" help:"Show this help."`
	Version versionFlag `help:"Print the version and exit."`
}

// errShown ends the parsing when a flag has already said everything.
var errShown = errors.New("shown")

type helpFlag bool

// BeforeReset shows the help of the command that is named, before anything missing is complained about.
func (helpFlag) BeforeReset(k *kong.Context) error {
	if err := k.PrintUsage(false); err != nil {
		return err
	}
	return errShown
}

// IgnoreDefault keeps kong from mentioning a default.
func (helpFlag) IgnoreDefault() {}

type versionFlag bool

// BeforeReset prints the version.
func (versionFlag) BeforeReset(k *kong.Context) error {
	if _, err := fmt.Fprintf(k.Stdout, "heed %s\n", version()); err != nil {
		return err
	}
	return errShown
}

// run is the program: it returns what the process exits with. When ctx ends,
// it stops what it does, keeps what it has, and returns 130.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var p program
	parser, err := kong.New(&p,
		kong.Name("heed"),
		kong.Description("A client that respects remote rate limits."),
		kong.Writers(stdout, stderr),
		kong.NoDefaultHelp(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 80}),
	)
	if err != nil {
		panic(err) // a mistake in the tags above
	}
	parsed, err := parser.Parse(args)
	switch {
	case errors.Is(err, errShown):
		return exitOK
	case err != nil:
		return usage(stderr, strings.TrimSpace("heed "+named(err)), err.Error())
	}
	c := parsed.Selected().Target.Addr().Interface().(command)
	return c.run(ctx, streams{stdin, stdout, stderr})
}

// named is the command that was being parsed.
func named(err error) string {
	var bad *kong.ParseError
	if errors.As(err, &bad) && bad.Context != nil && bad.Context.Selected() != nil {
		return bad.Context.Selected().Name
	}
	return ""
}

// usage says in one line what is wrong with how the program was called.
func usage(stderr io.Writer, command, wrong string) int {
	fmt.Fprintf(stderr, "heed: %s; see %s --help\n", printable(wrong), command)
	return exitUsage
}
