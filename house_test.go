package heed_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The rules of CONTRIBUTING.md that a program can check.

const modulePath = "github.com/heedhttp/heed"

// needs skips a test that cannot run without a program, but not in CI, where a
// test that does not run would pass unseen.
func needs(t *testing.T, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not installed, which CI must have", program)
	default:
		t.Skipf("%s is not installed", program)
	}
}

// source is one Go file of the repository.
type source struct {
	path   string // from the root, with slashes
	module string // the folder of its module: "." is the root module
	text   string
	file   *ast.File
	fset   *token.FileSet
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) test() bool   { return strings.HasSuffix(s.path, "_test.go") }
func (s source) lines() int   { return strings.Count(s.text, "\n") }
func (s source) main() bool   { return s.file.Name.Name == "main" }
func (s source) inRoot() bool { return s.module == "." }

// imports are the paths that the file imports.
func (s source) imports() (paths []string) {
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// walk calls yield for every file that belongs to the repository's text.
func walk(t *testing.T, yield func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.Type().IsRegular():
			yield(filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources reads all Go files, those of nested modules too.
func sources(t *testing.T) (all []source) {
	t.Helper()
	modules := make(map[string]bool)
	var files []string
	walk(t, func(p string) {
		switch {
		case path.Base(p) == "go.mod":
			modules[path.Dir(p)] = true
		case path.Ext(p) == ".go":
			files = append(files, p)
		}
	})
	for _, p := range files {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		s := source{path: p, text: string(text), fset: token.NewFileSet()}
		if s.file, err = parser.ParseFile(s.fset, p, text, parser.ParseComments); err != nil {
			t.Fatal(err)
		}
		for s.module = path.Dir(p); !modules[s.module] && s.module != "."; {
			s.module = path.Dir(s.module)
		}
		all = append(all, s)
	}
	return all
}

func TestTheRootModuleRequiresTheseModulesAlone(t *testing.T) {
	needs(t, "go")
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range mod.Require {
		got = append(got, r.Path)
	}
	slices.Sort(got)
	want := []string{ // a new one is a decision: write a page in docs/decisions first
		"github.com/cenkalti/backoff/v4",
		"github.com/dunglas/httpsfv",
		"github.com/google/go-cmp",
		"github.com/hashicorp/golang-lru/v2",
		"github.com/jarcoal/httpmock",
		"go.uber.org/goleak",
		"golang.org/x/time",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go.mod requires other modules than the list has (-want +got):\n%s", diff)
	}
	if len(mod.Replace) > 0 {
		t.Errorf("go.mod replaces %v, which nobody who imports the module sees", mod.Replace)
	}
}

func TestEachPackageOfTheRootModuleImportsOnlyWhatItsLayerMay(t *testing.T) {
	may := map[string][]string{
		".": {
			modulePath + "/limiter",
			"github.com/cenkalti/backoff/v4",
			"github.com/dunglas/httpsfv",
			"github.com/hashicorp/golang-lru/v2/simplelru",
			"golang.org/x/time/rate",
		},
		"limiter":             {},
		"heedtest":            {modulePath + "/internal/memnet", modulePath + "/limiter"},
		"internal/memnet":     {},
		"examples/quickstart": {modulePath, modulePath + "/heedtest", modulePath + "/limiter"},
	}
	tests := []string{"github.com/google/go-cmp/", "github.com/jarcoal/httpmock", "go.uber.org/goleak"}
	for _, s := range sources(t) {
		if !s.inRoot() {
			continue
		}
		allowed, known := may[s.dir()]
		if !known {
			t.Errorf("%s: the package is not in the table of what imports what; add it there", s.path)
			continue
		}
		for _, p := range s.imports() {
			first, _, _ := strings.Cut(p, "/")
			ours := p == modulePath || strings.HasPrefix(p, modulePath+"/")
			switch {
			case !strings.Contains(first, "."): // the standard library
			case slices.Contains(allowed, p):
			case s.test() && ours:
			case s.test() && slices.ContainsFunc(tests, func(m string) bool { return strings.HasPrefix(p, m) }):
			default:
				t.Errorf("%s imports %s, which its package may not", s.path, p)
			}
		}
	}
}

func TestNestedModulesUseTheExportedAPI(t *testing.T) {
	inside := []string{"cmd/heed", "benchmarks", "interop"} // part of the project's own machinery
	for _, s := range sources(t) {
		if s.inRoot() || slices.Contains(inside, s.module) {
			continue
		}
		for _, p := range s.imports() {
			if strings.HasPrefix(p, modulePath+"/internal/") {
				t.Errorf("%s imports %s; only %v may", s.path, p, inside)
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	const most = 600
	var code []int
	for _, s := range sources(t) {
		if s.lines() > most {
			t.Errorf("%s has %d lines, more than %d; a file is about one noun", s.path, s.lines(), most)
		}
		if !s.test() {
			code = append(code, s.lines())
		}
	}
	slices.Sort(code)
	t.Logf("%d files that are no tests; the median has %d lines", len(code), code[len(code)/2])
}

func TestThereIsAtLeastAsMuchTestAsCode(t *testing.T) {
	type size struct{ code, tests int }
	of := make(map[string]size)
	for _, s := range sources(t) {
		n := of[s.module]
		if s.test() {
			n.tests += s.lines()
		} else {
			n.code += s.lines()
		}
		of[s.module] = n
	}
	for module, n := range of {
		t.Logf("module %s: %d lines of code, %d of tests", module, n.code, n.tests)
	}
	if n := of["."]; n.tests < n.code {
		t.Errorf("the root module has %d lines of code and only %d of tests", n.code, n.tests)
	}
}

func TestTheRootPackageStaysSmall(t *testing.T) {
	const most = 70
	var names []string
	for _, s := range sources(t) {
		if s.dir() != "." || s.test() {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					names = append(names, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() {
						names = append(names, ts.Name.Name)
					}
				}
			}
		}
	}
	if len(names) >= most {
		t.Errorf("%d exported types and functions, want under %d: %v", len(names), most, names)
	}
	t.Logf("%d exported types and functions", len(names))
}

func TestWhatIsExportedIsDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.main() || strings.HasPrefix(s.path, "internal/") {
			continue
		}
		missing := func(at token.Pos, name string) {
			t.Errorf("%s: %s is exported and has no comment", s.fset.Position(at), name)
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exportedReceiver(d)) {
					missing(d.Pos(), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() && spec.Doc == nil && d.Doc == nil {
							missing(spec.Pos(), spec.Name.Name)
						}
					case *ast.ValueSpec:
						if spec.Names[0].IsExported() && spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
							missing(spec.Pos(), spec.Names[0].Name)
						}
					}
				}
			}
		}
	}
}

// exportedReceiver says that a method belongs to a type that users see.
func exportedReceiver(d *ast.FuncDecl) bool {
	seen := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !seen {
			seen = id.IsExported()
			return false
		}
		return true
	})
	return seen
}

func TestNoCodeRunsAtImport(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: an init function; make the value when it is first used", s.fset.Position(f.Pos()))
			}
		}
	}
}

func TestTestsDoNotSleepInRealTime(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() || slices.Contains(s.imports(), "testing/synctest") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Sleep" {
				return true
			}
			at := s.fset.Position(call.Pos())
			if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "time" && !s.commented(at.Line, "real time: ") {
				t.Errorf("%s: time.Sleep outside a synctest bubble; wait for an event, or say why in a comment `// real time: ...`", at)
			}
			return true
		})
	}
}

func TestPureCoresReadNoClockAndTakeNoLock(t *testing.T) {
	pure := []string{"ledger.go", "window.go", "rule.go", "queue.go", "jitter.go", "headers.go", "headervalue.go"}
	found := 0
	for _, s := range sources(t) {
		if !slices.Contains(pure, s.path) {
			continue
		}
		found++
		for _, p := range s.imports() {
			if p == "sync" || p == "sync/atomic" || p == "log/slog" {
				t.Errorf("%s imports %s; what decides is fed, and does nothing else", s.path, p)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.SelectorExpr); ok {
				pkg, ok := f.X.(*ast.Ident)
				if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "NewTimer", "After", "AfterFunc"}, f.Sel.Name) {
					t.Errorf("%s: time.%s; take an instant instead", s.fset.Position(f.Pos()), f.Sel.Name)
				}
			}
			return true
		})
	}
	if found != len(pure) {
		t.Errorf("found %d of the files %v", found, pure)
	}
}

// commented says that a comment with these words stands on the line or right above it.
func (s source) commented(line int, words string) bool {
	for _, group := range s.file.Comments {
		from, to := s.fset.Position(group.Pos()).Line, s.fset.Position(group.End()).Line
		if from <= line && line <= to+1 && strings.Contains(group.Text(), words) {
			return true
		}
	}
	return false
}

func TestNothingIsLeftForLater(t *testing.T) {
	later := regexp.MustCompile(`\b(` + strings.Join([]string{"TODO", "FIXME", "XXX", "HACK"}, "|") + `)\b`)
	for _, s := range sources(t) {
		var in scanner.Scanner
		file := token.NewFileSet()
		in.Init(file.AddFile(s.path, -1, len(s.text)), []byte(s.text), nil, scanner.ScanComments)
		for pos, tok, text := in.Scan(); tok != token.EOF; pos, tok, text = in.Scan() {
			if tok == token.COMMENT && later.MatchString(text) {
				t.Errorf("%s: %s; do it now", file.Position(pos), text)
			}
		}
	}
	walk(t, func(p string) {
		switch path.Ext(p) {
		case ".md", ".yml", ".conf":
		default:
			if path.Base(p) != "Makefile" {
				return
			}
		}
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if m := later.Find(text); m != nil {
			t.Errorf("%s: %s; do it now", p, m)
		}
	})
}
