module weir.example/interop/stats

go 1.26.0

require (
	github.com/DataDog/datadog-agent/pkg/proto v0.85.4
	github.com/DataDog/sketches-go v1.4.8
	github.com/tinylib/msgp v1.6.4
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
)
