package heedtest_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/heedhttp/heed/heedtest"
)

func TestRespondIsAResponderOfHTTPMock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Limit: perWindow(2, time.Minute), Dialect: heedtest.RetryAfter}
		mock := httpmock.NewMockTransport()
		mock.RegisterResponder(http.MethodGet, "https://api.test/limited", srv.Respond)
		mock.RegisterResponder(http.MethodGet, "https://api.test/free", httpmock.NewStringResponder(200, "free"))
		client := &http.Client{Transport: mock}
		status := func(path string) int {
			t.Helper()
			resp, err := client.Get("https://api.test" + path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Error(err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		for i, want := range []int{200, 200, 429} {
			if got := status("/limited"); got != want {
				t.Errorf("%d: got %d, want %d", i, got, want)
			}
		}
		if got := status("/free"); got != 200 {
			t.Errorf("what is not limited got %d", got)
		}
		time.Sleep(time.Minute)
		if got := status("/limited"); got != 200 {
			t.Errorf("in the next minute: got %d", got)
		}
		if n := mock.GetCallCountInfo()["GET https://api.test/limited"]; n != 4 || srv.Report().Accepted != 3 {
			t.Errorf("%d calls\n%v", n, srv.Report())
		}
	})
}
