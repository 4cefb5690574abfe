// SPDX-License-Identifier: Apache-2.0
package datadog.trace.agent.common.metrics;

import datadog.trace.agent.core.CoreSpan;
import datadog.trace.agent.core.MetadataConsumer;
import datadog.trace.agent.core.SpanKindFilter;
import datadog.trace.api.DDTraceId;
import java.util.Map;

/**
 * The cheapest span that the tracer's stats accept: fields, no map of tags, no lock. What stats do
 * not read is not kept.
 */
final class Span implements CoreSpan<Span> {
  private static final String KIND = "client";

  String service = "svc";
  String operation = "op";
  String resource = "res";
  String type = "web";
  String firstKey = "peer.hostname";
  String first = "localhost";
  String secondKey;
  String second;
  String method;
  String endpoint;
  boolean topLevel;
  boolean error;
  long durationNs;

  private Object tag(CharSequence name) {
    if (firstKey.contentEquals(name)) {
      return first;
    }
    if ("span.kind".contentEquals(name)) {
      return KIND;
    }
    if (secondKey != null && secondKey.contentEquals(name)) {
      return second;
    }
    if (method != null && "http.method".contentEquals(name)) {
      return method;
    }
    return endpoint != null && "http.endpoint".contentEquals(name) ? endpoint : null;
  }

  @Override
  @SuppressWarnings("unchecked")
  public <U> U getTag(CharSequence name, U other) {
    Object value = tag(name);
    return value == null ? other : (U) value;
  }

  @Override
  @SuppressWarnings("unchecked")
  public <U> U getTag(CharSequence name) {
    return (U) tag(name);
  }

  @Override
  public <U> U unsafeGetTag(CharSequence name, U other) {
    return getTag(name, other);
  }

  @Override
  public <U> U unsafeGetTag(CharSequence name) {
    return getTag(name);
  }

  @Override
  public boolean isKind(SpanKindFilter filter) {
    return filter.matches(KIND);
  }

  @Override
  public String getSpanKindString() {
    return KIND;
  }

  @Override
  public Span getLocalRootSpan() {
    return this;
  }

  @Override
  public String getServiceName() {
    return service;
  }

  @Override
  public CharSequence getServiceNameSource() {
    return null;
  }

  @Override
  public CharSequence getOperationName() {
    return operation;
  }

  @Override
  public CharSequence getResourceName() {
    return resource;
  }

  @Override
  public DDTraceId getTraceId() {
    return DDTraceId.ONE;
  }

  @Override
  public long getSpanId() {
    return 1;
  }

  @Override
  public long getParentId() {
    return 2;
  }

  @Override
  public long getStartTime() {
    return 0;
  }

  @Override
  public long getDurationNano() {
    return durationNs;
  }

  @Override
  public int getError() {
    return error ? 1 : 0;
  }

  @Override
  public short getHttpStatusCode() {
    return 200;
  }

  @Override
  public CharSequence getOrigin() {
    return null;
  }

  @Override
  public CharSequence getType() {
    return type;
  }

  @Override
  public boolean isMeasured() {
    return true;
  }

  @Override
  public boolean isTopLevel() {
    return topLevel;
  }

  @Override
  public boolean isForceKeep() {
    return false;
  }

  @Override
  public boolean hasSamplingPriority() {
    return false;
  }

  @Override
  public int samplingPriority() {
    return 0;
  }

  @Override
  public int getLongRunningVersion() {
    return 0;
  }

  @Override
  public Map<String, Object> getMetaStruct() {
    return null;
  }

  @Override
  public void processServiceTags() {}

  @Override
  public void processTagsAndBaggage(MetadataConsumer consumer, int flags) {}

  @Override
  public Span setMeasured(boolean measured) {
    return this;
  }

  @Override
  public Span setErrorMessage(String message) {
    return this;
  }

  @Override
  public Span addThrowable(Throwable error) {
    return this;
  }

  @Override
  public Span setTag(String key, String value) {
    return this;
  }

  @Override
  public Span setTag(String key, boolean value) {
    return this;
  }

  @Override
  public Span setTag(String key, int value) {
    return this;
  }

  @Override
  public Span setTag(String key, long value) {
    return this;
  }

  @Override
  public Span setTag(String key, double value) {
    return this;
  }

  @Override
  public Span setTag(String key, Number value) {
    return this;
  }

  @Override
  public Span setTag(String key, CharSequence value) {
    return this;
  }

  @Override
  public Span setTag(String key, Object value) {
    return this;
  }

  @Override
  public Span removeTag(String key) {
    return this;
  }

  @Override
  public Span setSamplingPriority(int priority, int mechanism) {
    return this;
  }

  @Override
  public Span setSamplingPriority(int priority, CharSequence rate, double value, int mechanism) {
    return this;
  }

  @Override
  public Span setSpanSamplingPriority(double rate, int limit) {
    return this;
  }

  @Override
  public Span setMetric(CharSequence key, int value) {
    return this;
  }

  @Override
  public Span setMetric(CharSequence key, long value) {
    return this;
  }

  @Override
  public Span setMetric(CharSequence key, float value) {
    return this;
  }

  @Override
  public Span setMetric(CharSequence key, double value) {
    return this;
  }

  @Override
  public Span setFlag(CharSequence key, boolean value) {
    return this;
  }

  @Override
  public Span setMetaStruct(String key, Object value) {
    return this;
  }
}
