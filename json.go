package heed

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// parseJSON reads a JSON value as far as it goes: what was cut off is missing,
// what came before is kept. It gives nil when nothing could be read.
func parseJSON(b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	nodes := maxNodes
	v, _ := jsonValue(d, 0, &nodes)
	return v
}

// jsonValue reads one value; ok is false when the text ends or errs within it.
func jsonValue(d *json.Decoder, depth int, nodes *int) (v any, ok bool) {
	t, err := d.Token()
	if *nodes--; err != nil || *nodes < 0 || depth > 64 {
		return nil, false
	}
	switch t {
	case json.Delim('{'):
		object := make(map[string]any)
		for d.More() {
			key, err := d.Token()
			name, isString := key.(string)
			if err != nil || !isString {
				return object, false
			}
			v, ok := jsonValue(d, depth+1, nodes)
			if v != nil || ok {
				object[name] = v
			}
			if !ok {
				return object, false
			}
		}
		_, err := d.Token()
		return object, err == nil
	case json.Delim('['):
		array := []any{}
		for d.More() {
			v, ok := jsonValue(d, depth+1, nodes)
			if v != nil || ok {
				array = append(array, v)
			}
			if !ok {
				return array, false
			}
		}
		_, err := d.Token()
		return array, err == nil
	}
	return t, true
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
