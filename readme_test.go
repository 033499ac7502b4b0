package heed_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedhttp/heed"
)

// What the pages say is held against the code.

// page is one Markdown file.
type page struct{ path, text string }

func pages(t *testing.T) (all []page) {
	t.Helper()
	walk(t, func(p string) {
		if path.Ext(p) != ".md" {
			return
		}
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page{p, string(text)})
	})
	return all
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var fence = regexp.MustCompile("(?ms)^```(\\w*)\\n(.*?)^```$")

// fenced gives the blocks of one language; no language is "".
func fenced(text, language string) (blocks []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == language {
			blocks = append(blocks, m[2])
		}
	}
	return blocks
}

// knownImports are the packages that a snippet may use without importing them.
var knownImports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "os": "os", "slog": "log/slog",
	"http": "net/http", "json": "encoding/json", "synctest": "testing/synctest", "testing": "testing", "time": "time",
	"heed": modulePath, "heedtest": modulePath + "/heedtest", "limiter": modulePath + "/limiter",
}

// program makes a file of a snippet: a whole file stays as it is; declarations
// get a package clause and imports; statements also a function around them, in
// which the names that the pages use throughout exist.
func program(snippet string) (string, error) {
	if strings.HasPrefix(snippet, "package ") {
		return snippet, nil
	}
	body := snippet
	if !regexp.MustCompile(`(?m)^(func|type) `).MatchString(snippet) {
		used, err := declared(snippet)
		if err != nil {
			return "", err
		}
		body = "func _(ctx context.Context, client *http.Client, req *http.Request, resp *http.Response, err error) {\n{\n" +
			snippet + used + "}\n}\n"
	}
	var imports strings.Builder
	for _, name := range slices.Sorted(maps.Keys(knownImports)) {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(body) {
			fmt.Fprintf(&imports, "import %q\n", knownImports[name])
		}
	}
	return "package snippet\n" + imports.String() + body, nil
}

// declared gives the statements that use what a snippet declares: a snippet may stop before it does.
func declared(snippet string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+snippet+"\n}", 0)
	if err != nil {
		return "", err
	}
	var used strings.Builder
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		assign, ok := s.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		for _, left := range assign.Lhs {
			if name := left.(*ast.Ident).Name; name != "_" {
				fmt.Fprintf(&used, "_ = %s\n", name)
			}
		}
	}
	return used.String(), nil
}

func TestTheGoSnippetsOfThePagesCompileAndTheirTestsPass(t *testing.T) {
	needs(t, "go")
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// The snippets are a module of their own beside this one, in a workspace of the two.
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module snippets\n\ngo 1.26.0\n")
	write("go.work", fmt.Sprintf("go 1.26.0\n\nuse (\n\t.\n\t%q\n)\n", root))
	found := 0
	for _, p := range pages(t) {
		for i, snippet := range fenced(p.text, "go") {
			text, err := program(snippet)
			if err != nil {
				t.Errorf("%s, Go block %d: %v\n%s", p.path, i+1, err, snippet)
				continue
			}
			name := "snippet.go"
			if strings.Contains(text, "*testing.T") {
				name = "snippet_test.go"
			}
			write(fmt.Sprintf("%s_%d/%s", strings.NewReplacer("/", "_", ".", "_").Replace(p.path), i+1, name), text)
			found++
		}
	}
	if found < 5 {
		t.Errorf("found %d Go snippets, so they are not looked for in the right way", found)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "./...") // test also vets
	test.Dir, test.Env = dir, append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("go test: %v\n%s", err, out)
	}
}

func TestTheTableOfFieldsIsTheStruct(t *testing.T) {
	var got, want []string
	_, table, _ := strings.Cut(readme(t), "| field |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` +\\| `([^`]+)` ").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	for f := range reflect.TypeFor[heed.Transport]().Fields() {
		if f.IsExported() {
			want = append(want, f.Name+" "+strings.ReplaceAll(f.Type.String(), "heed.", ""))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README.md has other fields than Transport (-want +got):\n%s", diff)
	}
}

func TestThePictureIsTheSameEverywhere(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	picture := regexp.MustCompile(`(?ms)^\tcaller\n.*?^\tBase.*?$`).FindString(file.Doc.Text())
	picture = strings.ReplaceAll("\n"+picture, "\n\t", "\n")[1:]
	if picture == "" {
		t.Fatal("doc.go has no picture")
	}
	if !slices.Contains(fenced(readme(t), ""), picture+"\n") {
		t.Errorf("README.md does not show the picture of doc.go:\n%s", picture)
	}
}

func TestTheTableOfTheQuickstartHasTheShapeThatItPrints(t *testing.T) {
	golden, err := os.ReadFile("examples/quickstart/testdata/table.golden")
	if err != nil {
		t.Fatal(err)
	}
	var shown string
	for _, b := range fenced(readme(t), "") {
		if strings.Contains(b, "requests sent") {
			shown = b
		}
	}
	shown = regexp.MustCompile(`\d[\d,.]*`).ReplaceAllString(shown, "N")
	shown = regexp.MustCompile(` +`).ReplaceAllString(shown, " ")
	if diff := cmp.Diff(string(golden), shown); diff != "" {
		t.Errorf("README.md shows another table than go run ./examples/quickstart prints (-want +got):\n%s", diff)
	}
}

func TestTheCommandsOfThePagesExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := regexp.MustCompile(`\bmake ([a-z]+)\b`)
	runs := regexp.MustCompile(`\bgo (?:run|test|doc) (?:-\S+ )*(\./\S*?)(?:[\s` + "`" + `]|$)`)
	commands := regexp.MustCompile("(?ms)^```sh\\n.*?^```$|`[^`\\n]+`")
	seen := 0
	for _, p := range pages(t) {
		for _, command := range commands.FindAllString(p.text, -1) {
			for _, m := range targets.FindAllStringSubmatch(command, -1) {
				seen++
				if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
					t.Errorf("%s speaks of make %s, which the Makefile does not have", p.path, m[1])
				}
			}
			for _, m := range runs.FindAllStringSubmatch(command, -1) {
				seen++
				if files, _ := filepath.Glob(filepath.Join(m[1], "*.go")); len(files) == 0 {
					t.Errorf("%s speaks of %s, which is no package", p.path, m[1])
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("found %d commands, so they are not looked for in the right way", seen)
	}
}

func TestTheLinksOfThePagesLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	seen := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			seen++
			file := filepath.Join(filepath.Dir(p.path), target)
			if target == "" {
				file = p.path
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s links to %s: %v", p.path, m[1], err)
				continue
			}
			if anchor == "" || info.IsDir() {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", p.path, m[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d links, so they are not looked for in the right way", seen)
	}
}

// anchors are the names that a page's headings get.
func anchors(text string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

func TestEveryTargetOfTheMakefileIsExplained(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var phony []string
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, ".PHONY: "); ok {
			phony = strings.Fields(rest)
		}
	}
	for _, target := range phony {
		if !strings.Contains(string(text), "\n## "+target+": ") {
			t.Errorf("the Makefile's target %s has no line that begins with `## %s: `", target, target)
		}
	}
	if len(phony) < 10 {
		t.Errorf("the Makefile declares %d targets as phony", len(phony))
	}
}
