module weir.example/bench/sketches_go

go 1.26.0

require (
	github.com/DataDog/sketches-go v1.4.8
	github.com/lightstep/go-expohisto v1.0.0
	google.golang.org/protobuf v1.36.12
)
