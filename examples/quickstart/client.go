package main

import (
	"net/http"

	"github.com/heedhttp/heed"
)

// client is one way to go about it. Every send passes through base.
type client struct {
	name  string
	make  func(base http.RoundTripper) *http.Client
	again bool // its caller answers a 429 by asking again at once
}

var clients = [...]client{
	{name: "retry at once", make: bare, again: true},
	{name: "heed", make: heeding},
}

// bare is what most programs begin with.
func bare(base http.RoundTripper) *http.Client { return &http.Client{Transport: base} }

// heeding is the same with one line more.
func heeding(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &heed.Transport{Base: base}}
}
