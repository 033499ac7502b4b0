package heed

import (
	"go/parser"
	"go/token"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// drawn reads the layer names out of the package documentation, top to bottom.
func drawn(t *testing.T) (layers []string, perCall int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\t(?:([A-Z]\w+) {2,}\S|(══╪))`)
	for _, m := range row.FindAllStringSubmatch(file.Doc.Text(), -1) {
		if m[2] != "" {
			perCall = len(layers)
			continue
		}
		layers = append(layers, m[1])
	}
	return layers, perCall
}

func TestThePictureInTheDocumentationIsTheChainThatIsBuilt(t *testing.T) {
	tr := &Transport{Cache: NewCache(1 << 20)}
	tr.once.Do(tr.compile)
	var built []string
	for _, l := range tr.chain.layers {
		built = append(built, l.name())
	}
	built = append(built, "Base")
	picture, perCall := drawn(t)
	if !slices.Equal(picture, built) {
		t.Errorf("the picture shows %v, the chain is %v", picture, built)
	}
	if want := slices.Index(built, "Retry") + 1; perCall != want {
		t.Errorf("the per-attempt line is drawn below layer %d, Retry is layer %d", perCall, want)
	}
}

func TestTheFieldsOfTransportStandInChainOrder(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[Transport]().Fields() {
		if f.IsExported() {
			fields = append(fields, f.Name)
		}
	}
	want := []string{"Cache", "Retry", "Throttle", "Budget", "Dialects", "Base", "Observer", "Logger", "Rand"}
	if !slices.Equal(fields, want) {
		t.Errorf("fields are %v, want %v", fields, want)
	}
}

func TestWithoutACacheThereIsNoCacheLayer(t *testing.T) {
	tr := new(Transport)
	tr.once.Do(tr.compile)
	if got := tr.chain.layers[0].name(); got != "Retry" {
		t.Errorf("outermost layer is %s, want Retry", got)
	}
	if tr.chain.base != http.DefaultTransport {
		t.Error("a nil Base is not http.DefaultTransport")
	}
}
