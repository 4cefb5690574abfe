// SPDX-License-Identifier: Apache-2.0

// histogram-go: client_golang and OpenTelemetry's SDK behind a few lines of text: a case a line on stdin, one
// line of answer each.
//
//	write prometheus FACTOR VALUE:WEIGHT...   answers hex of an io.prometheus.client.Histogram
//	write otlp_exp SCALE VALUE:WEIGHT...      answers hex of an ExponentialHistogramDataPoint
//	read FORMAT HEX                           answers the scale, zeros and bins of base 2 that are in it
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	otlp "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

func need(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "histogram-go:", err)
		os.Exit(1)
	}
}

func each(words []string, record func(v float64)) {
	for _, w := range words {
		value, weight, _ := strings.Cut(w, ":")
		v, err := strconv.ParseFloat(value, 64)
		need(err)
		n, err := strconv.Atoi(weight)
		need(err)
		for ; n > 0; n-- {
			record(v)
		}
	}
}

func writePrometheus(words []string) proto.Message {
	factor, err := strconv.ParseFloat(words[0], 64)
	need(err)
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", NativeHistogramBucketFactor: factor})
	each(words[1:], h.Observe)
	var m dto.Metric
	need(h.Write(&m))
	return m.Histogram
}

func buckets(b metricdata.ExponentialBucket) *otlp.ExponentialHistogramDataPoint_Buckets {
	return &otlp.ExponentialHistogramDataPoint_Buckets{Offset: b.Offset, BucketCounts: b.Counts}
}

func writeOTLP(words []string) proto.Message {
	scale, err := strconv.Atoi(words[0])
	need(err)
	ctx := context.Background()
	reader := metric.NewManualReader()
	view := metric.NewView(metric.Instrument{Name: "h"}, metric.Stream{
		Aggregation: metric.AggregationBase2ExponentialHistogram{MaxScale: int32(scale), MaxSize: 16000}})
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(view))
	h, err := provider.Meter("m").Float64Histogram("h")
	need(err)
	each(words[1:], func(v float64) { h.Record(ctx, v) })
	var rm metricdata.ResourceMetrics
	need(reader.Collect(ctx, &rm))
	if len(rm.ScopeMetrics) == 0 {
		return &otlp.ExponentialHistogramDataPoint{Scale: int32(scale)}
	}
	p := rm.ScopeMetrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64]).DataPoints[0]
	out := &otlp.ExponentialHistogramDataPoint{
		StartTimeUnixNano: uint64(p.StartTime.UnixNano()), TimeUnixNano: uint64(p.Time.UnixNano()),
		Count: p.Count, Sum: &p.Sum, Scale: p.Scale, ZeroCount: p.ZeroCount, ZeroThreshold: p.ZeroThreshold,
		Positive: buckets(p.PositiveBucket), Negative: buckets(p.NegativeBucket)}
	if v, ok := p.Min.Value(); ok {
		out.Min = &v
	}
	if v, ok := p.Max.Value(); ok {
		out.Max = &v
	}
	return out
}

func spans(out *strings.Builder, sign string, spans []*dto.BucketSpan, deltas []int64) {
	bucket, count, at := int64(0), int64(0), 0
	for _, s := range spans {
		bucket += int64(s.GetOffset())
		for i := uint32(0); i < s.GetLength(); i++ {
			count += deltas[at]
			at++
			if count != 0 {
				fmt.Fprintf(out, " %s%d:%d", sign, bucket-1, count)
			}
			bucket++
		}
	}
}

func readPrometheus(data []byte, out *strings.Builder) {
	var h dto.Histogram
	need(proto.Unmarshal(data, &h))
	fmt.Fprintf(out, "scale %d zeros %d count %d", h.GetSchema(), h.GetZeroCount(), h.GetSampleCount())
	spans(out, "+", h.PositiveSpan, h.PositiveDelta)
	spans(out, "-", h.NegativeSpan, h.NegativeDelta)
}

func side(out *strings.Builder, sign string, b *otlp.ExponentialHistogramDataPoint_Buckets) {
	for i, c := range b.GetBucketCounts() {
		if c != 0 {
			fmt.Fprintf(out, " %s%d:%d", sign, int(b.GetOffset())+i, c)
		}
	}
}

func readOTLP(data []byte, out *strings.Builder) {
	var p otlp.ExponentialHistogramDataPoint
	need(proto.Unmarshal(data, &p))
	fmt.Fprintf(out, "scale %d zeros %d count %d", p.GetScale(), p.GetZeroCount(), p.GetCount())
	side(out, "+", p.Positive)
	side(out, "-", p.Negative)
}

func answer(words []string) string {
	var out strings.Builder
	if words[0] == "write" {
		write := writePrometheus
		if words[1] == "otlp_exp" {
			write = writeOTLP
		}
		data, err := proto.Marshal(write(words[2:]))
		need(err)
		return hex.EncodeToString(data)
	}
	data, err := hex.DecodeString(strings.TrimPrefix(words[2], "-")) // "-": no bytes
	need(err)
	if words[1] == "otlp_exp" {
		readOTLP(data, &out)
	} else {
		readPrometheus(data, &out)
	}
	return out.String()
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	for in.Scan() {
		fmt.Println(answer(strings.Fields(in.Text())))
	}
}
