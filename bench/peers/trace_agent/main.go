// SPDX-License-Identifier: Apache-2.0

// Peer of the bench `agent`: Datadog's trace-agent, its receiver, normaliser, samplers and
// concentrator as they are; only the writers, which would send to its backend, count instead.
//
//	trace_agent PORT    listens on 127.0.0.1:PORT; at SIGTERM one JSON line: spans that were counted
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	gzip "github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip"
	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/agent"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-agent/pkg/trace/writer"
	"github.com/DataDog/datadog-go/v5/statsd"
)

// hits is the end of the line for traces and stats alike: it keeps the sum of the rows' hits.
type hits struct{ total atomic.Uint64 }

func (h *hits) Write(p *pb.StatsPayload) {
	for _, client := range p.Stats {
		for _, bucket := range client.Stats {
			for _, row := range bucket.Stats {
				h.total.Add(row.Hits)
			}
		}
	}
}

func (*hits) WriteChunks(*writer.SampledChunks)     {}
func (*hits) WriteChunksV1(*writer.SampledChunksV1) {}
func (*hits) FlushSync() error                      { return nil }
func (*hits) UpdateAPIKey(string, string)           {}
func (*hits) Stop()                                 {}

func settings(port int) *config.AgentConfig {
	c := config.New()
	c.Hostname, c.AgentVersion = "bench", "7.85.4"
	c.Endpoints = []*config.Endpoint{{APIKey: "0", Host: "http://127.0.0.1:1"}}
	c.ReceiverHost, c.ReceiverPort = "127.0.0.1", port
	c.DecoderTimeout, c.ReceiverTimeout, c.MaxConnections = 1000, 5, 200
	c.TelemetryConfig.Enabled = false
	c.MaxMemory, c.MaxCPU = 0, 0 // no watchdog: it ends an agent that is as busy as ours are to be
	c.PeerTagsAggregation = true
	return c
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: trace_agent PORT")
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	c, out, quiet := settings(port), &hits{}, &statsd.NoOpClient{}
	a := agent.NewAgent(ctx, c, telemetry.NewNoopCollector(), quiet, gzip.NewComponent())
	a.TraceWriter, a.TraceWriterV1 = out, out
	a.Concentrator = stats.NewConcentrator(c, out, time.Now(), quiet)
	a.ClientStatsAggregator = stats.NewClientStatsAggregator(c, out, quiet)
	a.Run()
	fmt.Printf("{\"spans\":%d}\n", out.total.Load())
}
