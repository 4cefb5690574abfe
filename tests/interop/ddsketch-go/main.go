// SPDX-License-Identifier: Apache-2.0

// ddsketch is sketches-go behind the same few lines of text as ddsketch.c: a case a line on stdin,
// one line of answer each. Fields are separated by blanks.
//
//	write FORMAT KIND GAMMA OFFSET STORE VALUE:WEIGHT...   answers hex
//	read  FORMAT HEX                                       answers what is in it
//
// FORMAT is proto, stream (EncodeProto), compact or exact; KIND log, linear or cubic.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"google.golang.org/protobuf/proto"
)

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ddsketch-go:", err)
		os.Exit(1)
	}
	return v
}

func number(s string) float64 { return must(strconv.ParseFloat(s, 64)) }

func mappingOf(kind string, gamma, offset float64) mapping.IndexMapping {
	switch kind {
	case "linear":
		return must(mapping.NewLinearlyInterpolatedMappingWithGamma(gamma, offset))
	case "cubic":
		return must(mapping.NewCubicallyInterpolatedMappingWithGamma(gamma, offset))
	}
	return must(mapping.NewLogarithmicMappingWithGamma(gamma, offset))
}

func storeOf(name string) store.Provider {
	switch name {
	case "paginated":
		return store.BufferedPaginatedStoreConstructor
	case "sparse":
		return store.SparseStoreConstructor
	case "collapsing":
		return func() store.Store { return store.NewCollapsingLowestDenseStore(2048) }
	}
	return store.DenseStoreConstructor
}

func write(f []string) string {
	sk := ddsketch.NewDDSketchWithExactSummaryStatistics(mappingOf(f[1], number(f[2]), number(f[3])), storeOf(f[4]))
	for _, pair := range f[5:] {
		v, w, _ := strings.Cut(pair, ":")
		if err := sk.AddWithCount(number(v), number(w)); err != nil {
			must(0, err)
		}
	}
	var b []byte
	switch f[0] {
	case "proto":
		b = must(proto.Marshal(sk.DDSketch.ToProto()))
	case "stream":
		var w bytes.Buffer
		sk.DDSketch.EncodeProto(&w)
		b = w.Bytes()
	case "compact":
		sk.DDSketch.Encode(&b, false)
	case "exact":
		sk.Encode(&b, false)
	}
	return hex.EncodeToString(b)
}

func bins(out *strings.Builder, sign string, s store.Store) {
	s.ForEach(func(index int, count float64) bool {
		if count != 0 {
			fmt.Fprintf(out, " %s%d:%.17g", sign, index, count)
		}
		return false
	})
}

func read(f []string) string {
	b := must(hex.DecodeString(f[1]))
	var out strings.Builder
	var sk *ddsketch.DDSketch
	switch f[0] {
	case "proto", "stream":
		var m sketchpb.DDSketch
		if err := proto.Unmarshal(b, &m); err != nil {
			must(0, err)
		}
		sk = must(ddsketch.FromProto(&m))
	case "compact":
		sk = must(ddsketch.DecodeDDSketch(b, store.DenseStoreConstructor, nil))
	case "exact":
		ex := must(ddsketch.DecodeDDSketchWithExactSummaryStatistics(b, store.DenseStoreConstructor, nil))
		sk = ex.DDSketch
		if ex.GetCount() > 0 {
			fmt.Fprintf(&out, "exact %.17g %.17g %.17g ", ex.GetSum(), must(ex.GetMinValue()), must(ex.GetMaxValue()))
		}
	}
	fmt.Fprintf(&out, "zeros %.17g", sk.GetZeroCount())
	bins(&out, "+", sk.GetPositiveValueStore())
	bins(&out, "-", sk.GetNegativeValueStore())
	return out.String()
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		f := strings.Fields(in.Text())
		if f[0] == "write" {
			fmt.Println(write(f[1:]))
		} else {
			fmt.Println(read(f[1:]))
		}
	}
}
