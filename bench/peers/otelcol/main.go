// SPDX-License-Identifier: Apache-2.0

// Peer of the bench `agent`: an OpenTelemetry Collector of the components it needs: OTLP over HTTP
// in, the span metrics connector with exponential histograms, and its metrics to nowhere.
//
//	otelcol PORT    listens on 127.0.0.1:PORT until SIGTERM
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/nopexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// Its own metrics are off: they would be work that the bench's user did not ask for.
const settings = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%s"}}}}
connectors:
  span_metrics:
    aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA
    metrics_flush_interval: 10s
    histogram: {unit: s, exponential: {}}
exporters: {nop: {}}
service:
  telemetry: {logs: {level: warn}, metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [span_metrics]}
    metrics: {receivers: [span_metrics], exporters: [nop]}
`

func factories() (otelcol.Factories, error) {
	in, out, between := otlpreceiver.NewFactory(), nopexporter.NewFactory(), spanmetricsconnector.NewFactory()
	return otelcol.Factories{
		Receivers:  map[component.Type]receiver.Factory{in.Type(): in},
		Exporters:  map[component.Type]exporter.Factory{out.Type(): out},
		Connectors: map[component.Type]connector.Factory{between.Type(): between},
		Telemetry:  otelconftelemetry.NewFactory(),
	}, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: otelcol PORT")
	}
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol", Version: "0.165.0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
			DefaultScheme:     "yaml",
		}},
	})
	command.SetArgs([]string{"--config", fmt.Sprintf(settings, os.Args[1])})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
