// SPDX-License-Identifier: Apache-2.0

// stats-go: a /v0.6/stats body on standard input, decoded by the trace-agent's own package; the
// payload's head as one JSON line, then a line a row, its sketches read by sketches-go.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/tinylib/msgp/msgp"
	"google.golang.org/protobuf/proto"
)

func fail(what string, err error) {
	fmt.Fprintln(os.Stderr, what+":", err)
	os.Exit(1)
}

// summary is count and quantiles 0.5, 0.9, 0.99 of a sketch.
func summary(bytes []byte) []float64 {
	var m sketchpb.DDSketch
	if err := proto.Unmarshal(bytes, &m); err != nil {
		fail("sketch", err)
	}
	d, err := ddsketch.FromProto(&m)
	if err != nil {
		fail("sketch", err)
	}
	if d.IsEmpty() {
		return []float64{0}
	}
	q, err := d.GetValuesAtQuantiles([]float64{0.5, 0.9, 0.99})
	if err != nil {
		fail("quantile", err)
	}
	return append([]float64{d.GetCount()}, q...)
}

func main() {
	p := &pb.ClientStatsPayload{}
	if err := msgp.Decode(os.Stdin, p); err != nil {
		fail("body", err)
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]any{
		"runtime_id": p.RuntimeID, "sequence": p.Sequence, "hostname": p.Hostname, "service": p.Service, "env": p.Env,
		"version": p.Version, "process_tags": p.ProcessTags, "git_commit_sha": p.GitCommitSha, "buckets": len(p.Stats),
		"start": p.Stats[0].Start, "duration": p.Stats[0].Duration,
	})
	for _, g := range p.Stats[0].Stats {
		out.Encode(map[string]any{
			"name": g.Name, "service": g.Service, "resource": g.Resource, "type": g.Type, "kind": g.SpanKind,
			"status": g.HTTPStatusCode, "synthetics": g.Synthetics, "root": int(g.IsTraceRoot), "peer_tags": g.PeerTags,
			"more": g.AdditionalMetricTags, "source": g.ServiceSource, "method": g.HTTPMethod,
			"endpoint": g.HTTPEndpoint, "grpc": g.GRPCStatusCode, "hits": g.Hits, "errors": g.Errors,
			"top": g.TopLevelHits, "duration": g.Duration, "ok": summary(g.OkSummary), "error": summary(g.ErrorSummary),
			"ok_hex": hex.EncodeToString(g.OkSummary),
		})
	}
}
