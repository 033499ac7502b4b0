package heed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// versioned is an origin that validates by entity tag, and by date.
func versioned(version *int, fields ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		fields := append([]string{fmt.Sprintf(`ETag: "v%d"`, *version)}, fields...)
		if req.Header.Get("If-None-Match") == fmt.Sprintf(`"v%d"`, *version) {
			return cacheReply(304, "", fields...), nil
		}
		return cacheReply(200, fmt.Sprint("version ", *version), fields...), nil
	}
}

func TestCacheA304FreshensWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := 1
		r := newCacheRig(t, versioned(&version, "Cache-Control: max-age=10"))
		r.want(r.get(cacheURL), "stored", "version 1", 1)
		time.Sleep(11 * time.Second)
		got := r.get(cacheURL)
		r.want(got, "revalidated", "version 1", 2)
		if got.StatusCode != 200 || got.Header.Get("Age") != "" {
			t.Errorf("status %d, Age %q: the server spoke just now", got.StatusCode, got.Header.Get("Age"))
		}
		time.Sleep(time.Second)
		got = r.get(cacheURL)
		r.want(got, "hit", "version 1", 2)
		if got.Header.Get("Age") != "1" {
			t.Errorf("Age %q", got.Header.Get("Age"))
		}
		version = 2
		time.Sleep(10 * time.Second)
		r.want(r.get(cacheURL), "stored", "version 2", 3)
		r.want(r.get(cacheURL), "hit", "version 2", 3)
		if c := r.sent[1].Header; c.Get("If-None-Match") != `"v1"` {
			t.Errorf("asked with %v", c)
		}
	})
}

func TestCacheA304BeginsANewAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
			if len(req.Header) > 0 {
				return cacheReply(304, ""), nil
			}
			return cacheReply(200, "v", `ETag: "a"`, "Cache-Control: max-age=601", "Age: 600"), nil
		})
		r.get(cacheURL)
		time.Sleep(2 * time.Second)
		r.want(r.get(cacheURL), "revalidated", "v", 2)
		time.Sleep(600 * time.Second)
		got := r.get(cacheURL)
		r.want(got, "hit", "v", 2)
		if got.Header.Get("Age") != "600" {
			t.Errorf("Age %q", got.Header.Get("Age"))
		}
	})
}

func TestCacheAsksOncePerLifetimeForAsLongAsItIsConfirmed(t *testing.T) {
	for _, date := range []string{"now", "none", "fixed"} {
		synctest.Test(t, func(t *testing.T) {
			r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
				fields := []string{"Cache-Control: max-age=10", `ETag: "a"`}
				if date == "none" {
					fields = append(fields, "Date: none")
				}
				status, body := 200, "v"
				if req.Header.Get("If-None-Match") != "" {
					status, body = 304, ""
				}
				return cacheReply(status, body, fields...), nil
			})
			for range 100 {
				if got := r.get(cacheURL); got.body != "v" || got.StatusCode != 200 {
					t.Fatalf("%d %q", got.StatusCode, got.body)
				}
				time.Sleep(time.Second)
			}
			if r.sends() != 10 {
				t.Errorf("Date %s: %d sends in 100 s at max-age=10", date, r.sends())
			}
		})
	}
}

func TestCacheValidatesWithAllItHas(t *testing.T) {
	const modified = "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"
	for _, tt := range []struct {
		name        string
		fields      []string
		match, date string
	}{
		{"a strong tag", []string{`ETag: "a"`}, `"a"`, ""},
		{"a weak tag", []string{`ETag: W/"a"`}, `W/"a"`, ""},
		{"a date", []string{modified}, "", "Sat, 01 Jan 2000 00:00:00 GMT"},
		{"both (RFC 9111, 4.3.1)", []string{`ETag: "a"`, modified}, `"a"`, "Sat, 01 Jan 2000 00:00:00 GMT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
				if len(req.Header) > 0 {
					return cacheReply(304, "", tt.fields...), nil
				}
				return cacheReply(200, "v", append(tt.fields, "Cache-Control: max-age=0")...), nil
			})
			r.want(r.get(cacheURL), "stored", "v", 1)
			r.want(r.get(cacheURL), "revalidated", "v", 2)
			if h := r.sent[1].Header; h.Get("If-None-Match") != tt.match || h.Get("If-Modified-Since") != tt.date {
				t.Errorf("asked with %v", h)
			}
		})
	}
}

func TestCacheA304UpdatesTheHeaderButNotWhatDescribesTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("If-None-Match") != "" {
				return cacheReply(304, "", `ETag: "a"`, "Cache-Control: max-age=60", "X-New: 1", "X-Old: new", "Content-Type: b/b",
					"Content-Length: 999", "Content-Encoding: gzip", "Content-Range: bytes 0-1/9", "Connection: X-Hop", "X-Hop: 1",
					"Transfer-Encoding: x", "Set-Cookie: s=2", "Age: 5"), nil
			}
			return cacheReply(200, "v", `ETag: "a"`, "Cache-Control: max-age=1", "X-Old: old", "X-Kept: 1", "Content-Type: a/a",
				"Content-Length: 1", "Content-Encoding: br", "Age: 0"), nil
		})
		r.get(cacheURL)
		time.Sleep(2 * time.Second)
		got := r.get(cacheURL)
		r.want(got, "revalidated", "v", 2)
		if got.Header.Get("Set-Cookie") != "s=2" || got.Header.Get("Age") != "5" {
			t.Errorf("what the server said just now is missing: %v", got.Header)
		}
		time.Sleep(time.Second)
		got = r.get(cacheURL)
		r.want(got, "hit", "v", 2)
		for name, want := range map[string]string{
			"X-New": "1", "X-Old": "new", "X-Kept": "1", "Content-Type": "b/b", "Age": "6", // RFC 9111, 3.2
			"Content-Length": "1", "Content-Encoding": "br", "Content-Range": "", "X-Hop": "", "Connection": "", "Transfer-Encoding": "", "Set-Cookie": "",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
			}
		}
		if got.ContentLength != 1 {
			t.Errorf("the length is %d", got.ContentLength)
		}
	})
}

// RFC 9111, 4.3.4: a 304 with the validators of another answer freshens none,
// and the caller, who set no condition, must not get it.
func TestCacheA304ThatSpeaksOfAnotherAnswerIsNotBelieved(t *testing.T) {
	const modified, later = "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT", "Last-Modified: Sat, 01 Jan 2000 00:00:01 GMT"
	for _, tt := range []struct {
		name         string
		stored, says []string
		believed     bool
	}{
		{"the same strong tag", []string{`ETag: "a"`}, []string{`ETag: "a"`}, true},
		{"another strong tag", []string{`ETag: "a"`}, []string{`ETag: "b"`}, false},
		{"a weak tag for a strong one", []string{`ETag: "a"`}, []string{`ETag: W/"a"`}, true},
		{"a strong tag for a weak one", []string{`ETag: W/"a"`}, []string{`ETag: "a"`}, true},
		{"another weak tag", []string{`ETag: W/"a"`}, []string{`ETag: W/"b"`}, false},
		{"a tag where there was none", []string{modified}, []string{`ETag: "a"`}, false},
		{"no validator at all", []string{`ETag: "a"`}, nil, true},
		{"the same date", []string{modified}, []string{modified}, true},
		{"another date", []string{modified}, []string{later}, false},
		{"the same tag and another date", []string{`ETag: "a"`, modified}, []string{`ETag: "a"`, later}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
				if n++; len(req.Header) > 0 {
					return cacheReply(304, "", append(tt.says, "Cache-Control: max-age=60")...), nil
				}
				return cacheReply(200, fmt.Sprint("v", n), append(tt.stored, "Cache-Control: max-age=0")...), nil
			})
			r.want(r.get(cacheURL), "stored", "v1", 1)
			if tt.believed {
				r.want(r.get(cacheURL), "revalidated", "v1", 2)
				r.want(r.get(cacheURL), "hit", "v1", 2)
				return
			}
			got := r.get(cacheURL)
			r.want(got, "stored", "v3", 3)
			if got.StatusCode != 200 || len(r.sent[2].Header) != 0 || len(got.Request.Header) != 0 {
				t.Errorf("%d; asked again with %v", got.StatusCode, r.sent[2].Header)
			}
		})
	}
}

func TestCacheEntryThatA304DoesNotSpeakOfIsGone(t *testing.T) {
	n := 0
	r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
		if n++; len(req.Header) > 0 {
			return cacheReply(304, "", `ETag: "b"`), nil
		}
		return cacheReply(200, fmt.Sprint("v", n), `ETag: "a"`, []string{"Cache-Control: max-age=0", "Cache-Control: no-store"}[min(n-1, 1)]), nil
	})
	r.get(cacheURL)
	r.want(r.get(cacheURL), "miss", "v3", 3)
	if n := r.layer.cache.Len(); n != 0 {
		t.Errorf("%d entries", n)
	}
}

func TestCacheEntryIsNeverChangedInPlace(t *testing.T) {
	r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
		if len(req.Header) > 0 {
			return cacheReply(304, "", "X-A: new", "Cache-Control: max-age=60"), nil
		}
		return cacheReply(200, "v", `ETag: "a"`, "Cache-Control: max-age=0", "X-A: old"), nil
	})
	r.get(cacheURL)
	old := r.layer.cache.shelf.recent.Values()[0]
	before := fmt.Sprint(*old)
	r.want(r.get(cacheURL), "revalidated", "v", 2)
	if now := fmt.Sprint(*old); now != before {
		t.Errorf("an entry that another caller may be reading changed from\n%s to\n%s", before, now)
	}
	if next := r.layer.cache.shelf.recent.Values()[0]; next == old || next.header.Get("X-A") != "new" {
		t.Error("and the news is not stored")
	}
}

func TestCacheA304ThatForbidsStoringEndsTheEntry(t *testing.T) {
	for _, says := range []string{"Cache-Control: no-store", "Vary: *"} {
		r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
			if len(req.Header) > 0 {
				return cacheReply(304, "", says), nil
			}
			return cacheReply(200, "v", `ETag: "a"`, "Cache-Control: max-age=0"), nil
		})
		r.get(cacheURL)
		r.want(r.get(cacheURL), "revalidated", "v", 2)
		if n := r.layer.cache.Len(); n != 0 {
			t.Errorf("%d entries after a 304 with %s", n, says)
		}
	}
}

func TestCacheClosesTheBodyOfA304(t *testing.T) {
	body := new(countingBody)
	r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
		if len(req.Header) > 0 {
			resp := cacheReply(304, "")
			resp.Body = body
			return resp, nil
		}
		return cacheReply(200, "v", `ETag: "a"`, "Cache-Control: max-age=0"), nil
	})
	r.get(cacheURL)
	r.get(cacheURL)
	if body.n != 1 {
		t.Errorf("closed %d times", body.n)
	}
}

func TestCacheDoesNotShowTheCallerItsOwnCondition(t *testing.T) {
	version := 1
	r := newCacheRig(t, versioned(&version, "Cache-Control: max-age=0"))
	r.get(cacheURL)
	for range 2 {
		version++
		got := r.get(cacheURL)
		if _, ok := got.Request.Header["If-None-Match"]; ok || got.outcome != "stored" {
			t.Errorf("%s, for a request with %v", got.outcome, got.Request.Header)
		}
	}
}

// The caller's own conditions (RFC 9111, 4.3.2): answered when what is stored is fresh, never replaced.
func TestCacheAnswersTheConditionsOfItsCaller(t *testing.T) {
	const day = "Sat, 01 Jan 2000 00:00:00 GMT"
	for _, tt := range []struct {
		name   string
		stored []string
		asks   []string
		status int
	}{
		{"the same tag", []string{`ETag: "a"`}, []string{`If-None-Match: "a"`}, 304},
		{"another tag", []string{`ETag: "a"`}, []string{`If-None-Match: "b"`}, 200},
		{"weakly the same (RFC 9110, 13.1.2)", []string{`ETag: W/"a"`}, []string{`If-None-Match: "a"`}, 304},
		{"weakly the same, reversed", []string{`ETag: "a"`}, []string{`If-None-Match: W/"a"`}, 304},
		{"one of a list", []string{`ETag: "a"`}, []string{`If-None-Match: "x", "y,z" , W/"a"`}, 304},
		{"one of two lines", []string{`ETag: "a"`}, []string{`If-None-Match: "x"`, `If-None-Match: "a"`}, 304},
		{"inside another tag", []string{`ETag: "a"`}, []string{`If-None-Match: "x,\"a\""`}, 200},
		{"without quotes", []string{`ETag: "a"`}, []string{`If-None-Match: a`}, 200},
		{"a tag without an end", []string{`ETag: "a"`}, []string{`If-None-Match: "a`}, 200},
		{"anything", []string{`ETag: "a"`}, []string{`If-None-Match: *`}, 304},
		{"anything, no tag", nil, []string{`If-None-Match: *`}, 304},
		{"a tag where there is none", nil, []string{`If-None-Match: "a"`}, 200},
		{"not modified since", []string{"Last-Modified: " + day}, []string{"If-Modified-Since: " + day}, 304},
		{"modified since", []string{"Last-Modified: Sat, 01 Jan 2000 00:00:01 GMT"}, []string{"If-Modified-Since: " + day}, 200},
		{"since a date that is none", []string{"Last-Modified: " + day}, []string{"If-Modified-Since: then"}, 200},
		{"since two dates", []string{"Last-Modified: " + day}, []string{"If-Modified-Since: " + day, "If-Modified-Since: " + day}, 200},
		{"no Last-Modified: by Date", nil, []string{"If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT"}, 304},
		{"the tag goes first", []string{`ETag: "a"`, "Last-Modified: " + day}, []string{`If-None-Match: "b"`, "If-Modified-Since: " + day}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCacheRig(t, always(200, "v", append(tt.stored, "Cache-Control: max-age=60", "Content-Type: a/b")...))
				r.get(cacheURL)
				time.Sleep(2 * time.Second)
				got := r.get(cacheURL, tt.asks...)
				want := map[int]string{200: "v", 304: ""}[tt.status]
				r.want(got, "hit", want, 1)
				if got.StatusCode != tt.status || got.Header.Get("Age") != "2" || got.Header.Get("Cache-Control") == "" {
					t.Errorf("%d %v", got.StatusCode, got.Header)
				}
				if tt.status == 304 && (got.Header.Get("Content-Type") != "" || got.Header.Get("Date") == "") {
					t.Errorf("a 304 with %v (RFC 9110, 15.4.5)", got.Header)
				}
				// Stale: forwarded as they are, and whatever comes back is theirs.
				time.Sleep(60 * time.Second)
				r.origin = always(304, "")
				if got := r.get(cacheURL, tt.asks...); got.StatusCode != 304 || got.outcome != "bypass" {
					t.Errorf("%d as a %s", got.StatusCode, got.outcome)
				}
				if sent := r.sent[1]; fmt.Sprint(sent.Header) != fmt.Sprint(cacheFields(tt.asks...)) {
					t.Errorf("asked with %v", sent.Header)
				}
				if r.layer.cache.Len() != 1 {
					t.Error("a 304 for the caller took the entry away")
				}
			})
		})
	}
}

func TestCacheConditionOnAStoredErrorIsNotEvaluated(t *testing.T) {
	r := newCacheRig(t, always(404, "no", "Cache-Control: max-age=60", `ETag: "a"`))
	r.get(cacheURL)
	if got := r.get(cacheURL, `If-None-Match: "a"`); got.StatusCode != 404 || got.outcome != "hit" {
		t.Errorf("%d as a %s (RFC 9110, 13.2.1)", got.StatusCode, got.outcome)
	}
}

func TestCacheStoresWhatACallersOwnConditionBrought(t *testing.T) {
	r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=60", `ETag: "b"`))
	r.want(r.get(cacheURL, `If-None-Match: "a"`), "stored", "v", 1)
	r.want(r.get(cacheURL), "hit", "v", 1)
}

func TestCacheEntrySurvivesAFailedValidation(t *testing.T) {
	lost := errors.New("connection lost")
	for name, fail := range map[string]func(*http.Request) (*http.Response, error){
		"429":                        always(429, "slow down", "Retry-After: 1"),
		"503":                        always(503, "down"),
		"503 that is fresh":          always(503, "down", "Cache-Control: max-age=60"),
		"500":                        always(500, "broken"),
		"408":                        always(408, ""),
		"lost":                       func(*http.Request) (*http.Response, error) { return nil, lost },
		"refused by a limit of ours": func(*http.Request) (*http.Response, error) { return nil, &LimitError{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				version := 1
				good := versioned(&version, "Cache-Control: max-age=10")
				r := newCacheRig(t, good)
				r.get(cacheURL)
				time.Sleep(11 * time.Second)
				r.origin = fail
				want, wantErr := fail(nil)
				got := r.get(cacheURL)
				switch {
				case wantErr != nil:
					if got.err != wantErr && !errors.Is(got.err, ErrLimited) {
						t.Errorf("the caller got %v", got.err)
					}
				case got.StatusCode != want.StatusCode || got.outcome != "miss":
					t.Errorf("the caller got %d as a %s", got.StatusCode, got.outcome)
				}
				r.origin = good
				r.want(r.get(cacheURL), "revalidated", "version 1", 3)
			})
		})
	}
}

func TestCacheEntryEndsWhenTheServerHasAnotherAnswer(t *testing.T) {
	for _, status := range []int{200, 301, 302, 401, 403, 404, 410} {
		synctest.Test(t, func(t *testing.T) {
			r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=10, stale-if-error=600", `ETag: "a"`))
			r.get(cacheURL)
			time.Sleep(11 * time.Second)
			r.origin = always(status, "another", "Cache-Control: no-store")
			r.want(r.get(cacheURL), "miss", "another", 2)
			r.origin = always(503, "down")
			r.want(r.get(cacheURL), "miss", "down", 3)
		})
	}
}

// RFC 5861, 4: for the directive of the stored answer.
func TestCacheServesStaleInPlaceOfAnError(t *testing.T) {
	lost := errors.New("connection lost")
	const allows = "max-age=60, stale-if-error=600"
	for _, tt := range []struct {
		name, stored, request string
		at                    time.Duration
		status                int // 0: the connection is lost
		says                  string
		stale                 bool
	}{
		{"500", allows, "", 120, 500, "", true},
		{"502", allows, "", 120, 502, "", true},
		{"503", allows, "", 120, 503, "", true},
		{"504", allows, "", 120, 504, "", true},
		{"a lost connection", allows, "", 120, 0, "", true},
		{"301", allows, "", 120, 301, "", false},
		{"401", allows, "", 120, 401, "", false},
		{"403", allows, "", 120, 403, "", false},
		{"404", allows, "", 120, 404, "", false},
		{"410", allows, "", 120, 410, "", false},
		{"429", allows, "", 120, 429, "", false},
		{"501", allows, "", 120, 501, "", false},
		{"at the end, counted from expiry", allows, "", 660, 503, "", true},
		{"past the end", allows, "", 661, 503, "", false},
		{"with must-revalidate", allows + ", must-revalidate", "", 120, 503, "", false},
		{"with must-revalidate, lost", allows + ", must-revalidate", "", 120, 0, "", false},
		{"with no-cache", allows + ", no-cache", "", 30, 503, "", false},
		{"not allowed", "max-age=60", "", 120, 503, "", false},
		{"allowed by the error, not by the answer", "max-age=60", "", 120, 503, "stale-if-error=600", false},
		{"forbidden by the error, allowed by the answer", allows, "", 120, 503, "no-store", true},
		{"the caller asks for newer", allows, "no-cache", 120, 503, "", false},
		{"the caller asks for an age", allows, "max-age=10", 120, 503, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCacheRig(t, always(200, "good", "Cache-Control: "+tt.stored, `ETag: "a"`))
				r.get(cacheURL)
				time.Sleep(tt.at * time.Second)
				body := &countingBody{}
				r.origin = func(*http.Request) (*http.Response, error) {
					if tt.status == 0 {
						return nil, lost
					}
					resp := cacheReply(tt.status, "bad", "Cache-Control: "+tt.says)
					resp.Body = body
					return resp, nil
				}
				var fields []string
				if tt.request != "" {
					fields = append(fields, "Cache-Control: "+tt.request)
				}
				got := r.get(cacheURL, fields...)
				if tt.stale {
					r.want(got, "hit", "good", 2)
					if got.Header.Get("Age") != fmt.Sprint(int64(tt.at)) {
						t.Errorf("Age %q", got.Header.Get("Age"))
					}
				} else if tt.status == 0 && got.err != lost || tt.status != 0 && (got.err != nil || got.StatusCode != tt.status) {
					t.Errorf("got %+v", got)
				}
				if tt.status != 0 && body.n != 1 {
					t.Errorf("the body of the error was closed %d times", body.n)
				}
			})
		})
	}
}

func TestCacheDoesNotServeStaleForItsOwnRefusals(t *testing.T) {
	for _, err := range []error{&LimitError{}, &CallError{Err: errScheme}} {
		synctest.Test(t, func(t *testing.T) {
			r := newCacheRig(t, always(200, "good", "Cache-Control: max-age=1, stale-if-error=600"))
			r.get(cacheURL)
			time.Sleep(2 * time.Second)
			r.origin = func(*http.Request) (*http.Response, error) { return nil, err }
			if got := r.get(cacheURL); got.err == nil {
				t.Errorf("%v gave %q", err, got.body)
			}
		})
	}
}

func TestCacheServesStaleThroughAWholeTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, hangs := true, false
		tr := &Transport{Cache: new(Cache), Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			if hangs {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			if !up {
				return cacheReply(503, "down"), nil
			}
			return cacheReply(200, "good", "Cache-Control: max-age=60, stale-if-error=86400", `ETag: "a"`), nil
		})}
		get := func(ctx context.Context) (string, Info, error) {
			req, _ := http.NewRequestWithContext(ctx, "GET", cacheURL, nil)
			resp, err := tr.Client().Do(req)
			if err != nil {
				return "", Info{}, err
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			return string(b), InfoOf(resp), err
		}
		_, _, _ = get(t.Context())
		time.Sleep(2 * time.Minute)
		up = false
		body, info, err := get(t.Context())
		if body != "good" || info.Cache != "hit" || info.Attempts != 7 || err != nil {
			t.Errorf("%q, %+v, %v", body, info, err)
		}
		hangs = true
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if body, _, err := get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller whose time was up got %q, %v", body, err)
		}
	})
}
