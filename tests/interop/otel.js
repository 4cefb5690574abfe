// SPDX-License-Identifier: Apache-2.0
'use strict'
// The set-up that OpenTelemetry's own guide gives for Node: OTLP in protobuf, over HTTP or gRPC. The
// protocol, endpoint, compression and the service's name come from the standard OTEL_* variables.
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node')
const { BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { OTLPTraceExporter } = require(process.env.OTEL_EXPORTER_OTLP_PROTOCOL === 'grpc'
  ? '@opentelemetry/exporter-trace-otlp-grpc' : '@opentelemetry/exporter-trace-otlp-proto')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { envDetector, detectResources } = require('@opentelemetry/resources')

const provider = new NodeTracerProvider({
  resource: detectResources({ detectors: [envDetector] }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), { scheduledDelayMillis: 500 })]
})
provider.register()
registerInstrumentations({ instrumentations: [new HttpInstrumentation()], tracerProvider: provider })
global.flushTelemetry = () => provider.shutdown()
