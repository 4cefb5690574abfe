// SPDX-License-Identifier: Apache-2.0

// agent-go PORT: Datadog's trace-agent on 127.0.0.1:PORT, its receiver, normaliser, samplers, concentrator and
// aggregator of clients' stats as they are. Only what would send to its backend writes here: a JSON line for each
// row of stats, of its own from traces ("client": false) or merged from clients' payloads. A number on standard input
// says how many traces were sent: when they are counted, or after 20 s, it flushes and ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
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
	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"google.golang.org/protobuf/proto"
)

// summary is count and quantiles 0.5, 0.9, 0.99 of a sketch.
func summary(bytes []byte) ([]float64, error) {
	var m sketchpb.DDSketch
	if err := proto.Unmarshal(bytes, &m); err != nil {
		return nil, err
	}
	d, err := ddsketch.FromProto(&m)
	if err != nil || d.IsEmpty() {
		return []float64{0}, err
	}
	q, err := d.GetValuesAtQuantiles([]float64{0.5, 0.9, 0.99})
	return append([]float64{d.GetCount()}, q...), err
}

// lines is the end of the line for stats; traces that it would keep are not looked at.
type lines struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (l *lines) row(p *pb.StatsPayload, client *pb.ClientStatsPayload, b *pb.ClientStatsBucket, g *pb.ClientGroupedStats) {
	ok, err := summary(g.OkSummary)
	failed, also := summary(g.ErrorSummary)
	if err != nil || also != nil {
		fmt.Fprintln(os.Stderr, "sketch:", err, also)
		os.Exit(1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Encode(map[string]any{
		"client": p.ClientComputed, "env": client.Env, "start": b.Start, "for": b.Duration,
		"name": g.Name, "service": g.Service, "resource": g.Resource, "type": g.Type, "kind": g.SpanKind,
		"status": g.HTTPStatusCode, "synthetics": g.Synthetics, "root": int(g.IsTraceRoot), "peer_tags": g.PeerTags,
		"more": g.AdditionalMetricTags, "source": g.ServiceSource, "method": g.HTTPMethod, "endpoint": g.HTTPEndpoint,
		"grpc": g.GRPCStatusCode, "hits": g.Hits, "errors": g.Errors, "top": g.TopLevelHits, "duration": g.Duration,
		"ok": ok, "error": failed,
	})
}

func (l *lines) Write(p *pb.StatsPayload) {
	for _, client := range p.Stats {
		for _, bucket := range client.Stats {
			for _, group := range bucket.Stats {
				l.row(p, client, bucket, group)
			}
		}
	}
}

func (*lines) WriteChunks(*writer.SampledChunks)     {}
func (*lines) WriteChunksV1(*writer.SampledChunksV1) {}
func (*lines) FlushSync() error                      { return nil }
func (*lines) UpdateAPIKey(string, string)           {}
func (*lines) Stop()                                 {}

// counted is the concentrator, which says how many traces it has.
type counted struct {
	*stats.Concentrator
	traces atomic.Int64
}

func (c *counted) Add(t stats.Input) {
	c.Concentrator.Add(t)
	c.traces.Add(int64(len(t.Traces)))
}

func (c *counted) AddV1(t stats.InputV1) {
	c.Concentrator.AddV1(t)
	c.traces.Add(int64(len(t.Traces)))
}

// stopWhenDone waits for what was answered and is on its way yet.
func stopWhenDone(a *agent.Agent, c *counted, stop func()) {
	defer stop()
	var sent int64
	if _, err := fmt.Scan(&sent); err != nil {
		return
	}
	for i := 0; i < 2000 && (c.traces.Load() < sent || len(a.ClientStatsAggregator.In) > 0); i++ {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond) // the aggregator of clients' stats has one in hand
}

func main() {
	port := 0
	if len(os.Args) == 2 {
		port, _ = strconv.Atoi(os.Args[1])
	}
	if port == 0 {
		fmt.Fprintln(os.Stderr, "usage: agent-go PORT")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	c := config.New()
	c.Hostname, c.AgentVersion = "interop", "7.85.4"
	c.Endpoints = []*config.Endpoint{{APIKey: "0", Host: "http://127.0.0.1:1"}}
	c.ReceiverHost, c.ReceiverPort = "127.0.0.1", port
	c.DecoderTimeout, c.ReceiverTimeout, c.MaxConnections = 1000, 5, 200 // of its program; 0 here: it refuses by chance
	c.TelemetryConfig.Enabled = false
	c.MaxMemory, c.MaxCPU = 0, 0 // no watchdog
	c.PeerTagsAggregation = true
	out, quiet := &lines{out: json.NewEncoder(os.Stdout)}, &statsd.NoOpClient{}
	a := agent.NewAgent(ctx, c, telemetry.NewNoopCollector(), quiet, gzip.NewComponent())
	a.TraceWriter, a.TraceWriterV1 = out, out
	own := &counted{Concentrator: stats.NewConcentrator(c, out, time.Now(), quiet)}
	a.Concentrator = own
	a.ClientStatsAggregator = stats.NewClientStatsAggregator(c, out, quiet)
	go stopWhenDone(a, own, stop)
	a.Run()
}
