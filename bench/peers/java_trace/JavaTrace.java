// SPDX-License-Identifier: Apache-2.0
import datadog.communication.serialization.FlushingBuffer;
import datadog.communication.serialization.msgpack.MsgPackWriter;
import datadog.trace.agent.common.writer.ListWriter;
import datadog.trace.agent.common.writer.RemoteMapper;
import datadog.trace.agent.common.writer.ddagent.TraceMapperV0_4;
import datadog.trace.agent.common.writer.ddagent.TraceMapperV0_5;
import datadog.trace.agent.common.writer.ddagent.TraceMapperV1;
import datadog.trace.agent.core.CoreTracer;
import datadog.trace.agent.core.DDSpan;
import datadog.trace.agent.core.DDSpanContext;
import datadog.trace.agent.core.propagation.PropagationTags;
import datadog.trace.api.DDTraceId;
import datadog.trace.api.datastreams.NoopPathwayContext;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Peer of the bench encode: the Java tracer's own mappers, out of its agent jar.
 *
 * <p>{@code java_trace v04|v05|v1 plain|enriched|origin|enriched_origin} answers each line of its
 * input by a line of JSON: spans encoded a second, of the list of bench/encode.c, over {@link
 * #ROUND_NS}. The first answer comes when a second has not made it faster by a twentieth. Spans are the tracer's real ones,
 * as it holds them after they ended; the buffer is the tracer's own, and what is flushed is counted
 * and thrown away. Ends with the input.
 */
public final class JavaTrace {
  private static final int SPANS = 1000;
  private static final long WARM_NS = 1_000_000_000L;
  private static final int WARM_MIN = 3;
  private static final int WARM_MAX = 20;
  private static final long ROUND_NS = 200_000_000L;

  private final RemoteMapper mapper;
  private final MsgPackWriter writer;
  private final List<DDSpan> spans;
  private long flushed;

  private JavaTrace(RemoteMapper mapper, List<DDSpan> spans) {
    this.mapper = mapper;
    this.spans = spans;
    this.writer =
        new MsgPackWriter(
            new FlushingBuffer(
                mapper.messageBufferSize(), (count, bytes) -> flushed += bytes.remaining()));
  }

  private static RemoteMapper mapperOf(String version) {
    switch (version) {
      case "v04":
        return new TraceMapperV0_4();
      case "v05":
        return new TraceMapperV0_5();
      case "v1":
        return new TraceMapperV1();
      default:
        throw new IllegalArgumentException(version);
    }
  }

  /** DDSpan.create is not public, and the only way to a span of a chosen context. */
  private static Method create() {
    for (Method m : DDSpan.class.getDeclaredMethods()) {
      if (m.getName().equals("create") && m.getParameterCount() == 4) {
        m.setAccessible(true);
        return m;
      }
    }
    throw new IllegalStateException("no DDSpan.create");
  }

  private static List<DDSpan> list(boolean enriched, boolean origin) throws Exception {
    CoreTracer tracer = CoreTracer.builder().writer(new ListWriter()).build();
    Method create = create();
    List<DDSpan> list = new ArrayList<>(SPANS);
    for (int i = 1; i <= SPANS; i++) {
      DDTraceId id = DDTraceId.from(i);
      DDSpanContext context =
          new DDSpanContext(
              id,
              SPANS + i,
              0,
              null,
              "service",
              "operation",
              "resource",
              1,
              origin ? "some-origin" : null,
              Collections.emptyMap(),
              false,
              "type",
              0,
              tracer.createTraceCollector(id),
              null,
              null,
              NoopPathwayContext.INSTANCE,
              false,
              PropagationTags.factory().empty());
      DDSpan span =
          (DDSpan) create.invoke(null, "bench", System.currentTimeMillis() * 1000, context, null);
      if (enriched) {
        span.setTag("some-tag-key", "some-tag-value");
        span.setMetric("some-metric-key", 1.0);
      }
      list.add(span);
    }
    return list;
  }

  /** Spans a second. */
  private double round(long forNs) {
    long from = System.nanoTime();
    long lists = 0;
    long took;
    do {
      if (!writer.format(spans, mapper)) {
        throw new IllegalStateException("the list was refused");
      }
      lists++;
      took = System.nanoTime() - from;
    } while (took < forNs);
    return lists * (double) SPANS * 1e9 / took;
  }

  /** The compiler works beside us, and on a busy machine takes long: until it has nothing left. */
  private void warm() {
    double best = 0;
    for (int i = 0; i < WARM_MAX; i++) {
      double rate = round(WARM_NS);
      if (i >= WARM_MIN && rate < best * 1.05) {
        break;
      }
      best = Math.max(best, rate);
    }
    if (flushed == 0) {
      throw new IllegalStateException("nothing was flushed");
    }
  }

  public static void main(String[] args) throws Exception {
    List<String> form = Arrays.asList(args[1].split("_"));
    JavaTrace peer =
        new JavaTrace(mapperOf(args[0]), list(form.contains("enriched"), form.contains("origin")));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    boolean cold = true;
    while (in.readLine() != null) {
      if (cold) {
        peer.warm();
        cold = false;
      }
      System.out.printf("{\"spans_per_s\":%.0f}%n", peer.round(ROUND_NS));
      System.out.flush();
    }
    System.exit(0); // the tracer's threads would keep it
  }
}
