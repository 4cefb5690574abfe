// SPDX-License-Identifier: Apache-2.0
package datadog.trace.agent.common.metrics;

import datadog.communication.ddagent.DDAgentFeaturesDiscovery;
import datadog.jctools.queues.MessagePassingQueue;
import datadog.metrics.api.Histograms;
import datadog.metrics.api.Monitoring;
import datadog.metrics.impl.DDSketchHistograms;
import datadog.trace.agent.core.monitor.HealthMetrics;
import datadog.trace.api.ProtocolVersion;
import datadog.trace.api.WellKnownTags;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;

/**
 * Peer of the benches adversarial, resource, peer, additional and publish: the Java tracer's own
 * client-side stats, out of its agent jar.
 *
 * <p>{@code java_stats flood WORKLOAD} reads a number of seconds a line, floods the aggregator from
 * eight threads for so long, has it report, and answers by a line of JSON: what rows took in, what
 * was published, and what was lost. {@code java_stats publish} answers each line by the nanoseconds
 * of an accepted publish of one thread. Ends with the input; with 1 where spans are unaccounted for.
 *
 * <p>The histograms are the real ones: without registering them the tracer's sketches do nothing.
 * It lies in the tracer's package to reach what is package-private.
 */
public final class JavaStats {
  private static final int PRODUCERS = 8;
  private static final int TABLE = 2048;
  private static final int INBOX = 2048;
  private static final int SLOT = 16; // longs between counters of two threads
  private static final long WARM_MS = 4000;
  private static final int LABELS = 1 << 20;
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  /** An agent that wants our stats and never changes its mind. */
  private static final class Features extends DDAgentFeaturesDiscovery {
    private final Set<String> peerTags;

    Features(Set<String> peerTags) {
      super(null, Monitoring.DISABLED, null, ProtocolVersion.V0_4, true, true);
      this.peerTags = peerTags;
    }

    @Override
    public void discover() {}

    @Override
    public void discoverIfOutdated() {}

    @Override
    public boolean supportsMetrics() {
      return true;
    }

    @Override
    public Set<String> peerTags() {
      return peerTags;
    }

    @Override
    public String state() {
      return "constant";
    }
  }

  private static final class Losses extends HealthMetrics {
    final LongAdder inboxFull = new LongAdder();
    final LongAdder tableFull = new LongAdder();

    @Override
    public void onStatsInboxFull() {
      inboxFull.increment();
    }

    @Override
    public void onStatsAggregateDropped() {
      tableFull.increment();
    }
  }

  private static final class Nowhere implements Sink {
    volatile long bytes;

    @Override
    public void register(EventListener listener) {}

    @Override
    public void accept(int messages, ByteBuffer buffer) {
      bytes += buffer.remaining();
    }
  }

  /** The tracer's own writer, and the hits that pass through it. */
  private static final class CountingWriter implements MetricWriter {
    private final MetricWriter writer;
    private long inBucket;
    volatile long hits;

    CountingWriter(MetricWriter writer) {
      this.writer = writer;
    }

    @Override
    public void startBucket(int rows, long start, long duration) {
      inBucket = 0;
      writer.startBucket(rows, start, duration);
    }

    @Override
    public void add(AggregateEntry entry) {
      inBucket += entry.getHitCount();
      writer.add(entry);
    }

    @Override
    public void finishBucket() {
      writer.finishBucket();
      hits += inBucket;
    }

    @Override
    public void reset() {
      writer.reset();
    }
  }

  private final String workload;
  private final Losses losses = new Losses();
  private final CountingWriter writer;
  private final ClientStatsAggregator aggregator;
  private final CyclicBarrier barrier = new CyclicBarrier(PRODUCERS + 1);
  private final AtomicLongArray published = new AtomicLongArray(PRODUCERS * SLOT);
  private volatile boolean stop;
  private volatile Object kept;

  private JavaStats(String workload, Set<String> peerTags, Set<String> more, boolean endpoints) {
    this.workload = workload;
    Sink sink = new Nowhere();
    WellKnownTags tags = new WellKnownTags("", "", "", "", "", "");
    writer = new CountingWriter(new SerializingMetricWriter(tags, sink));
    aggregator =
        new ClientStatsAggregator(
            Collections.emptySet(),
            more.isEmpty() ? AdditionalTagsSchema.EMPTY : AdditionalTagsSchema.from(more),
            new Features(peerTags),
            losses,
            sink,
            writer,
            TABLE,
            INBOX,
            10,
            TimeUnit.SECONDS,
            endpoints);
  }

  /** The span of that number, as in bench/flood.c. */
  private Span next(int number, ThreadLocalRandom random) {
    int s = number * 0x9E3779B1;
    Span span = new Span();
    span.error = (number & 7) == 0;
    span.topLevel = (number & 3) == 0;
    span.durationNs = 1 + (random.nextLong() & 0x3FFFFFFF);
    switch (workload) {
      case "adversarial":
        span.service = "svc-" + (s & 0xFFFF);
        span.operation = "op-" + (s >>> 8 & 0x3FFFF);
        span.resource = "res-" + ((s ^ 0x5A5A5A) & 0xFFFFF);
        span.first = "host-" + (s >>> 12 & 0x7FFF);
        break;
      case "resource":
        span.resource = "res-" + ((s ^ 0x5A5A5A) & 0xFFFFF);
        break;
      case "peer":
        span.first = "host-" + (s >>> 12 & 0x7FFF);
        break;
      default:
        span.firstKey = "region";
        span.first = "region-" + (s >>> 4 & 0xFFFF);
        span.secondKey = "tenant_id";
        span.second = "tenant-" + (s >>> 16);
        span.topLevel = true;
        span.error = false;
        break;
    }
    return span;
  }

  private void produce(int index) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    int number = 0;
    long count = 0;
    try {
      while (true) {
        barrier.await();
        while (!stop) {
          aggregator.publish(Collections.singletonList(next(number++, random)));
          published.lazySet(index * SLOT, ++count);
        }
        barrier.await();
      }
    } catch (Exception e) {
      e.printStackTrace();
      System.exit(1);
    }
  }

  private long publishedSum() {
    long sum = 0;
    for (int i = 0; i < PRODUCERS; i++) {
      sum += published.get(i * SLOT);
    }
    return sum;
  }

  private long lost() {
    return losses.inboxFull.sum() + losses.tableFull.sum();
  }

  private void report() throws Exception {
    if (!aggregator.forceReport().get(60, TimeUnit.SECONDS)) {
      throw new IOException("the report was refused");
    }
  }

  private double labelsNs() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    long from = THREADS.getCurrentThreadCpuTime();
    for (int i = 0; i < LABELS; i++) {
      kept = next(i, random);
    }
    return (THREADS.getCurrentThreadCpuTime() - from) / (double) LABELS;
  }

  /** Spans a second that found room, a value a second, the least over the median. */
  private double sample(long forNs) throws InterruptedException {
    int seconds = (int) (forNs / 1_000_000_000L);
    double[] taken = new double[Math.max(1, seconds)];
    long at = System.nanoTime();
    long end = at + forNs;
    long before = publishedSum() - lost();
    for (int i = 0; i < seconds; i++) {
      Thread.sleep(Math.max(1, (end - (seconds - 1L - i) * 1_000_000_000L - System.nanoTime()) / 1_000_000));
      long now = System.nanoTime();
      long sum = publishedSum() - lost();
      taken[i] = (sum - before) * 1e9 / (now - at);
      before = sum;
      at = now;
    }
    while (System.nanoTime() < end) {
      Thread.sleep(1);
    }
    Arrays.sort(taken);
    return taken[0] / taken[taken.length / 2];
  }

  private String round(long forNs) throws Exception {
    double labels = labelsNs();
    long publishedBefore = publishedSum();
    long hitsBefore = writer.hits;
    long lostBefore = lost();
    stop = false;
    long from = System.nanoTime();
    barrier.await();
    double flatness = sample(forNs);
    stop = true;
    barrier.await();
    double spent = (System.nanoTime() - from) / 1e9;
    report();
    long offered = publishedSum() - publishedBefore;
    long hits = writer.hits - hitsBefore;
    long gone = lost() - lostBefore;
    if (offered != hits + gone) {
      System.err.printf("java_stats: published %d, in rows %d, lost %d%n", offered, hits, gone);
      System.exit(1);
    }
    return String.format(
        "{\"spans_per_s\":%.0f,\"published_per_s\":%.0f,\"dropped_share\":%.5f,\"labels_ns\":%.2f,"
            + "\"flatness\":%.4f}",
        hits / spent, offered / spent, gone / (double) offered, labels, flatness);
  }

  private static JavaStats flood(String workload) throws Exception {
    boolean additional = workload.equals("additional");
    JavaStats stats =
        new JavaStats(
            workload,
            additional ? Collections.emptySet() : Collections.singleton("peer.hostname"),
            additional ? Set.of("region", "tenant_id") : Collections.emptySet(),
            false);
    stats.aggregator.start();
    stats.report();
    for (int i = 0; i < PRODUCERS; i++) {
      int index = i;
      Thread thread = new Thread(() -> stats.produce(index), "producer-" + i);
      thread.setDaemon(true);
      thread.start();
    }
    stats.round(WARM_MS * 1_000_000);
    return stats;
  }

  private static final int SETS = 2048;
  private static final int TRACE = 8;
  private static final int BURST = 128;
  private static final int SPANS = 1 << 19;

  /** The label sets of bench/spans.c, in traces of eight of random order, made beforehand. */
  private static List<List<Span>> traces() {
    SplittableRandom random = new SplittableRandom(1);
    Span[][] traces = new Span[SPANS / 8 / TRACE][TRACE];
    for (int i = 0; i < SPANS / 8; i++) {
      int set = random.nextInt(SETS);
      Span span = new Span();
      span.service = String.format("service-%02d", set % 32);
      span.operation = "http.request";
      span.resource = String.format("GET /api/v1/items/%05d/detail", set);
      span.type = "http";
      span.firstKey = "peer.service";
      span.first = String.format("peer-%02d.internal", set % 16);
      span.method = "GET";
      span.endpoint = "/api/v1/items/:id/detail";
      span.durationNs = 1 + (random.nextLong() & 0x3FFFFF);
      span.error = i % 8 == 0;
      traces[i / TRACE][i % TRACE] = span;
    }
    List<Span>[] lists = newLists(traces.length);
    for (int i = 0; i < lists.length; i++) {
      lists[i] = Arrays.asList(traces[i]);
    }
    return Arrays.asList(lists);
  }

  @SuppressWarnings("unchecked")
  private static List<Span>[] newLists(int count) {
    return (List<Span>[]) new List<?>[count];
  }

  /** Bursts into an inbox that is emptied between them, off the clock; nobody aggregates. */
  private double publishNs(List<List<Span>> traces, MessagePassingQueue<?> inbox) {
    long spent = 0;
    int trace = 0;
    for (int at = 0; at < SPANS; at += BURST) {
      inbox.clear();
      long from = System.nanoTime();
      for (int i = 0; i < BURST / TRACE; i++) {
        aggregator.publish(traces.get(trace++ % traces.size()));
      }
      spent += System.nanoTime() - from;
    }
    return spent / (double) SPANS;
  }

  private static void publish(BufferedReader in) throws Exception {
    JavaStats stats =
        new JavaStats(
            "", Collections.singleton("peer.service"), Collections.emptySet(), true);
    Field field = ClientStatsAggregator.class.getDeclaredField("inbox");
    field.setAccessible(true);
    MessagePassingQueue<?> inbox = (MessagePassingQueue<?>) field.get(stats.aggregator);
    List<List<Span>> traces = traces();
    for (long end = System.nanoTime() + WARM_MS * 1_000_000; System.nanoTime() < end; ) {
      stats.publishNs(traces, inbox);
    }
    while (in.readLine() != null) {
      System.out.printf("{\"ns_per_span\":%.3f}%n", stats.publishNs(traces, inbox));
      if (stats.lost() > 0) {
        throw new IOException("spans were refused");
      }
    }
  }

  public static void main(String[] args) throws Exception {
    Histograms.register(DDSketchHistograms.FACTORY);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    if (args.length == 1 && args[0].equals("publish")) {
      publish(in);
    } else if (args.length == 2 && args[0].equals("flood")) {
      JavaStats stats = flood(args[1]);
      for (String line; (line = in.readLine()) != null; ) {
        System.out.println(stats.round(Long.parseLong(line) * 1_000_000_000L));
      }
    } else {
      System.err.println("usage: java_stats flood WORKLOAD | publish");
      System.exit(1);
    }
    System.exit(0);
  }
}
