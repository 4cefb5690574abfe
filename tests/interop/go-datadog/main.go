// SPDX-License-Identifier: Apache-2.0

// The shop of app.js with net/http and the stock tracer's integration for it: visits itself, writes down how
// many requests it made and how many failed.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	httptrace "github.com/DataDog/dd-trace-go/contrib/net/http/v2"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
)

func need(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(name string) int {
	value, err := strconv.Atoi(os.Getenv(name))
	need(err)
	return value
}

func shop() http.Handler {
	mux := httptrace.NewServeMux()
	mux.HandleFunc("GET /item/{number}", func(w http.ResponseWriter, r *http.Request) {
		item, _ := strconv.Atoi(r.PathValue("number"))
		pause := time.Millisecond
		if item%10 == 0 {
			pause = 10 * time.Millisecond
		}
		time.Sleep(pause)
		_ = json.NewEncoder(w).Encode(map[string]int{"item": item})
	})
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "broken", http.StatusInternalServerError)
	})
	return mux
}

func main() {
	need(tracer.Start(tracer.WithLogStartup(false)))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	need(err)
	go func() { need(http.Serve(listener, shop())) }()
	client := httptrace.WrapClient(&http.Client{})
	visits, failEvery, failed := number("VISITS"), number("FAIL_EVERY"), 0
	for i := 1; i <= visits; i++ {
		path := fmt.Sprintf("/item/%d", i)
		if i%failEvery == 0 {
			path = "/broken"
		}
		answer, err := client.Get("http://" + listener.Addr().String() + path)
		need(err)
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusInternalServerError {
			failed++
		}
	}
	tracer.Stop() // sends what is left
	result, err := json.Marshal(map[string]int{"requests": visits, "failed": failed})
	need(err)
	need(os.WriteFile(os.Getenv("RESULT"), result, 0o600))
}
