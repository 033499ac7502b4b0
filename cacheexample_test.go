package heed_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/heedhttp/heed"
)

// A fresh answer is given again without asking the server.
func ExampleCache() {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()

	client := &http.Client{Transport: &heed.Transport{Cache: heed.NewCache(16 << 20)}}
	for range 3 {
		resp, err := client.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%s (%s)\n", body, heed.InfoOf(resp).Cache)
	}
	fmt.Println("asked:", asked)
	// Output:
	// hello (stored)
	// hello (hit)
	// hello (hit)
	// asked: 1
}
