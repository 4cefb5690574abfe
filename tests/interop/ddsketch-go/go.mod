module ddsketch

go 1.25.0

require (
	github.com/DataDog/sketches-go v1.4.8
	google.golang.org/protobuf v1.36.12
)
