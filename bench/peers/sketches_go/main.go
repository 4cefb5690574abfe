// SPDX-License-Identifier: Apache-2.0

// Peers of the bench `sketch` in Go: sketches-go and go-expohisto.
//
//	sketches_go KIND DIR   reads names of cases, a line each, and answers each by a line of JSON
//	                       {"CASE":number}, or {} where it has no such thing; ends with the input
//
// KIND is paginated or dense (sketches-go, log mapping, alpha 1 %), paginated_s6 (its base that of
// scale 6, 2^(1/64)), expohisto_160 or expohisto_1024 (that many buckets at most). DIR holds
// values.f64, series30k.u32 and series1m.u32, as bench/sketch.c writes them.
//
// CPU time of the process on one processor, collections included; everything is done once before
// the clock starts.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/lightstep/go-expohisto/structure"
	"google.golang.org/protobuf/proto"
)

const (
	passValues     = 250000
	fillPasses     = 28
	passes1m       = 8 // full ones would need 4 GB
	cleared        = 256
	clearedSamples = 1000
	longEnoughNs   = 5e6
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sketches_go:", err)
		os.Exit(1)
	}
}

func cpuNs() float64 {
	var u syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

// Nanoseconds a call: once untimed, then until it has taken long enough.
func timeCalls(body func()) float64 {
	body()
	runtime.GC()
	for calls := 1; ; calls *= 2 {
		from := cpuNs()
		for i := 0; i < calls; i++ {
			body()
		}
		if spent := cpuNs() - from; spent >= longEnoughNs {
			return spent / float64(calls)
		}
	}
}

type data struct {
	values              []float64
	series30k, series1m []uint32
}

func load(dir string) data {
	read := func(name string) []byte {
		b, err := os.ReadFile(dir + "/" + name)
		fail(err)
		return b
	}
	series := func(name string) []uint32 {
		b := read(name)
		s := make([]uint32, len(b)/4)
		for i := range s {
			s[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		return s
	}
	b := read("values.f64")
	d := data{make([]float64, len(b)/8), series("series30k.u32"), series("series1m.u32")}
	for i := range d.values {
		d.values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return d
}

// What both libraries have; each loop calls a concrete type, see the two functions of inserts.
type sketch interface {
	*ddsketch.DDSketch | *structure.Float64
	Clear()
}

type peer[S sketch] struct {
	data
	make func() S
	// all of these loop inside, so that no call goes through a function value
	insert     func(S, []float64)
	insertMany func(all []S, series []uint32, values []float64, first int)

	hot, full, into S
	many            []S
	emptied         bool
	pass            int
}

func (p *peer[S]) filled(from, count int) S {
	s := p.make()
	p.insert(s, p.values[from:from+count])
	return s
}

// A quarter of the values, turned at each start over: no series gets the same ones again. A million
// of them do, every other time, so that they are done with growing.
func (p *peer[S]) insertPass(series []uint32) {
	at := p.pass * passValues
	turn := at / len(p.values)
	if len(p.many) == 1000000 {
		turn = p.pass % passes1m * passValues / len(p.values)
	}
	at %= len(p.values)
	first := (at + turn*104729) % len(p.values)
	p.insertMany(p.many, series[at:at+passValues], p.values, first)
	p.pass++
}

func (p *peer[S]) fresh(count int) {
	if len(p.many) != count {
		p.many = nil
		runtime.GC()
		p.many = make([]S, count)
		for i := range p.many {
			p.many[i] = p.make()
		}
		p.pass = 0
	}
}

func (p *peer[S]) random(series []uint32, count, passes int) float64 {
	p.fresh(count)
	if p.emptied {
		p.emptied, p.pass = false, 0
	}
	for p.pass < passes {
		p.insertPass(series)
	}
	runtime.GC()
	from := cpuNs()
	p.insertPass(series)
	return (cpuNs() - from) / passValues
}

func (p *peer[S]) randomList() float64 {
	p.fresh(30000)
	for p.pass < 4 { // capacity, which clearing keeps
		p.insertPass(p.series30k)
	}
	for _, s := range p.many {
		s.Clear()
	}
	p.emptied = true
	runtime.GC()
	from := cpuNs()
	p.insertPass(p.series30k)
	return (cpuNs() - from) / passValues
}

func (p *peer[S]) clear() float64 {
	all := make([]S, cleared)
	for i := range all {
		all[i] = p.make()
	}
	spent, rounds := 0.0, 0
	for ; rounds < 8; rounds++ {
		for i, s := range all {
			p.insert(s, p.values[i*clearedSamples:(i+1)*clearedSamples])
		}
		runtime.GC()
		from := cpuNs()
		for _, s := range all {
			s.Clear()
		}
		if rounds > 0 {
			spent += cpuNs() - from
		}
	}
	return spent / float64((rounds-1)*cleared)
}

func heapBytes() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func (p *peer[S]) memory(samples int) float64 {
	count := 64
	if samples > 10000 {
		count = 4
	}
	all := make([]S, count)
	before := heapBytes()
	for i := range all {
		all[i] = p.filled((i*samples)%len(p.values), samples)
	}
	held := (heapBytes() - before) / float64(count)
	runtime.KeepAlive(all)
	return held
}

// The cases of any sketch; false where it is none of them.
func (p *peer[S]) common(name string) (float64, bool) {
	switch name {
	case "insert_hot":
		return timeCalls(func() { p.insert(p.hot, p.values) }) / float64(len(p.values)), true
	case "insert_random_30k":
		return p.random(p.series30k, 30000, fillPasses), true
	case "insert_random_30k_list":
		return p.randomList(), true
	case "insert_random_1m":
		return p.random(p.series1m, 1000000, passes1m), true
	case "clear":
		return p.clear(), true
	}
	return 0, false
}

var sizes = map[string]int{"bytes_100": 100, "bytes_1000": 1000, "bytes_1m": 1000000}

// sketches-go

type dd struct {
	peer[*ddsketch.DDSketch]
	stores store.Provider
	stream bool // the builder that writes as it goes is the faster of its two
	sink   float64
	buf    []byte
	out    bytes.Buffer
	proto  []byte
}

func insertDD(s *ddsketch.DDSketch, values []float64) {
	for _, v := range values {
		_ = s.Add(v)
	}
}

func insertManyDD(all []*ddsketch.DDSketch, series []uint32, values []float64, first int) {
	for _, at := range series {
		_ = all[at].Add(values[first])
		if first++; first == len(values) {
			first = 0
		}
	}
}

func newDD(d data, kind string) *dd {
	m, err := mapping.NewLogarithmicMapping(0.01)
	if kind == "paginated_s6" {
		m, err = mapping.NewLogarithmicMappingWithGamma(math.Exp2(1.0/64), 0)
	}
	fail(err)
	p := &dd{stores: store.BufferedPaginatedStoreConstructor, stream: true}
	if kind == "dense" {
		p.stores, p.stream = store.DenseStoreConstructor, false
	}
	p.peer = peer[*ddsketch.DDSketch]{
		data: d,
		make: func() *ddsketch.DDSketch {
			return ddsketch.NewDDSketchFromStoreProvider(m, p.stores)
		},
		insert: insertDD, insertMany: insertManyDD,
	}
	p.hot, p.full, p.into = p.make(), p.filled(0, len(d.values)), p.filled(0, len(d.values))
	return p
}

func (p *dd) encodeProto(s *ddsketch.DDSketch) {
	if p.stream {
		p.out.Reset()
		s.EncodeProto(&p.out)
		p.proto = p.out.Bytes()
		return
	}
	var err error
	p.proto, err = proto.Marshal(s.ToProto())
	fail(err)
}

func (p *dd) bytes(name string, samples int) string {
	s := p.filled(0, samples)
	var b []byte
	s.Encode(&b, true)
	message, err := proto.Marshal(s.ToProto())
	fail(err)
	return fmt.Sprintf("{%q:%.0f,\"compact\":%d,\"proto\":%d}", name, p.memory(samples), len(b),
		len(message))
}

func (p *dd) time(name string) (float64, bool) {
	switch name {
	case "merge":
		return timeCalls(func() { fail(p.into.MergeWith(p.full)) }), true
	case "p99":
		return timeCalls(func() {
			q, _ := p.full.GetValueAtQuantile(0.99)
			p.sink += q
		}), true
	case "quantiles_4":
		return timeCalls(func() {
			q, _ := p.full.GetValuesAtQuantiles([]float64{.5, .9, .95, .99})
			p.sink += q[0]
		}), true
	case "encode_compact":
		return timeCalls(func() {
			p.buf = p.buf[:0]
			p.full.Encode(&p.buf, false)
		}), true
	case "decode_compact":
		p.buf = p.buf[:0]
		p.full.Encode(&p.buf, false)
		return timeCalls(func() {
			_, err := ddsketch.DecodeDDSketch(p.buf, p.stores, nil)
			fail(err)
		}), true
	case "encode_proto":
		return timeCalls(func() { p.encodeProto(p.full) }), true
	}
	return p.common(name)
}

// go-expohisto: it has no quantile and no encoding

type expo struct {
	peer[*structure.Float64]
}

func insertExpo(s *structure.Float64, values []float64) {
	for _, v := range values {
		s.Update(v)
	}
}

func insertManyExpo(all []*structure.Float64, series []uint32, values []float64, first int) {
	for _, at := range series {
		all[at].Update(values[first])
		if first++; first == len(values) {
			first = 0
		}
	}
}

func newExpo(d data, buckets int32) *expo {
	cfg := structure.NewConfig(structure.WithMaxSize(buckets))
	p := &expo{peer[*structure.Float64]{
		data:   d,
		make:   func() *structure.Float64 { return structure.NewFloat64(cfg) },
		insert: insertExpo, insertMany: insertManyExpo,
	}}
	p.hot, p.full, p.into = p.make(), p.filled(0, len(d.values)), p.filled(0, len(d.values))
	return p
}

func (p *expo) bytes(name string, samples int) string {
	return fmt.Sprintf("{%q:%.0f,\"scale\":%d}", name, p.memory(samples),
		p.filled(0, samples).Scale())
}

func (p *expo) time(name string) (float64, bool) {
	if name == "merge" {
		return timeCalls(func() { p.into.MergeFrom(p.full) }), true
	}
	return p.common(name)
}

type cases interface {
	time(name string) (float64, bool)
	bytes(name string, samples int) string
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: sketches_go KIND DIR"))
	}
	runtime.GOMAXPROCS(1)
	d := load(os.Args[2])
	var p cases
	switch kind := os.Args[1]; kind {
	case "paginated", "paginated_s6", "dense":
		p = newDD(d, kind)
	case "expohisto_160":
		p = newExpo(d, 160)
	case "expohisto_1024":
		p = newExpo(d, 1024)
	default:
		fail(fmt.Errorf("no kind %s", kind))
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		name := in.Text()
		if samples, ok := sizes[name]; ok {
			fmt.Println(p.bytes(name, samples))
		} else if value, ok := p.time(name); ok {
			fmt.Printf("{%q:%.3f}\n", name, value)
		} else {
			fmt.Println("{}")
		}
	}
}
