module weir.example/bench/trace-agent

go 1.26.0

require (
	github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip v0.85.4
	github.com/DataDog/datadog-agent/pkg/proto v0.85.4
	github.com/DataDog/datadog-agent/pkg/trace v0.85.4
	github.com/DataDog/datadog-agent/pkg/trace/stats v0.85.4
	github.com/DataDog/datadog-go/v5 v5.9.1
)
