// SPDX-License-Identifier: Apache-2.0
import com.datadoghq.sketch.ddsketch.DDSketch;
import com.datadoghq.sketch.ddsketch.encoding.ByteArrayInput;
import com.datadoghq.sketch.ddsketch.encoding.GrowingByteArrayOutput;
import com.datadoghq.sketch.ddsketch.mapping.BitwiseLinearlyInterpolatedMapping;
import com.datadoghq.sketch.ddsketch.mapping.IndexMapping;
import com.datadoghq.sketch.ddsketch.mapping.LogarithmicMapping;
import com.datadoghq.sketch.ddsketch.store.CollapsingLowestDenseStore;
import com.datadoghq.sketch.ddsketch.store.Store;
import com.datadoghq.sketch.ddsketch.store.UnboundedSizeDenseStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Peer of the bench {@code sketch}: sketches-java.
 *
 * <p>{@code SketchesJava KIND DIR} reads names of cases, a line each, and answers each by a line of
 * JSON, {"CASE":number}, or {} where it has no such thing; ends with the input. KIND is log (alpha
 * 1 %, unbounded) or bitwise (1/128, the lowest of 1,024 bins collapse, as in the tracer). DIR holds
 * values.f64, series30k.u32 and series1m.u32, as bench/sketch.c writes them.
 *
 * <p>CPU time of this thread, which leaves the compiler and the collector out. A case that is asked
 * for the first time runs untimed until the compiler has had time for it.
 */
public final class SketchesJava {
  private static final int MANY = 30_000;
  private static final int MILLION = 1_000_000;
  private static final int PASS = 250_000;
  private static final int FILL_PASSES = 28;
  private static final int PASSES_1M = 8; // full ones would need 4 GB
  private static final int CLEARED = 256;
  private static final int CLEARED_SAMPLES = 1000;
  private static final double LONG_ENOUGH_NS = 5e6;
  private static final double WARM_NS = 400e6;
  private static final double[] QUANTILES = {0.5, 0.9, 0.95, 0.99};
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private interface Body {
    void run() throws IOException;
  }

  private final IndexMapping mapping;
  private final Supplier<Store> stores;
  private final double[] values;
  private final int[] series30k;
  private final int[] series1m;
  private final DDSketch hot;
  private final DDSketch full;
  private final DDSketch into;
  private final GrowingByteArrayOutput out = GrowingByteArrayOutput.withInitialCapacity(1 << 16);
  private final Set<String> warm = new HashSet<>();
  private DDSketch[] many = new DDSketch[0];
  private boolean emptied;
  private int pass;
  private double sink;
  private Object kept;

  private SketchesJava(String kind, String dir) throws IOException {
    if (kind.equals("bitwise")) {
      mapping = new BitwiseLinearlyInterpolatedMapping(1.0 / 128);
      stores = () -> new CollapsingLowestDenseStore(1024);
    } else if (kind.equals("log")) {
      mapping = new LogarithmicMapping(0.01);
      stores = UnboundedSizeDenseStore::new;
    } else {
      throw new IOException("no kind " + kind);
    }
    ByteBuffer b = read(dir, "values.f64");
    values = new double[b.remaining() / 8];
    b.asDoubleBuffer().get(values);
    series30k = series(dir, "series30k.u32");
    series1m = series(dir, "series1m.u32");
    hot = sketch();
    full = filled(0, values.length);
    into = filled(0, values.length);
  }

  private static ByteBuffer read(String dir, String name) throws IOException {
    byte[] bytes = Files.readAllBytes(Paths.get(dir, name));
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static int[] series(String dir, String name) throws IOException {
    ByteBuffer b = read(dir, name);
    int[] s = new int[b.remaining() / 4];
    b.asIntBuffer().get(s);
    return s;
  }

  private DDSketch sketch() {
    return new DDSketch(mapping, stores);
  }

  private void insert(DDSketch s, int from, int count) {
    for (int i = from; i < from + count; i++) {
      s.accept(values[i]);
    }
  }

  private DDSketch filled(int from, int count) {
    DDSketch s = sketch();
    insert(s, from, count);
    return s;
  }

  private static double nowNs() {
    return THREADS.getCurrentThreadCpuTime();
  }

  /** Nanoseconds a call: the first time untimed for long, then until it has taken long enough. */
  private double timeCalls(String name, Body body) throws IOException {
    double until = nowNs() + (warm.add(name) ? WARM_NS : 0);
    do {
      body.run();
    } while (nowNs() < until);
    for (long calls = 1; ; calls *= 2) {
      double from = nowNs();
      for (long i = 0; i < calls; i++) {
        body.run();
      }
      double spent = nowNs() - from;
      if (spent >= LONG_ENOUGH_NS) {
        return spent / calls;
      }
    }
  }

  /**
   * A quarter of the values, turned at each start over: no series gets the same ones again. A
   * million of them do, every other time, so that they are done with growing.
   */
  private void insertPass(int[] series) {
    long at = (many.length == MILLION ? pass % PASSES_1M : pass) * (long) PASS;
    int from = (int) (at % values.length);
    int k = (int) ((from + at / values.length * 104_729) % values.length);
    for (int i = from; i < from + PASS; i++) {
      many[series[i]].accept(values[k]);
      k = k + 1 < values.length ? k + 1 : 0;
    }
    pass++;
  }

  private double timePass(int[] series) {
    double from = nowNs();
    insertPass(series);
    return (nowNs() - from) / PASS;
  }

  private void fresh(int count) {
    if (many.length == count) {
      return;
    }
    many = new DDSketch[0];
    many = new DDSketch[count];
    for (int i = 0; i < count; i++) {
      many[i] = sketch();
    }
    pass = 0;
  }

  private double random(int[] series, int count, int passes) {
    fresh(count);
    if (emptied) {
      emptied = false;
      pass = 0;
    }
    while (pass < passes) {
      insertPass(series);
    }
    return timePass(series);
  }

  private double randomList() {
    fresh(MANY);
    while (pass < 4) { // capacity, which clearing keeps
      insertPass(series30k);
    }
    for (DDSketch s : many) {
      s.clear();
    }
    emptied = true;
    return timePass(series30k);
  }

  private double clear() {
    DDSketch[] all = new DDSketch[CLEARED];
    for (int i = 0; i < CLEARED; i++) {
      all[i] = sketch();
    }
    double spent = 0;
    int rounds = 0;
    for (int r = warm.add("clear") ? -20 : 0; r < 8; r++) {
      for (int i = 0; i < CLEARED; i++) {
        insert(all[i], i * CLEARED_SAMPLES, CLEARED_SAMPLES);
      }
      double from = nowNs();
      for (DDSketch s : all) {
        s.clear();
      }
      if (r >= 0) {
        spent += nowNs() - from;
        rounds++;
      }
    }
    return spent / (rounds * (double) CLEARED);
  }

  private byte[] encoded(DDSketch s, boolean withoutMapping) throws IOException {
    out.clear();
    s.encode(out, withoutMapping);
    return out.trimmedCopy();
  }

  /** Negative where there is no such case. */
  private double time(String name) throws IOException {
    switch (name) {
      case "insert_hot":
        return timeCalls(name, () -> insert(hot, 0, values.length)) / values.length;
      case "insert_random_30k":
        return random(series30k, MANY, FILL_PASSES);
      case "insert_random_30k_list":
        return randomList();
      case "insert_random_1m":
        return random(series1m, MILLION, PASSES_1M);
      case "merge":
        return timeCalls(name, () -> into.mergeWith(full));
      case "p99":
        return timeCalls(name, () -> sink += full.getValueAtQuantile(0.99));
      case "quantiles_4":
        return timeCalls(name, () -> sink += full.getValuesAtQuantiles(QUANTILES)[0]);
      case "clear":
        return clear();
      case "encode_compact":
        return timeCalls(
            name,
            () -> {
              out.clear();
              full.encode(out, false);
            });
      case "decode_compact":
        byte[] bytes = encoded(full, false);
        return timeCalls(
            name, () -> kept = DDSketch.decode(ByteArrayInput.wrap(bytes), stores));
      case "encode_proto":
        return timeCalls(name, () -> kept = full.serialize());
      default:
        return -1;
    }
  }

  private static long heapBytes() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  private long held(int samples) {
    kept = null;
    DDSketch[] all = new DDSketch[samples > 10_000 ? 8 : 1000];
    long before = heapBytes();
    for (int i = 0; i < all.length; i++) {
      all[i] = filled((int) ((long) i * samples % values.length), samples);
    }
    kept = all;
    return (heapBytes() - before) / all.length;
  }

  private String bytes(String name, int samples) throws IOException {
    DDSketch s = filled(0, samples);
    int compact = encoded(s, true).length;
    held(samples); // before the first, the JVM holds more than it will later
    return String.format(
        "{\"%s\":%d,\"compact\":%d,\"proto\":%d}", name, held(samples), compact,
        s.serialize().remaining());
  }

  private String answer(String name) throws IOException {
    switch (name) {
      case "bytes_100":
        return bytes(name, 100);
      case "bytes_1000":
        return bytes(name, 1000);
      case "bytes_1m":
        return bytes(name, values.length);
      default:
        double value = time(name);
        return value < 0 ? "{}" : String.format("{\"%s\":%.3f}", name, value);
    }
  }

  public static void main(String[] args) throws IOException {
    if (args.length != 2) {
      System.err.println("usage: sketches_java log|bitwise DIR");
      System.exit(1);
    }
    SketchesJava peer = new SketchesJava(args[0], args[1]);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String name; (name = in.readLine()) != null; ) {
      System.out.println(peer.answer(name));
    }
  }
}
